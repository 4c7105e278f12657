"""The people of the tenants in view, with their roles, and what each role may do in words."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace

from allauth.mfa.models import Authenticator
from django.db.models import Exists, OuterRef, Q
from django.urls import reverse

from console import forms, looks
from console.access import Visit
from console.builders.workflows import tabs
from console.filters import query
from console.looks import Look
from console.pages.common import Flash, Link
from console.pages.confirm import Choice
from console.pages.members import AbilityRow, ChangeRow, MemberRow, MembersPage, RolesPage, WaitingChange
from recovery import permissions
from recovery.models import RoleChange
from recovery.rules import membership
from recovery.rules.membership import Change
from recovery.work import roles
from runs.models import Person, Tenant

PAGE = 50
MAY_SEE = ("administer", "audit")
FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


@dataclass(frozen=True)
class Wish:
    """What somebody chose and typed; `roles` is None before anything was chosen."""

    roles: list[str] | None = None
    reason: str = ""
    error: str = ""


def seen_by(visit: Visit) -> list[Tenant]:
    """The tenants in view whose members this person may see: names and addresses are not for everybody."""
    return [tenant for tenant in visit.tenants.values()
            if tenant.pk in visit.scope and any(visit.may(one, tenant.pk) for one in MAY_SEE)]  # fmt: skip


def page(visit: Visit, tenants: list[Tenant], *, after: uuid.UUID | None, flashes: list[Flash]) -> MembersPage:
    """By name; `after` is the person behind whom the page begins."""
    rows = permissions.members(tenant.pk for tenant in tenants)
    if after is not None:
        before = Person.objects.filter(pk=after).values("name")[:1]
        rows = rows.filter(Q(name__gt=before) | Q(name=before, pk__gt=after))
    factor = Authenticator.objects.filter(user=OuterRef("pk"), type__in=FACTORS)
    found: list[Person] = [*rows.annotate(has_factor=Exists(factor))[: PAGE + 1]]
    shown, more = found[:PAGE], len(found) > PAGE
    slug = visit.chosen.slug if visit.chosen else ""
    return MembersPage(
        title="Settings",
        summary=("1 person" if len(shown) == 1 else f"{len(shown)} people") + (", and more" if more else ""),
        tabs=tabs(visit, "Members"),
        rows=list(_rows(visit, tenants, shown)),
        roles=list(permissions.ROLES),
        abilities=[_ability(name) for name in permissions.WORDS],
        waiting=_waiting(visit, tenants),
        next_url=reverse("settings_members") + query(tenant=slug, after=shown[-1].pk) if more else "",
        flashes=flashes,
    )


def _rows(visit: Visit, tenants: list[Tenant], people: list[Person]) -> Iterator[MemberRow]:
    """A person stands once for each tenant, for a role holds in one."""
    known = permissions.roles_of_each(people)
    for person in people:
        for tenant in tenants:
            held = known.get(person.pk, {}).get(tenant.pk, [])
            if held:
                yield _row(visit, person, tenant, held)


def _row(visit: Visit, person: Person, tenant: Tenant, held: list[str]) -> MemberRow:
    has_factor: bool = person.has_factor  # type: ignore[attr-defined]
    return MemberRow(
        name=person.name,
        email=person.email,
        tenant=tenant.name,
        roles=", ".join(held),
        state=looks.look("member", "active" if person.is_active else "deactivated"),
        factor=looks.look("member", "factor" if has_factor else "password_only"),
        seen_at=person.last_login,
        you=person == visit.person,
        change_url=_address(person.pk, tenant) if _may_change(visit, person, tenant) else "",
    )


def _may_change(visit: Visit, person: Person, tenant: Tenant) -> bool:
    return visit.may(roles.ABILITY, tenant.pk) and person != visit.person


def _address(person_id: uuid.UUID, tenant: Tenant) -> str:
    return reverse("change_roles", args=[person_id]) + query(tenant=tenant.slug)


def sheet(visit: Visit, tenant: Tenant, person_id: uuid.UUID, wish: Wish) -> RolesPage | None:
    """Somebody's roles, and what the chosen ones would change; None for nobody of this tenant."""
    person = Person.objects.filter(pk=person_id).first()
    held = permissions.roles_of(person).get(tenant.pk, []) if person is not None else []
    if person is None or not held:
        return None
    page = RolesPage(
        title=f"Roles of {person.name}",
        subtitle=f"in {tenant.name}",
        crumbs=[
            Link("Settings", reverse("settings")),
            Link("Members", reverse("settings_members")),
            Link("Roles", ""),
        ],
        tenant=tenant.slug,
        show_url=reverse("change_roles", args=[person.pk]),
        url=_address(person.pk, tenant),
        now=", ".join(held),
        choices=[Choice(one, one, one in (held if wish.roles is None else wish.roles)) for one in permissions.ROLES],
        error=wish.error,
    )
    return page if wish.roles is None else _chosen(visit, tenant, person, held, wish, page)


def _chosen(visit: Visit, tenant: Tenant, person: Person, held: list[str], wish: Wish, page: RolesPage) -> RolesPage:
    wanted = sorted(set(wish.roles or []))
    seen = roles.foreseen(visit.person, tenant.pk, person, wanted)
    second = membership.needs_second(seen)
    before = permissions.abilities_of(held)
    after = permissions.abilities_of(one for one in wanted if one in permissions.ROLES)
    return replace(
        page,
        chosen=True,
        then=", ".join(wanted) or "no role: this tenant is not seen any more",
        roles=wanted or [""],
        rows=[ChangeRow(words, _has(name in before), _has(name in after), (name in before) != (name in after))
              for name, words in permissions.WORDS.items()],
        agree=_agree(seen, second=second),
        button="Ask a second admin" if second else f"Change the roles of {person.name}",
        blocked=membership.refusal(seen),
        key=forms.new_key(),
        before=" ".join(sorted(held)),
        reason=wish.reason,
    )  # fmt: skip


def _agree(seen: Change, *, second: bool) -> str:
    if second:
        return "A second admin has to agree, for this gives abilities. Until then nothing changes."
    if seen.gained:
        return "There is no other admin who could agree, so it holds at once. The history names you."
    return "Nobody else has to agree, for this gives nothing. It holds at once."


def _has(held: bool) -> Look:
    return looks.look("member", "may" if held else "may_not")


def _waiting(visit: Visit, tenants: list[Tenant]) -> list[WaitingChange]:
    own = [tenant.pk for tenant in tenants if visit.may(roles.ABILITY, tenant.pk)]
    rows = RoleChange.objects.filter(tenant_id__in=own, ended_at__isnull=True, expires_at__gt=visit.now)
    return [_wait(visit, row) for row in rows.select_related("person", "by").order_by("id")[:PAGE]]


def _wait(visit: Visit, row: RoleChange) -> WaitingChange:
    party = visit.person in (row.by, row.person)
    slug = visit.tenants[row.tenant_id].slug
    return WaitingChange(
        person=row.person.name,
        tenant=visit.named(row.tenant_id),
        before=", ".join(row.before),
        after=", ".join(row.after) or "no role",
        by=row.by.name,
        reason=row.reason,
        asked_at=row.asked_at,
        until=row.expires_at,
        answer_url="" if party else reverse("answer_change", args=[row.pk]) + query(tenant=slug),
        fixed="Another admin answers this." if party else "",
    )


def _ability(name: str) -> AbilityRow:
    held = [
        looks.look("member", "may" if name in abilities else "may_not") for abilities in permissions.ROLES.values()
    ]
    return AbilityRow(permissions.WORDS[name], held)
