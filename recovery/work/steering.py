"""What a person does to a run that stands still: the same call again, on, back, or to its end."""

from __future__ import annotations

from recovery import escalation, letters, lifecycle, settle, undos
from recovery.models import DeadLetter
from recovery.panel import Panel
from recovery.rules.authority import discarded_by_two, replayed_by_two
from recovery.work import compensation, dead_letters, second
from recovery.work.wishes import Done, Order, Refused
from runs.models import Action, Person
from runs.record import Actor


def retry(seen: Panel, order: Order, actor: Actor) -> Done:
    action = seen.call
    Action.objects.filter(pk=action.pk).update(gate_open=True)
    action.refresh_from_db()
    settle.settle(seen.run, action, actor)
    return Done("The same call may be sent again.")


def resume(seen: Panel, order: Order, actor: Actor) -> Done:
    if seen.run.goal == "rollback":
        return _resume_rollback(seen, actor)
    escalation.close(seen.task, actor=actor, resolution=f"{order.by} let the run go on.")
    settle.refresh_run(seen.run, actor)
    return Done("The run may go on.")


def _resume_rollback(seen: Panel, actor: Actor) -> Done:
    try:
        compensation.go_on(seen.run, seen.question, actor)
    except undos.Impossible as why:
        raise Refused(str(why), "6a") from why
    return Done("The undo is ordered anew; what is undone already is not repeated.")


def cancel(seen: Panel, order: Order, actor: Actor) -> Done:
    lifecycle.cancel(seen.run, actor, reason=order.reason)
    return Done("Cancelled; what is proven stays listed.")


def compensate(seen: Panel, order: Order, actor: Actor) -> Done:
    compensation.begin(seen.run, actor, order.reason)
    return Done("Undoing has begun; each undo is proven before the next.", {"ordered": seen.plan_hash})


def replay(seen: Panel, order: Order, actor: Actor) -> Done:
    """One more try, or above the threshold the wish for it, bound to the letter as it stands."""
    if replayed_by_two(seen.situation):
        return second.ask(seen, order, "for one more try of exactly this call", letters.bound_to(_letter(seen)))
    return _replay(seen, order.by, actor)


def confirm_replay(seen: Panel, order: Order, actor: Actor) -> Done:
    second.give_back(seen.task)
    return _replay(seen, _asker(seen), actor)


def discard(seen: Panel, order: Order, actor: Actor) -> Done:
    """The end of it, or while an effect is unknown the wish for it, bound to the letter as it stands."""
    if discarded_by_two(seen.situation):
        return second.ask(seen, order, "to discard the dead letter", letters.bound_to(_letter(seen)))
    return _discard(seen, order.by, actor, order.reason, agreed=False)


def confirm_discard(seen: Panel, order: Order, actor: Actor) -> Done:
    second.give_back(seen.task)
    reason = f"{seen.statement}; {order.by} agrees: {order.reason}"
    return _discard(seen, _asker(seen), actor, reason, agreed=True)


def _replay(seen: Panel, by: Person, actor: Actor) -> Done:
    try:
        dead_letters.replay(_letter(seen), by=by, actor=actor)
    except dead_letters.NotNow as wrong:
        raise Refused(str(wrong), "letter") from wrong
    return Done("One more try of exactly this call is permitted.")


def _discard(seen: Panel, by: Person, actor: Actor, reason: str, *, agreed: bool) -> Done:
    try:
        dead_letters.discard(_letter(seen), by=by, actor=actor, reason=reason, agreed=agreed)
    except dead_letters.NotNow as wrong:
        raise Refused(str(wrong), "letter") from wrong
    return Done("Given up: nothing more is sent. The record stays.")


def _letter(seen: Panel) -> DeadLetter:
    assert seen.letter is not None  # noqa: S101  (policy: a dead letter stands behind the task)
    return seen.letter


def _asker(seen: Panel) -> Person:
    assert seen.statement is not None  # noqa: S101  (policy: a wish waits)
    return seen.statement.by
