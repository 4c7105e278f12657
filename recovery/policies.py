"""What a tenant decides for all its workflows: hours, pauses, reminders, teams and who leads them.

A workflow's manifest goes before it, part by part; what neither says is plain: every hour counts, no pause stops the
clock, an approval is asked for again after half and after four fifths of its time.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import time
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import Field, StringConstraints
from steadyhand.manifest import Manifest, Part, Pause, Reminders, WorkingHours

from recovery import permissions
from recovery.rules.hours import Hours
from runs import gathering
from runs.models import Person, Tenant

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
REMINDERS = (0.5, 0.8)
TeamName = Annotated[str, StringConstraints(min_length=1, max_length=80)]
Address = Annotated[str, StringConstraints(pattern=r"^[^@\s]+@[^@\s]+$", max_length=254)]


class Team(Part):
    """`lead` has what a colleague leaves behind; `escalates_to` gets an approval that nobody gives in time."""

    lead: Address | None = None
    escalates_to: Address | None = None


class TenantPolicy(Part):
    """The document of `manage.py tenant_policy`."""

    sla_hours: WorkingHours | None = None
    sla_pauses: list[Pause] | None = None
    approval_reminders: Reminders | None = None
    teams: Annotated[dict[TeamName, Team], Field(max_length=200)] = {}


@dataclass(frozen=True)
class Service:
    """How the clock of a task runs: its hours (None: always), the pauses that stop it, shares of reminders."""

    hours: Hours | None
    pauses: tuple[str, ...]
    reminders: tuple[float, ...]


def of_tenant(tenant_id: uuid.UUID) -> TenantPolicy:
    """The tenant's policy; the wall is open."""
    return gathering.once((TenantPolicy, tenant_id), lambda: _read(tenant_id))


def _read(tenant_id: uuid.UUID) -> TenantPolicy:
    kept: dict[str, Any] = Tenant.objects.values_list("policy", flat=True).get(pk=tenant_id)
    return TenantPolicy.model_validate(kept)


def service(manifest: Manifest, tenant_id: uuid.UUID) -> Service:
    policy = of_tenant(tenant_id)
    pauses = policy.sla_pauses if manifest.sla_pauses is None else manifest.sla_pauses
    shares = policy.approval_reminders if manifest.approval_reminders is None else manifest.approval_reminders
    return Service(
        hours=hours_of(manifest.sla_hours or policy.sla_hours),
        pauses=tuple(pauses or ()),
        reminders=REMINDERS if shares is None else tuple(sorted(shares)),
    )


def hours_of(declared: WorkingHours | None) -> Hours | None:
    if declared is None:
        return None
    return Hours(
        zone=ZoneInfo(declared.time_zone),
        days=frozenset(DAYS.index(day) for day in declared.days),
        opens=time.fromisoformat(declared.opens),
        closes=None if declared.closes == "24:00" else time.fromisoformat(declared.closes),
        holidays=frozenset(declared.holidays),
    )


def lead(tenant_id: uuid.UUID, team: str) -> Person | None:
    """Who has what a colleague of this team left behind; None where nobody is named who could act."""
    named = of_tenant(tenant_id).teams.get(team)
    return permissions.colleague(tenant_id, named.lead) if named and named.lead else None


def next_approver(tenant_id: uuid.UUID, team: str) -> Person | None:
    """Who is asked when an approval does not come: whom the team names, else its lead, else an admin."""
    named = of_tenant(tenant_id).teams.get(team, Team())
    addresses = [address for address in (named.escalates_to, named.lead) if address]
    found = (permissions.colleague(tenant_id, address, ability="approve") for address in addresses)
    admins = permissions.people(tenant_id, "administer")
    return next((person for person in found if person is not None), None) or next(iter(admins), None)
