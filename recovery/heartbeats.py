"""A call that is still going on keeps its attempt, but never past the end of its run (F060, F103)."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from steadyhand.contract import Leased

from recovery import circuits
from recovery.answers import Conflict
from recovery.proposal import LEASE_GRACE_SECONDS
from recovery.work import stops
from runs import budgets, definitions
from runs.models import Attempt, Run
from runs.querysets import read_clock


def keep(run: Run, attempt_id: uuid.UUID, fence: int) -> Leased:
    """Prolong the lease, counted from now; `stop` asks a read to end. Raises Conflict: a lost lease stays lost."""
    attempt = Attempt.objects.filter(pk=attempt_id, run=run, fence=fence).select_related("action").first()
    now = read_clock()
    if attempt is not None and attempt.ended_at is None and attempt.lease_until > now:
        return _prolonged(run, attempt, now)
    if attempt is not None and attempt.reason_code == "cancelled_by_user" and attempt.lease_until > now:
        return Leased(lease_until=attempt.lease_until, stop=True)
    raise Conflict("The lease is lost; report what you know, and do not go on.")


def _prolonged(run: Run, attempt: Attempt, now: datetime) -> Leased:
    """As far as the permit carried it. What runs past the end of the run is unknown from there on (F103)."""
    tool = definitions.of_run(run).tools[attempt.action.tool]
    asked = min(now + timedelta(seconds=tool.timeout_seconds + LEASE_GRACE_SECONDS), budgets.ends_at(run))
    lease_until = max(attempt.lease_until, asked)
    Attempt.objects.filter(pk=attempt.pk).update(lease_until=lease_until)
    circuits.prolong(attempt, lease_until)
    stopped = stops.for_call(run, tool) is not None
    return Leased(lease_until=lease_until, stop=stopped or run.goal != "forward")
