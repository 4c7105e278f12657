"""A person agrees to one exact call, or refuses it, or nobody answers in time (DECISIONS 1, F124 to F128)."""

from __future__ import annotations

from collections.abc import Callable

from recovery import escalation, planning, settle, tasks
from recovery.panel import Panel
from recovery.rules import messages
from recovery.work import attestations, orders, second, steering, waivers
from recovery.work.wishes import Done, Order, Unusable
from runs import definitions, record
from runs.models import Action, Run
from runs.querysets import read_clock
from runs.record import TIMER, Actor

EXPIRED = "approval_expired"
UNANSWERED = "input_deadline_passed"
REVIEW = "review"
"""What stands in the place of the field at fault where a person refused the call, with the code if one was chosen."""


CONFIRM: dict[str, Callable[[Panel, Order, Actor], Done]] = {
    "attest": attestations.confirm,
    "waive": waivers.confirm,
    "replay": steering.confirm_replay,
    "discard": steering.confirm_discard,
}
"""What a second person's word carries out, by the verb that asked for it."""


def approve(seen: Panel, order: Order, actor: Actor) -> Done:
    """Free exactly this call; it is sent when its agent proposes it again, or by the worker that sends it itself."""
    action = seen.call
    if seen.statement is not None:
        return CONFIRM[seen.statement.verb](seen, order, actor)
    if not seen.situation.awaiting_approval:
        return _second_word(seen, action, actor)
    plan = _agree_to_plan(seen.run) if action.role == "undo" else {}
    record.move_action(
        action, "approved", actor, run=seen.run, kind="approved", reason=order.reason,
        reason_code=None, approved_at=read_clock(), due_at=None,
    )  # fmt: skip
    escalation.close(seen.task, actor=actor, resolution=f"{order.by} approved it.")
    settle.refresh_run(seen.run, actor)
    orders.send_now(seen.run, action, actor=actor, ring=tasks.ring)
    if plan:
        return Done("Approved: exactly this plan may be carried out.", {**bound_to(action), **plan})
    return Done("Approved. Exactly this call may be sent.", bound_to(action))


def _agree_to_plan(run: Run) -> dict[str, object]:
    """An undo is approved with the plan that it stands in: the others of the plan need no further word (F143)."""
    agreed = planning.of_run(run).hash
    Run.objects.filter(pk=run.pk).update(approved_plan=agreed)
    run.refresh_from_db()
    return {"plan": agreed}


def reject(seen: Panel, order: Order, actor: Actor) -> Done:
    """End the call. Its agent is told that it is not permitted, with the reviewer's code where one was chosen."""
    action = seen.call
    if seen.statement is not None:
        return second.decline(seen, order, actor)
    _check_code(seen.run, action, order.code)
    record.move_action(
        action, "rejected", actor, run=seen.run, kind="rejected", reason=order.reason, reason_code="policy_denied",
        error_field=f"{REVIEW}.{order.code}" if order.code else REVIEW,
    )  # fmt: skip
    if action.role == "undo":
        Run.objects.filter(pk=seen.run.pk).update(approved_plan="")
        _stop_rollback(seen.run, action, actor)
    else:
        escalation.close(seen.task, actor=actor, resolution=f"{order.by} rejected it.")
    settle.refresh_run(seen.run, actor)
    return Done("Rejected. Nothing was sent.", {**bound_to(action), "code": order.code})


def expire(run: Run, action: Action) -> None:
    """Nobody answered in time: that is no approval. The call is void, and its task stays open to say so (F127).

    A rollback whose undo nobody approved stops there.
    """
    record.move_action(
        action, "void", TIMER, run=run, kind="approval_expired", reason="Nobody approved it in time.",
        reason_code=EXPIRED,
    )  # fmt: skip
    if action.role == "undo":
        _stop_rollback(run, action, TIMER)
        return settle.refresh_run(run, TIMER)
    escalation.open_task(run, EXPIRED, action=action, actor=TIMER)
    if (run.state, run.reason_code) == ("escalated", "approval_required"):
        record.move_run(
            run, "escalated", TIMER, kind="escalated", reason_code=EXPIRED, outcome="needs_human",
            failed_step=action.step, customer_message=messages.customer_message(EXPIRED),
        )  # fmt: skip
    return None


def _stop_rollback(run: Run, undo: Action, actor: Actor) -> None:
    """The question whether to undo it becomes the question what to do with an effect that stays (F138)."""
    escalation.open_task(run, "compensation_failed", action=undo, actor=actor, kind="compensation")


def give_up_waiting(run: Run, action: Action) -> None:
    """The requester did not answer in time: the call stays unsent, and somebody else has to decide (ruling 17)."""
    record.move_action(
        action, "held", TIMER, run=run, kind="input_expired", reason="The requester did not answer in time.",
        reason_code=UNANSWERED, due_at=None,
    )  # fmt: skip
    escalation.open_task(run, UNANSWERED, action=action, actor=TIMER)
    settle.refresh_run(run, TIMER)


def bound_to(action: Action) -> dict[str, object]:
    """What an approval stands for: this call with these arguments, and no other (F125)."""
    return {"action_id": action.action_id, "arguments_hash": action.arguments_hash}


def _second_word(seen: Panel, action: Action, actor: Actor) -> Done:
    """The second person of a call that is proven to have done nothing: its holder may have it sent once more."""
    Action.objects.filter(pk=action.pk).update(gate_open=True)
    action.refresh_from_db()
    settle.settle(seen.run, action, actor)
    return Done("The same call may be sent once more.", bound_to(action))


def _check_code(run: Run, action: Action, code: str) -> None:
    """Raises Unusable for a code that the tool does not declare."""
    review = definitions.of_run(run).tools[action.tool].review
    known = review.reject_codes if review else []
    if code and code not in known:
        raise Unusable("code", f"Use one of {', '.join(known)}." if known else "This tool declares no codes.")
