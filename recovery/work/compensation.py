"""Beginning a rollback: the goal turns, what was never sent is void, and the effects are taken back one by one."""

from __future__ import annotations

from recovery import escalation, settle, turns
from runs import record
from runs.models import Run
from runs.record import Actor
from runs.states import RUN_OPEN

RESOLUTION = "The run is being rolled back."


def begin(run: Run, actor: Actor, reason: str) -> None:
    """Set the goal to rollback and start with the latest effect; the run is locked.

    A second order changes nothing, and an ended run is not taken back: that is a run of its own (DECISIONS 1).
    """
    if run.state not in RUN_OPEN or run.goal == "rollback":
        return
    record.move_run(
        run, "compensating", actor, kind="compensating", reason=reason, goal="rollback", outcome=None,
        reason_code=None, failed_step=None,
    )  # fmt: skip
    turns.abandon(run, actor)
    for action in run.actions.filter(settled_at__isnull=True).exclude(state="permitted").exclude(role="item"):
        if action.attempts == 0:
            record.move_action(action, "void", actor, run=run, kind="void", reason_code="not_applied")
            escalation.resolve_tasks(run, action=action, actor=actor, resolution=RESOLUTION)
        else:
            settle.apply(run, action, actor)
    for task in run.tasks.filter(action=None, state__in=("open", "claimed", "reopened")):
        escalation.close(task, actor=actor, resolution=RESOLUTION)
    settle.refresh_run(run, actor)
