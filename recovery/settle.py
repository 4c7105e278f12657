"""Carry out what the table says about one action, and bring its run into the state that follows.

Called by the report, the sweep, the worker and the verbs alike, inside their transaction and under the run's lock:
there is one place where an answer of the table becomes rows (DESIGN: one way in, one transaction).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta

from steadyhand.contract import OUTCOME_OF

from recovery import batches, closing, contradictions, escalation, fallbacks, letters, sla
from recovery import case as cases
from recovery.course import end_cancelling as end_cancelling
from recovery.course import refresh_run as refresh_run
from recovery.endings import escalate_run as escalate_run
from recovery.rules import backoff, testimony
from recovery.rules.classify import NO_RESULT, Classified
from recovery.rules.decide import Action as Answer
from recovery.rules.situation import surely_nothing
from recovery.step import Step
from recovery.tasks import ring
from recovery.work import orders
from recovery.work.orders import NEVER_SENT
from runs import gathering, vault
from runs.models import Action, Run
from runs.record import Actor
from runs.states import may_move

_LOOKED = ("absent", "probe_failed", "processing", "partial")


def settle(run: Run, action: Action, actor: Actor, *, classified: Classified | None = None) -> cases.Case:
    """Ask the table about this action, do what it says in the record, refresh the run; returns the case."""
    case = apply(run, action, actor, classified=classified)
    refresh_run(run, actor)
    return case


def ask_if_contradicted(run: Run, action: Action, actor: Actor) -> None:
    """Ask a person at once where evidence that may move nothing contradicts what the record rests on (F028, F043).

    The action stays where it is: a settled call is not unsettled, one in flight speaks for itself when it ends, and
    one that waits is stopped by the table when it is next proposed.
    """
    case = cases.read(run, action)
    if case.answer.reason == "conflicting_evidence":
        contradictions.ask(case, actor)
    if run.state == "cancelled":
        refresh_run(run, actor)


def apply(run: Run, action: Action, actor: Actor, *, classified: Classified | None = None) -> cases.Case:
    """The action's half of `settle`: several actions may be applied before the run is refreshed once."""
    if classified is not None:
        batches.take_apart(run, action, classified, actor)
    spread = random.uniform(0.5, 1.0)  # noqa: S311  (jitter, not a secret)
    wait = backoff.retry_delay(
        max(action.attempts, 1), classified.retry_after_seconds if classified else None, spread
    )
    case = cases.read(run, action, again_in=wait)
    if case.waits_for_circuit:
        # A wait that would outlast the run's time is none: a person is asked now, not when it is over (F109).
        wait = (case.ask_again_at() - case.now).total_seconds()
        case = cases.read(run, action, again_in=wait)
    step = Step(case, actor, classified, wait)
    _HANDLERS[case.answer.action](step)
    return case


# --- what each answer of the table becomes ------------------------------------------------------------------


def _close_ok(step: Step) -> None:
    closing.prove(step)
    step.resolve("The effect is proven.")


def _close_cancelled(step: Step) -> None:
    if step.case.answer.rule != "7b":
        return closing.void(step)
    closing.prove(step)
    if step.case.tool.compensate is not None:
        closing.ask_about_kept_effect(step)
    else:
        step.resolve("The effect is proven.")
    return None


def _close_no_effect(step: Step) -> None:
    """Nothing stands: because nothing happened, or because somebody took it back where it stood (F141)."""
    if testimony.undone_outside(step.case.known):
        closing.prove(step)  # the rollback, which is next, writes down that it was taken back
    else:
        closing.void(step)


def _fatal(step: Step) -> None:
    """The call is refused for good; whether the run can go on is for the agent or a person (DESIGN: refusals)."""
    reason = _refusal(step)
    field = step.classified.field if step.classified else ""
    kept = OUTCOME_OF[reason].value in ("needs_human", "needs_input")
    asks = {"due_at": sla.answer_by(step.run, step.case.now)} if OUTCOME_OF[reason].value == "needs_input" else {}
    step.move("held" if kept else "refused_permanent", kind="refused", reason_code=reason, error_field=field, **asks)
    letters.close(step.run, step.action, step.actor, effect=False)
    if step.is_undo:
        _undo_failed(step)
    elif kept:
        escalation.open_task(step.run, reason, action=step.action, actor=step.actor)
    else:
        step.resolve("The provider refused it.")


