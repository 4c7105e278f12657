"""One bounded, reasoned top-up of the budget that stopped a run (I8): never a second one, never a free one."""

from __future__ import annotations

from datetime import datetime, timedelta

from recovery import escalation, settle
from recovery.panel import Panel
from recovery.rules.situation import Ceiling
from recovery.work.wishes import Done, Order, Unusable
from runs.models import Run
from runs.querysets import read_clock
from runs.record import Actor


def top_up(seen: Panel, order: Order, actor: Actor) -> Done:
    """Raise the fired ceiling, and let the run go on under it. Raises Unusable for an amount out of bounds."""
    fired, task, run = seen.situation.fired, seen.task, seen.run
    assert fired is not None  # noqa: S101  (policy: a ceiling fired)
    more = fired.most if order.amount is None else order.amount
    if not 1 <= more <= fired.most:
        raise Unusable("amount", f"Add 1 to {fired.most:,} {fired.label}.")
    raised = _raised(run, fired, more, read_clock())
    Run.objects.filter(pk=run.pk).update(topped_up=task.reason_code, **{fired.field: raised})
    run.refresh_from_db()
    escalation.close(task, actor=actor, resolution=f"{order.by} added {more:,} {fired.label}.")
    if task.action is not None and task.action.settled_at is None:
        settle.settle(run, task.action, actor)
    else:
        settle.refresh_run(run, actor)
    kept: dict[str, object] = {"ceiling": fired.field, "before": fired.limit, "added": more}
    return Done(f"Added {more:,} {fired.label}. It cannot be topped up again.", kept)


def _raised(run: Run, fired: Ceiling, more: int, now: datetime) -> int | datetime:
    """Time counts from now: what a run spent waiting for a person is not its own."""
    if fired.field == "elapses_at":
        return max(now, run.elapses_at) + timedelta(seconds=more)
    return fired.limit + more
