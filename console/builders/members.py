"""The people of the tenants in view, with their roles, and what each role may do in words."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from allauth.mfa.models import Authenticator
from django.db.models import Exists, OuterRef, Q
from django.urls import reverse

from console import looks
from console.access import Visit
from console.builders.workflows import tabs
from console.filters import query
from console.pages.common import Flash
from console.pages.members import AbilityRow, MemberRow, MembersPage
from recovery import permissions
from runs.models import Person, Tenant

PAGE = 50
MAY_SEE = ("administer", "audit")
FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


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
        next_url=reverse("settings_members") + query(tenant=slug, after=shown[-1].pk) if more else "",
        flashes=flashes,
    )


def _rows(visit: Visit, tenants: list[Tenant], people: list[Person]) -> Iterator[MemberRow]:
    """A person stands once for each tenant, for a role holds in one."""
    roles = permissions.roles_of_each(people)
    for person in people:
        for tenant in tenants:
            held = roles.get(person.pk, {}).get(tenant.pk, [])
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
    )


def _ability(name: str) -> AbilityRow:
    held = [
        looks.look("member", "may" if name in abilities else "may_not") for abilities in permissions.ROLES.values()
    ]
    return AbilityRow(permissions.WORDS[name], held)
