"""Beginning a rollback: the goal turns, what was never sent is void, and the effects are taken back one by one."""

from __future__ import annotations

from recovery import escalation, settle, tasks, turns, undos
from recovery.giving_up import Question
from recovery.work import orders
from runs import definitions, record
from runs.models import Run
from runs.record import Actor
from runs.states import RUN_OPEN

RESOLUTION = "The run is being rolled back."
ORDERED_ANEW = "The undo was ordered anew."


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


def go_on(run: Run, asked: Question, actor: Actor) -> None:
    """Take up a rollback that stopped at an undo which did nothing: that one is ordered anew, then the rest.

    What is undone is not repeated: the new undo is for the one effect that still stands, under an identity and a key
    of its own. Raises undos.Impossible (F138).
    """
    original, before, definition = asked.original, asked.undo, definitions.of_run(run)
    assert original is not None  # noqa: S101  (policy: there is something to order anew)
    made = undos.write(run, original, undos.draw_up(definition, original), definition, actor)
    for action in (before, original):
        if action is not None:
            escalation.resolve_tasks(run, action=action, actor=actor, resolution=ORDERED_ANEW)
    settle.refresh_run(run, actor)
    made.refresh_from_db()
    if made.state == "proposed":
        orders.send_now(run, made, actor=actor, ring=tasks.ring)
