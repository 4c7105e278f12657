"""Who may do what: grants on Tenant by role, asked in one place by view, template, API and worker (SEC-06).

A role is a group per tenant with object grants on that tenant. Flags such as is_superuser give nothing (SEC-07).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.contrib.auth.models import Group
from django.db.models import QuerySet
from guardian.models import GroupObjectPermission
from guardian.shortcuts import assign_perm

from runs.models import Person, Tenant
from runs.wall import within

_SUPPORT = (
    "view", "claim", "comment", "reconcile", "resume", "cancel", "attest", "compensate", "top_up", "stop_run",
)  # fmt: skip
_ONCALL = (*_SUPPORT, "retry", "approve", "replay", "waive", "stop", "circuit", "bulk")

ROLES: dict[str, tuple[str, ...]] = {
    "viewer": ("view",),
    "support": _SUPPORT,
    "oncall": _ONCALL,
    "admin": (*_ONCALL, "administer", "audit"),
    "auditor": ("view", "audit"),
}

WORDS: dict[str, str] = {
    "view": "read runs and tasks, redacted",
    "claim": "claim and release tasks, hand them over, put them off",
    "comment": "comment",
    "reconcile": "check what happened",
    "resume": "let a run go on, ask the requester and answer for them",
    "cancel": "cancel a run",
    "attest": "attest what happened; a second person may have to confirm",
    "compensate": "ask for undos; a second person may have to agree",
    "top_up": "top up a budget",
    "stop_run": "stop a single run",
    "bulk": "use a verb on more than 50 tasks at once",
    "retry": "retry the same call where that is safe",
    "approve": "approve, reject and confirm what others asked for",
    "replay": "replay or discard a dead letter",
    "waive": "accept what stays of an effect",
    "stop": "set and lift any stop switch",
    "circuit": "hold and release circuits, test a connector",
    "administer": "change roles, trust a connector again, see the members",
    "audit": "read the audit, see the members",
}
"""Each ability as people read it, in the order in which they are listed."""

MOST_PEOPLE = 500
Grants = dict[uuid.UUID, frozenset[str]]


def grants(person: Person) -> Grants:
    """Every ability of a person by tenant, in one query; none for somebody who was deactivated."""
    if not person.is_active:
        return {}
    rows = GroupObjectPermission.objects.filter(
        group__user=person,
        permission__content_type__app_label="runs",
        permission__content_type__model="tenant",
    ).values_list("object_pk", "permission__codename")
    found: dict[uuid.UUID, set[str]] = {}
    for tenant, ability in rows:
        found.setdefault(uuid.UUID(tenant), set()).add(ability)
    return {tenant: frozenset(abilities) for tenant, abilities in found.items()}


def may(person: Person, ability: str, tenant_id: uuid.UUID) -> bool:
    return ability in grants(person).get(tenant_id, frozenset())


def tenants_of(person: Person) -> list[uuid.UUID]:
    """The tenants whose rows this person may read."""
    return [tenant for tenant, abilities in grants(person).items() if "view" in abilities]


def people(tenant_id: uuid.UUID, ability: str) -> list[Person]:
    """Everybody who may sign in and holds this ability in the tenant, by name; at most MOST_PEOPLE."""
    holding = GroupObjectPermission.objects.filter(
        object_pk=str(tenant_id),
        permission__content_type__app_label="runs",
        permission__content_type__model="tenant",
        permission__codename=ability,
    ).values("group")
    found = Person.objects.filter(is_active=True, groups__in=holding).distinct()
    return list(found.order_by("name", "pk")[:MOST_PEOPLE])


def members(tenant_ids: Iterable[uuid.UUID]) -> QuerySet[Person]:
    """Everybody with a role in one of these tenants, by name, those who were deactivated too; no list is cut here."""
    groups = Group.objects.filter(name__in=[f"{tenant_id}:{role}" for tenant_id in tenant_ids for role in ROLES])
    found = Person.objects.filter(pk__in=Person.groups.through.objects.filter(group__in=groups).values("person"))
    return found.order_by("name", "pk")


def roles_of_each(people: Iterable[Person]) -> dict[uuid.UUID, dict[uuid.UUID, list[str]]]:
    """The names of the roles of several people, by person and tenant, in one query."""
    rows = Person.groups.through.objects.filter(person__in=[one.pk for one in people])
    found: dict[uuid.UUID, dict[uuid.UUID, list[str]]] = {}
    for person, name in rows.order_by("group__name").values_list("person_id", "group__name"):
        tenant, _, role = name.partition(":")
        if role in ROLES:
            found.setdefault(person, {}).setdefault(uuid.UUID(tenant), []).append(role)
    return found


def colleague(tenant_id: uuid.UUID, email: str, *, ability: str = "claim") -> Person | None:
    """The person of that address, if they may sign in and hold the ability here."""
    found = Person.objects.filter(email=email.lower(), is_active=True).first()
    return found if found is not None and may(found, ability, tenant_id) else None


def an_admin_exists() -> bool:
    """Whether any tenant has an admin."""
    groups = Group.objects.filter(name__endswith=":admin")
    return Person.objects.filter(is_active=True, groups__in=groups).exists()


def grant_role(person: Person, tenant: Tenant, role: str) -> None:
    """Put a person into a tenant's role; raises KeyError for a role that does not exist."""
    abilities = ROLES[role]
    group, _ = Group.objects.get_or_create(name=f"{tenant.pk}:{role}")
    _grant(group, tenant.pk, abilities)
    person.groups.add(group)


def set_roles(person: Person, tenant: Tenant, roles: Iterable[str]) -> None:
    """Give a person exactly these roles in a tenant; those elsewhere stay. KeyError for one that does not exist."""
    wanted = set(roles)
    for role in sorted(wanted):
        grant_role(person, tenant, role)
    person.groups.remove(*Group.objects.filter(name__in=[f"{tenant.pk}:{role}" for role in ROLES.keys() - wanted]))


def abilities_of(roles: Iterable[str]) -> frozenset[str]:
    """What these roles together include."""
    return frozenset(ability for role in roles for ability in ROLES[role])


def refresh_roles() -> int:
    """Give the roles of every tenant what this version grants them; returns how many grants were missing.

    An upgrade may bring new abilities; a role that was made before it gets them at the next start.
    """
    missing = 0
    for group in Group.objects.order_by("pk"):
        tenant_id, _, role = group.name.partition(":")
        if role in ROLES:
            missing += _grant(group, uuid.UUID(tenant_id), ROLES[role])
    return missing


def _grant(group: Group, tenant_id: uuid.UUID, abilities: tuple[str, ...]) -> int:
    held = GroupObjectPermission.objects.filter(group=group, object_pk=str(tenant_id))
    missing = set(abilities) - set(held.values_list("permission__codename", flat=True))
    if missing:
        with within(tenant_id):
            tenant = Tenant.objects.get(pk=tenant_id)
            for ability in sorted(missing):
                assign_perm(f"runs.{ability}", group, tenant)
    return len(missing)


def roles_of(person: Person) -> dict[uuid.UUID, list[str]]:
    """The names of a person's roles by tenant."""
    found: dict[uuid.UUID, list[str]] = {}
    for name in person.groups.order_by("name").values_list("name", flat=True):
        tenant, _, role = name.partition(":")
        if role in ROLES:
            found.setdefault(uuid.UUID(tenant), []).append(role)
    return found
