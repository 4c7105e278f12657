"""What becomes of a call whose lease ran out unreported: unknown for a write, repeatable for a read (I1, F004)."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from recovery import settle
from runs import gathering, record
from runs.models import Attempt, Run
from runs.querysets import database_now, read_clock
from runs.record import TIMER


def expire_of_run(run: Run) -> int:
    """End every attempt of this run whose lease is over; the run is locked. Returns how many there were."""
    now = read_clock()
    open_tries = gathering.rows(Attempt, "run_id", run.pk, _over)
    expired = [one for one in open_tries if one.ended_at is None and one.lease_until <= now]
    for attempt in expired:
        _expire(run, attempt)
    return len(expired)


def _over(tries: QuerySet[Attempt]) -> QuerySet[Attempt]:
    return tries.filter(ended_at=None, lease_until__lte=database_now()).select_related("action")


def _expire(run: Run, attempt: Attempt) -> None:
    """The bounds run from the lease's end, not from the moment that somebody noticed it (DECISIONS 2)."""
    action = attempt.action
    reason = "external_outcome_unknown" if action.effect == "write" else "provider_unavailable"
    ended: datetime = attempt.lease_until
    if not record.end_attempt(
        attempt, run=run, fence=attempt.fence, ended_at=ended, observed="unknown", reason_code=reason
    ):
        return
    gathering.refresh(run)
    gathering.refresh(action)
    record.write_event(
        run, "lease_expired", TIMER, action=action, from_state=action.state, to_state=action.state,
        reason="No report came before the lease ended.", data={"attempt": attempt.number, "step": action.step},
    )  # fmt: skip
    settle.settle(run, action, TIMER)
