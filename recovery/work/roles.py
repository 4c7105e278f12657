"""Changing somebody's roles in a tenant: by an admin, and where somebody gains an ability by the word of two.

The tenant's row is the lock, so that two admins cannot take each other's role away at the same moment.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import timedelta

from recovery import permissions
from recovery.models import RoleChange
from recovery.rules import membership
from recovery.rules.membership import Change
from runs import record, redact, wall
from runs.models import Person, Tenant
from runs.querysets import read_clock
from runs.record import Actor

ABILITY = "administer"
LASTS = timedelta(hours=72)
LONGEST_REASON = 2000


class Refused(Exception):
    """The roles stay as they are; the message says why in a sentence."""


class Moved(Refused):
    """They are no longer what the form showed."""


class NoSuchMember(Exception):
    """Nobody of that id has a role here, or no change of that id waits."""


def change(
    by: Person,
    tenant_id: uuid.UUID,
    person_id: uuid.UUID,
    *,
    before: Iterable[str],
    after: Iterable[str],
    reason: str,
    key: str,
    request_id: str = "",
) -> RoleChange:
    """Change the roles, or keep the wish until a second admin agrees. The same key gives the first result (F116).

    Raises Refused, Moved and NoSuchMember.
    """
    with wall.within(tenant_id, by="person"):
        tenant = _locked(tenant_id)
        made = RoleChange.objects.filter(key=key).first()
        if made is not None:
            return made
        person, held = _member(tenant_id, person_id)
        wanted = sorted(set(after))
        seen = _seen(by, tenant_id, person, held, wanted)
        sentence = membership.refusal(seen) or ("" if reason.strip() else "say why, in a few words.")
        if sentence:
            raise Refused(sentence)
        if sorted(before) != held:
            raise Moved("somebody changed these roles meanwhile.")
        _check_waiting(person)
        now, words = read_clock(), redact.clean_text(reason, LONGEST_REASON)
        waits = membership.needs_second(seen)
        row = RoleChange.objects.create(
            tenant=tenant, person=person, by=by, key=key, before=held, after=wanted, reason=words, asked_at=now,
            expires_at=now + LASTS, ended_at=None if waits else now, result="" if waits else "done",
        )  # fmt: skip
        if not waits:
            permissions.set_roles(person, tenant, wanted)
        _tell(row, "role_change_asked" if waits else "roles_changed", by, words, request_id)
        return row


def answer(
    by: Person, tenant_id: uuid.UUID, change_id: uuid.UUID, *, agrees: bool, request_id: str = ""
) -> RoleChange:
    """The second word: it is carried out as it was asked for, or it is not. Raises Refused and NoSuchMember."""
    with wall.within(tenant_id, by="person"):
        tenant = _locked(tenant_id)
        row = RoleChange.objects.select_related("person", "by").filter(pk=change_id, ended_at__isnull=True).first()
        if row is None or row.expires_at <= read_clock():
            raise NoSuchMember
        if not permissions.may(by, ABILITY, tenant_id):
            raise Refused("your role does not include this.")
        if agrees:
            _check_second(by, row)
            permissions.set_roles(row.person, tenant, row.after)
        row.result, row.second, row.ended_at = "done" if agrees else "declined", by, read_clock()
        row.save(update_fields=["result", "second", "ended_at"])
        _tell(row, "roles_changed" if agrees else "role_change_declined", by, row.reason, request_id)
        return row


def foreseen(by: Person, tenant_id: uuid.UUID, person: Person, after: Iterable[str]) -> Change:
    """What would be decided about this wish at this moment; the wall is open."""
    held = permissions.roles_of(person).get(tenant_id, [])
    return _seen(by, tenant_id, person, sorted(held), sorted(set(after)))


def _check_second(by: Person, row: RoleChange) -> None:
    """Another person than who asked and whom it is about; and all that was so when it was asked for is so still."""
    if by in (row.by, row.person):
        raise Refused("a second admin has to agree: neither who asked nor whom it is about.")
    _, held = _member(row.tenant_id, row.person_id)
    if held != row.before:
        raise Moved("somebody changed these roles meanwhile.")
    sentence = membership.refusal(_seen(row.by, row.tenant_id, row.person, held, row.after))
    if sentence:
        raise Refused(f"it may not be done any more: {sentence}")


def _seen(by: Person, tenant_id: uuid.UUID, person: Person, held: list[str], wanted: list[str]) -> Change:
    known = [role for role in wanted if role in permissions.ROLES]
    had, has = permissions.abilities_of(held), permissions.abilities_of(known)
    admins = {one.pk for one in permissions.people(tenant_id, ABILITY)}
    after = admins | {person.pk} if ABILITY in has and person.is_active else admins - {person.pk}
    return Change(
        may=permissions.may(by, ABILITY, tenant_id),
        about_oneself=by == person,
        is_active=person.is_active,
        known=known == wanted,
        differs=wanted != held,
        gained=has - had,
        lost=had - has,
        other_admins=len(admins - {by.pk, person.pk}),
        admins_left=len(after),
    )


def _check_waiting(person: Person) -> None:
    """One wish about a person at a time; one that nobody answered in time ends here."""
    waiting = RoleChange.objects.filter(person=person, ended_at__isnull=True)
    now = read_clock()
    waiting.filter(expires_at__lte=now).update(ended_at=now, result="expired")
    if waiting.exists():
        raise Refused("another change of this person's roles waits for a second admin.")


def _locked(tenant_id: uuid.UUID) -> Tenant:
    return Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)


def _member(tenant_id: uuid.UUID, person_id: uuid.UUID) -> tuple[Person, list[str]]:
    person = Person.objects.filter(pk=person_id).first()
    held = permissions.roles_of(person).get(tenant_id, []) if person is not None else []
    if person is None or not held:
        raise NoSuchMember
    return person, sorted(held)


def _tell(row: RoleChange, kind: str, by: Person, words: str, request_id: str) -> None:
    data = {"change": str(row.pk), "person": str(row.person_id), "before": row.before, "after": row.after}
    actor = Actor("person", str(by), request_id)
    record.write_event(None, kind, actor, tenant_id=row.tenant_id, reason=words, data=data)
