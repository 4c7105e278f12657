"""Who may do what: grants on Tenant by role, asked in one place by view, template, API and worker (SEC-06).

A role is a group per tenant with object grants on that tenant. Flags such as is_superuser give nothing (SEC-07).
"""

from __future__ import annotations

import uuid

from django.contrib.auth.models import Group
from guardian.models import GroupObjectPermission
from guardian.shortcuts import assign_perm

from runs.models import Person, Tenant
from runs.wall import within

_SUPPORT = ("view", "claim", "comment", "reconcile", "resume", "cancel")

ROLES: dict[str, tuple[str, ...]] = {
    "viewer": ("view",),
    "support": _SUPPORT,
    "oncall": (*_SUPPORT, "retry"),
    "admin": (*_SUPPORT, "retry", "administer", "audit"),
    "auditor": ("view", "audit"),
}

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


def grant_role(person: Person, tenant: Tenant, role: str) -> None:
    """Put a person into a tenant's role; raises KeyError for a role that does not exist."""
    group, created = Group.objects.get_or_create(name=f"{tenant.pk}:{role}")
    if created:
        with within(tenant.pk):
            for ability in ROLES[role]:
                assign_perm(f"runs.{ability}", group, tenant)
    person.groups.add(group)


def roles_of(person: Person) -> dict[uuid.UUID, list[str]]:
    """The names of a person's roles by tenant."""
    found: dict[uuid.UUID, list[str]] = {}
    for name in person.groups.order_by("name").values_list("name", flat=True):
        tenant, _, role = name.partition(":")
        if role in ROLES:
            found.setdefault(uuid.UUID(tenant), []).append(role)
    return found