def _refusal(step: Step) -> str:
    if testimony.job_failed(step.case.known):
        return "remote_operation_failed"
    return step.classified.reason if step.classified else (step.last_reason() or "policy_denied")


def _human(step: Step) -> None:
    reason = _question(step)
    if fallbacks.gives_way(step.case.tool, step.case.answer.rule):
        return step.move("refused_permanent", kind="refused", reason_code=reason, due_at=None)
    step.move("held", kind="held", reason_code=reason, due_at=None)
    if step.is_undo:
        return _undo_failed(step)
    if reason == "retry_exhausted":
        nothing = step.case.evidence.effect == "read" or surely_nothing(step.case.evidence)
        letters.write(step.run, step.action, step.actor, nothing_happened=nothing)
    if reason == "conflicting_evidence" and step.run.goal != "rollback":
        contradictions.ask(step.case, step.actor)
        return None
    escalation.open_task(
        step.run, reason, action=step.action, actor=step.actor, kind=_kind(step, reason), page=step.case.page(reason)
    )  # fmt: skip
    return None


def _question(step: Step) -> str:
    reason = step.case.answer.reason
    if reason == "conflicting_evidence" and _is_key_conflict(step):
        return "idempotency_key_conflict"
    if reason == "budget_exhausted":
        next_due_at = step.case.known.next_due_at or step.case.now
        return cases.spent_budget(step.run, max(step.case.now, next_due_at)) or reason
    return reason


def _kind(step: Step, reason: str) -> str | None:
    twice = contradictions.kind_of(step.action) if reason == "conflicting_evidence" else None
    return twice or ("compensation" if step.run.goal == "rollback" else None)


def _undo_failed(step: Step) -> None:
    """What an undo came to decides over nothing further: it stops here, with what is left (F138, F139)."""
    reason = "compensation_failed"
    escalation.open_task(
        step.run, reason, action=step.action, actor=step.actor, kind="compensation", page=step.case.page(reason)
    )  # fmt: skip


def _is_key_conflict(step: Step) -> bool:
    just_now = step.classified is not None and step.classified.key_conflict
    return just_now or step.action.reason_code == "idempotency_key_conflict"


def _ask_approval(step: Step) -> None:
    """Shut because a person holds the task: what is to be done with it is theirs. Else an approval is missing."""
    if _is_effect_to_undo(step):
        return _await_rollback(step)
    if step.is_undo and step.action.attempts == 0:
        # It is asked for with the plan that it stands in, by whoever refreshes the run; meanwhile it only waits.
        due_at = step.case.now + timedelta(seconds=step.retry_in)
        return step.move(step.action.state, kind="waiting", due_at=due_at)
    claimed = escalation.holder(step.run) is not None
    settled = "external_outcome_unknown" if step.case.answer.rule == "9f" else "external_outcome_resolved"
    reason = settled if claimed else "approval_required"
    step.move("held", kind="held", reason_code=reason, due_at=None)
    escalation.open_task(
        step.run, reason, action=step.action, actor=step.actor, kind="reconcile_write" if claimed else None
    )
    return None


def _retry(step: Step) -> None:
    """Free the same action for another try: at once where the provider asked for no pause after a proven look.

    A call that was never sent stays what it is, and is only due.
    """
    proven_absent = step.case.evidence.verdict == "absent_final"
    at_once = proven_absent or letters.is_replayed(letters.of(step.action))
    due_at = step.case.now if at_once else step.case.now + timedelta(seconds=step.retry_in)
    if step.action.attempts == 0 and step.action.state in NEVER_SENT:
        return step.move(step.action.state, kind="waiting", reason_code=None, due_at=due_at)
    step.move(_freed_state(step), kind="retry_planned", reason_code=step.waiting_reason(), due_at=due_at)
    if proven_absent:
        step.resolve("It is proven that nothing happened.")
    return None


def _freed_state(step: Step) -> str:
    """Under which state the same call waits to be sent once more."""
    if step.action.attempts == 0 and step.action.state in NEVER_SENT:
        return step.action.state
    if step.case.evidence.verdict == "absent_final":
        return "absent_final"
    if step.case.answer.rule not in ("9c", "9d"):
        return "refused_transient"
    # What an earlier look said stands: it began while a person held the task, and the key is live all the same.
    return "unknown" if may_move("action", step.action.state, "unknown") else step.action.state


