"""A runner comes back to its run: is it the right one, and does it get anywhere? (F020, F022)

The run is locked by the caller.
"""

from __future__ import annotations

from steadyhand.contract import Resume

from recovery import leases, permits, reading, settle
from runs import record
from runs.models import Event, Run
from runs.record import Actor

MOST_RECOVERIES = 10


def admit(run: Run, told: Resume, actor: Actor) -> None:
    """Settle what ran out meanwhile, and count this return; a run that only ever comes back is a person's.

    Returns that find nothing to do, because a person or a look-up is waited for, do not count.
    """
    if leases.expire_of_run(run):
        run.refresh_from_db()
    if told.workflow_id not in (None, str(run.workflow_id)):
        permits.another_version(run, "resume", actor)
        return
    if not reading.is_ready(run):
        return
    recoveries = 1 if _got_on(run) else run.recoveries + 1
    if recoveries > MOST_RECOVERIES:
        settle.escalate_run(run, "no_progress_loop", actor)
        recoveries = 0  # whoever lets the run go on gives it as many returns again
    else:
        record.write_event(run, "resumed", actor, to_state=run.state, data={"recoveries": recoveries})
    Run.objects.filter(pk=run.pk).update(recoveries=recoveries)
    run.refresh_from_db()


def _got_on(run: Run) -> bool:
    """Whether a call has been settled since the runner last came back."""
    last = (
        Event.objects.filter(run=run, kind="resumed")
        .order_by(*Event.NEWEST_FIRST)
        .values_list("at", flat=True)
        .first()
    )
    return last is None or run.actions.filter(settled_at__gt=last).exists()
