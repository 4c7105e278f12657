"""Saved views of the queue: an address with a name, a person's own or the team's (UX: queue).

A view is found by whoever may see it, and is else as missing as one that never was.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from django.db import IntegrityError
from django.db.models import Q, QuerySet

from console.models import SavedView
from recovery import permissions
from runs import record, redact, wall
from runs.models import Person, Tenant
from runs.querysets import database_now
from runs.record import Actor

MOST_OWN, MOST_TEAM = 20, 50
NAME_MAX, QUERY_MAX = 60, 1000
TAKEN = "There is a view of this name already: choose another, or save over that one."


class NoSuchView(Exception):
    """There is no such view for this person."""


class Refused(Exception):
    """It cannot be done; the message says why and what would be right. `field` is the field at fault, or empty."""

    def __init__(self, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(frozen=True)
class Wish:
    """A view as it is to be: `team` for everybody in the tenant, else for `by` alone."""

    by: Person
    tenant_id: uuid.UUID
    name: str
    query: str
    team: bool
    request_id: str = ""


def rows(person: Person, tenants: list[uuid.UUID]) -> QuerySet[SavedView]:
    """The views that a person sees: their own first, then the teams', by name."""
    seen = SavedView.objects.filter(Q(person=person) | Q(person__isnull=True), tenant_id__in=tenants)
    return seen.order_by("person_id", "name", "pk")


def may_change(person: Person, view: SavedView, abilities: frozenset[str]) -> bool:
    """One's own always; a team's by whoever made it and still works there, and by an admin."""
    if view.person_id is not None:
        return view.person_id == person.pk
    return "administer" in abilities or (view.by_id == person.pk and "claim" in abilities)


def make(wish: Wish) -> SavedView:
    """Keep a new view. Raises Refused for a name that is taken, a text that does not fit, and one view too many."""
    if "claim" not in _abilities(wish.by, wish.tenant_id) and wish.team:
        raise Refused("Your role does not include saving a view for the team.", "where")
    name, query = named(wish.name), _fitting(wish.query)
    try:
        with wall.within(wish.tenant_id, by="person"):
            _room(wish)
            made = SavedView.objects.create(
                tenant_id=wish.tenant_id, person=None if wish.team else wish.by, by=wish.by, name=name, query=query
            )
            _tell(made, "team_view_saved", wish.by, wish.request_id)
    except IntegrityError:
        raise Refused(TAKEN, "name") from None
    return made


def change(
    view_id: uuid.UUID, by: Person, *, name: str = "", query: str | None = None, request_id: str = ""
) -> SavedView:
    """Give a view another name, or another address. Raises NoSuchView and Refused."""
    view = _found(view_id, by)
    changes = {"name": named(name)} if query is None else {"query": _fitting(query)}
    try:
        with wall.within(view.tenant_id, by="person"):
            if not SavedView.objects.filter(pk=view_id).update(**changes, changed_at=database_now()):
                raise NoSuchView  # somebody was faster and deleted it
            _tell(view, "team_view_changed", by, request_id)
    except IntegrityError:
        raise Refused(TAKEN, "name") from None
    return view


def delete(view_id: uuid.UUID, by: Person, *, request_id: str = "") -> SavedView:
    """Forget a view; addresses that came from it go on working. Raises NoSuchView and Refused."""
    view = _found(view_id, by)
    with wall.within(view.tenant_id, by="person"):
        gone, _ = SavedView.objects.filter(pk=view_id).delete()
        if not gone:
            raise NoSuchView
        _tell(view, "team_view_deleted", by, request_id)
    return view


def named(text: str) -> str:
    """A name as it is kept: one line, no secrets. Raises Refused."""
    name = redact.clean_text(" ".join(text.replace("\0", "").split()))
    if not name:
        raise Refused("Give the view a name.", "name")
    if len(name) > NAME_MAX:
        raise Refused(f"A name has at most {NAME_MAX} characters; this one has {len(name)}.", "name")
    return name


def _fitting(query: str) -> str:
    if len(query) > QUERY_MAX:
        raise Refused(f"This address is too long to be saved: {len(query)} of {QUERY_MAX} characters.", "name")
    return query.replace("\0", "")


def _room(wish: Wish) -> None:
    """Hold whom the view is for, so that two at once cannot both be the last one that fits."""
    if wish.team:
        Tenant.objects.select_for_update(no_key=True).get(pk=wish.tenant_id)
        held, most = SavedView.objects.filter(tenant_id=wish.tenant_id, person__isnull=True).count(), MOST_TEAM
    else:
        Person.objects.select_for_update(no_key=True).get(pk=wish.by.pk)
        held, most = SavedView.objects.filter(tenant_id=wish.tenant_id, person=wish.by).count(), MOST_OWN
    if held >= most:
        raise Refused(f"There are {held} views already, which is the most: delete one first.", "name")


def _found(view_id: uuid.UUID, by: Person) -> SavedView:
    grants = permissions.grants(by)
    readable = [tenant for tenant, abilities in grants.items() if "view" in abilities]
    with wall.within(*readable):
        view = rows(by, readable).filter(pk=view_id).first()
    if view is None:
        raise NoSuchView
    if not may_change(by, view, grants[view.tenant_id]):
        raise Refused("A view of the team is changed by whoever made it, or by an admin.")
    return view


def _abilities(person: Person, tenant_id: uuid.UUID) -> frozenset[str]:
    return permissions.grants(person).get(tenant_id, frozenset())


def _tell(view: SavedView, kind: str, by: Person, request_id: str) -> None:
    """What everybody uses stands in the history; a person's own views are nobody's business."""
    if view.person_id is None:
        data = {"view": str(view.pk), "name": view.name}
        record.write_event(None, kind, Actor("person", str(by), request_id), tenant_id=view.tenant_id, data=data)