def _look(step: Step) -> None:
    _plan_look(step, step.case.next_look_at())


def _plan_look(step: Step, due_at: datetime | None) -> None:
    """The outcome is open and a look can settle it: plan it, and open the task unless it is only a proof (7c), or a
    job that was accepted and has until the run's end (9b)."""
    waits = "async_pending" if due_at is not None else "external_outcome_unknown"
    reason = {"7c": "proof_pending", "9b": waits}.get(step.case.answer.rule, "external_outcome_unknown")
    step.move(
        _looked_state(step), kind="outcome_unknown", reason_code=reason, due_at=due_at,
        uncertain_since=step.case.uncertain_since, **_accepted(step),
    )  # fmt: skip
    if OUTCOME_OF[reason].value == "needs_human":
        page = step.case.page(reason, answers_later=due_at is not None)
        kind = "compensation" if step.is_undo or step.run.goal == "rollback" else None
        escalation.open_task(step.run, reason, action=step.action, actor=step.actor, kind=kind, page=page)


def _looked_state(step: Step) -> str:
    verdict, state = step.case.evidence.verdict, step.action.state
    if verdict in _LOOKED and (verdict == state or may_move("action", state, verdict)):
        return verdict
    if state == "unknown" or may_move("action", state, "unknown"):
        return "unknown"
    # A message may come between two looks: what the last of them said stands until the next. What an absence had
    # freed, and it proves nothing any more, is a person's beside the look (F028).
    return state if state in _LOOKED else "held"


def _accepted(step: Step) -> dict[str, object]:
    """What the provider said when it accepted the job: a poll or a callback finds it by that."""
    found = step.classified
    if found is None or not found.processing or found.result is NO_RESULT:
        return {}
    sealed = vault.seal(step.case.definition.keys, found.result)
    return {"external_id": found.external_id, "sealed_result": sealed}


def _wait(step: Step) -> None:
    if step.case.answer.reason == "look_due":
        return _look(step)
    if step.case.answer.reason == "circuit":
        return _wait_for_circuit(step)
    return step.move(step.action.state, kind="waiting", due_at=step.case.now + timedelta(seconds=step.retry_in))


def _wait_for_circuit(step: Step) -> None:
    """What would be called is given a rest: the call, the look or the undo asks again after the pause (F115).

    A trial that nobody who waits may make himself is made by the worker, so that the circuit can close again (F114).
    """
    due_at = step.case.now + timedelta(seconds=step.retry_in)
    if _is_effect_to_undo(step):
        _await_rollback(step)
    elif step.case.would.action is Answer.PROBE:
        _plan_look(step, due_at)
    elif step.action.reason_code == "circuit_open" and step.action.state == _freed_state(step):
        gathering.change(step.action, {}, {"due_at": due_at})  # still waiting: nothing new to tell
    else:
        step.move(_freed_state(step), kind="waiting", reason_code="circuit_open", due_at=due_at)
    if step.case.evidence.circuit == "half_slot":
        orders.order_trial(step.case, actor=step.actor, ring=ring)


def _is_effect_to_undo(step: Step) -> bool:
    return step.run.goal == "rollback" and not step.is_undo


def _await_rollback(step: Step) -> None:
    """An effect that is to be taken back is written down first; its turn comes in the order of the rollback."""
    if step.case.evidence.verdict == "partial_final":
        return step.move("partial_final", kind="partial", due_at=None)
    closing.prove(step)
    return step.resolve("The effect is proven; it is taken back next.")


_HANDLERS: dict[Answer, Callable[[Step], None]] = {
    Answer.CLOSE_OK: _close_ok,
    Answer.CLOSE_CANCELLED: _close_cancelled,
    Answer.CLOSE_NO_EFFECT: _close_no_effect,
    Answer.FATAL: _fatal,
    Answer.HUMAN: _human,
    Answer.WAIT: _wait,
    Answer.RETRY: _retry,
    Answer.PROBE: _look,
    Answer.COMPENSATE: _await_rollback,
    Answer.ASK_APPROVAL: _ask_approval,
}
