"""Which role holds which ability, in its own tenant and nowhere else, also after an upgrade (SECURITY 2, SEC-06)."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from guardian.models import GroupObjectPermission

from recovery import permissions
from runs.models import ABILITIES
from tests.factories import make_person, make_tenant

DESK = {"view", "claim", "comment", "reconcile", "resume", "cancel", "attest", "compensate", "top_up", "stop_run"}
MATRIX = {
    "viewer": {"view"},
    "support": DESK,
    "oncall": DESK | {"retry", "approve", "replay", "waive", "stop", "circuit", "bulk"},
    "admin": DESK | {"retry", "approve", "replay", "waive", "stop", "circuit", "bulk", "administer", "audit"},
    "auditor": {"view", "audit"},
}


@pytest.mark.django_db
@pytest.mark.parametrize("role", MATRIX)
def test_SEC_06_a_role_holds_its_abilities_in_its_own_tenant_only(role: str) -> None:
    own, other = make_tenant("north"), make_tenant("south")
    person, stranger = make_person("somebody", own, role), make_person("stranger")
    assert {ability for ability in ABILITIES if permissions.may(person, ability, own.pk)} == MATRIX[role]
    assert not any(permissions.may(person, ability, other.pk) for ability in ABILITIES)
    assert not any(permissions.may(stranger, ability, own.pk) for ability in ABILITIES)


def test_SEC_06_every_ability_is_somebodys() -> None:
    assert set().union(*MATRIX.values()) == set(ABILITIES)
    assert set(permissions.ROLES) == set(MATRIX)


@pytest.mark.django_db
def test_an_upgrade_gives_older_roles_what_came_since_and_does_it_once() -> None:
    tenant = make_tenant("north")
    omar, bob = make_person("omar", tenant, "oncall"), make_person("bob", tenant, "viewer")
    Group.objects.create(name="night shift")
    GroupObjectPermission.objects.filter(permission__codename__in=("approve", "stop", "replay")).delete()
    assert not permissions.may(omar, "approve", tenant.pk)
    call_command("refresh_roles", verbosity=0)
    assert {ability for ability in ABILITIES if permissions.may(omar, ability, tenant.pk)} == MATRIX["oncall"]
    assert not permissions.may(bob, "approve", tenant.pk)
    assert permissions.refresh_roles() == 0


@pytest.mark.django_db
def test_granting_a_role_completes_it() -> None:
    tenant = make_tenant("north")
    make_person("omar", tenant, "oncall")
    GroupObjectPermission.objects.filter(permission__codename="approve").delete()
    assert permissions.may(make_person("mia", tenant, "oncall"), "approve", tenant.pk)
