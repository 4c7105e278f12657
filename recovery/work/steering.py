"""What a person does to a run that stands still: the same call again, on, back, or to its end."""

from __future__ import annotations

from recovery import escalation, lifecycle, settle
from recovery.panel import Panel
from recovery.work import compensation, dead_letters
from recovery.work.wishes import Done, Order, Refused
from runs.models import Action
from runs.record import Actor


def retry(seen: Panel, order: Order, actor: Actor) -> Done:
    action = seen.call
    Action.objects.filter(pk=action.pk).update(gate_open=True)
    action.refresh_from_db()
    settle.settle(seen.run, action, actor)
    return Done("The same call may be sent again.")


def resume(seen: Panel, order: Order, actor: Actor) -> Done:
    escalation.close(seen.task, actor=actor, resolution=f"{order.by} let the run go on.")
    settle.refresh_run(seen.run, actor)
    return Done("The run may go on.")


def cancel(seen: Panel, order: Order, actor: Actor) -> Done:
    lifecycle.cancel(seen.run, actor, reason=order.reason)
    return Done("Cancelled; what is proven stays listed.")


def compensate(seen: Panel, order: Order, actor: Actor) -> Done:
    compensation.begin(seen.run, actor, order.reason)
    return Done("Undoing has begun; each undo is proven before the next.")


def replay(seen: Panel, order: Order, actor: Actor) -> Done:
    assert seen.letter is not None  # noqa: S101  (policy: a dead letter stands behind the task)
    try:
        dead_letters.replay(seen.letter, by=order.by, actor=actor)
    except dead_letters.NotNow as wrong:
        raise Refused(str(wrong), "letter") from wrong
    return Done("One more try of exactly this call is permitted.")


def discard(seen: Panel, order: Order, actor: Actor) -> Done:
    assert seen.letter is not None  # noqa: S101  (policy: a dead letter stands behind the task)
    try:
        dead_letters.discard(seen.letter, by=order.by, actor=actor, reason=order.reason)
    except dead_letters.NotNow as wrong:
        raise Refused(str(wrong), "letter") from wrong
    return Done("Given up for good; the record stays.")
