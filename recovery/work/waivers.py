"""Accepting what stays: the rest of an undo that is proven, or all of an effect that nobody takes back (F142).

Of a run that has ended it is the question that is given up: its record and its end stay, and this stands beside them.

Giving up a whole undo takes two people, always; the rest of one that worked takes two above the threshold.
"""

from __future__ import annotations

from recovery import escalation, settle, undos
from recovery.giving_up import ENDED, Question
from recovery.panel import Panel
from recovery.rules.authority import waived_by_two
from recovery.work import second
from recovery.work.wishes import Done, Order
from runs import record
from runs.models import Action
from runs.record import Actor


def waive(seen: Panel, order: Order, actor: Actor) -> Done:
    """Carry it out, or ask for the second person that it needs."""
    if waived_by_two(seen.situation):
        return second.ask(seen, order, seen.question.words, seen.question.bound_to(seen.plan_hash))
    _carry_out(seen, seen.question, order.reason, actor, f"{order.by} accepted it.")
    return Done("Accepted; what stays is in the record.")


def confirm(seen: Panel, order: Order, actor: Actor) -> Done:
    """The second word: it is carried out as it was asked for."""
    said = seen.statement
    assert said is not None  # noqa: S101  (policy: a wish waits)
    second.give_back(seen.task)
    _carry_out(seen, seen.question, f"{said}; {order.by} agrees.", actor, f"{said}; {order.by} agreed.")
    return Done("Accepted; what stays is in the record.")


def _carry_out(seen: Panel, asked: Question, reason: str, actor: Actor, resolution: str) -> None:
    run, original, effect = seen.run, asked.original, asked.effect
    assert original is not None  # noqa: S101  (policy: something of it stays)
    if asked.kind in ENDED:
        return _leave_it(seen, original, asked.kind, reason, actor, resolution)
    assert effect is not None  # noqa: S101
    if asked.kind == "residual":
        undos.sign_off(run, effect, actor, reason)
    else:
        undos.give_up(run, original, actor, reason)
    for action in (original, asked.undo):
        if action is not None:
            escalation.resolve_tasks(run, action=action, actor=actor, resolution=resolution)
    settle.refresh_run(run, actor)
    return None


def _leave_it(seen: Panel, action: Action, kind: str, reason: str, actor: Actor, resolution: str) -> None:
    """No state moves: what is not known stays unknown, and somebody has answered for asking no further."""
    data = {"task": str(seen.task.pk), "recorded": action.state, "outcome": seen.run.outcome, "accepted": kind}
    record.write_event(seen.run, "record_accepted", actor, action=action, reason=reason, data=data)
    escalation.close(seen.task, actor=actor, resolution=f"{resolution} Accepted as it stands: {ENDED[kind]}.")
