"""Somebody leaves: no right is left from that moment on, and what they held goes back at once (F129)."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import Q

from recovery import permissions
from recovery.models import Handover, HumanTask
from recovery.work import handing, offering
from runs import record, wall
from runs.models import Person
from runs.record import Actor


class LastAdmin(Exception):
    """The person is the only admin of a tenant, so that nobody could give a role to anybody afterwards."""

    def __init__(self, tenant_id: uuid.UUID) -> None:
        super().__init__(str(tenant_id))
        self.tenant_id = tenant_id


def deactivate(person: Person, actor: Actor) -> int:
    """Take all rights away and give back what the person held; returns how many tasks. A second time changes nothing.

    What a crash or a right that was taken away elsewhere leaves behind, the sweep gives back. Raises LastAdmin.
    """
    tenants = permissions.roles_of(person)
    for tenant_id in tenants:
        if [other.pk for other in permissions.people(tenant_id, "administer")] == [person.pk]:
            raise LastAdmin(tenant_id)
    with transaction.atomic():
        if not Person.objects.filter(pk=person.pk, is_active=True).update(is_active=False):
            return 0
        person.is_active = False
        return sum(_leave(tenant_id, person, actor) for tenant_id in tenants)


def _leave(tenant_id: uuid.UUID, person: Person, actor: Actor) -> int:
    with wall.within(tenant_id, by="person"):
        data = {"person": str(person.pk)}
        record.write_event(None, "person_deactivated", actor, tenant_id=tenant_id, data=data)
        held = HumanTask.objects.filter(Q(claimed_by=person) | Q(owner=person), state__in=handing.RETURNABLE)
        offered = Handover.objects.filter(Q(by=person) | Q(to=person), state="offered")
        involved = {*held.values_list("run_id", flat=True), *offered.values_list("run_id", flat=True)}
        runs = [run for run_id in sorted(involved) if (run := record.lock_run(run_id)) is not None]
        for run in runs:
            offering.left(run, person, actor)
        return sum(handing.take_back(run, actor) for run in runs)
