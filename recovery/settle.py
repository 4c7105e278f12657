"""Carry out what the table says about one action, and bring its run into the state that follows.

Called by the report, the sweep, the worker and the verbs alike, inside their transaction and under the run's lock:
there is one place where an answer of the table becomes rows (DESIGN: one way in, one transaction).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from steadyhand.contract import OUTCOME_OF

from recovery import case as cases
from recovery import escalation
from recovery.case import Case
from recovery.rules import assembly, backoff, messages
from recovery.rules.classify import NO_RESULT, Classified
from recovery.rules.decide import Action as Answer
from runs import record, vault
from runs.models import Action, Evidence, Run
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import RUN_OPEN

PROOF_REASON = {
    "response": "completed",
    "probe": "completed_reconciled",
    "late_report": "completed_late_result",
    "callback": "completed_late_result",
    "person": "completed_reconciled",
}


@dataclass(frozen=True)
class Step:
    """One settling: the case, who acts, and what the answer just brought, if an answer brought it."""

    case: Case
    actor: Actor
    classified: Classified | None
    retry_in: float

    @property
    def run(self) -> Run:
        return self.case.run

    @property
    def action(self) -> Action:
        return self.case.action


def settle(run: Run, action: Action, actor: Actor, *, classified: Classified | None = None) -> Case:
    """Ask the table about this action, do what it says in the record, refresh the run; returns the case."""
    case = apply(run, action, actor, classified=classified)
    refresh_run(run, actor)
    return case


def ask_if_contradicted(run: Run, action: Action, actor: Actor) -> None:
    """Ask a person at once where evidence that may move nothing contradicts what the record rests on (F028, F043).

    The action stays where it is: a settled call is not unsettled, one in flight speaks for itself when it ends, and
    one that waits is stopped by the table when it is next proposed.
    """
    if cases.read(run, action).answer.reason == "conflicting_evidence":
        kind = "duplicate_effect" if _counted_twice(action) else None
        escalation.open_task(run, "conflicting_evidence", action=action, actor=actor, kind=kind)
        _correct(run, actor)


def apply(run: Run, action: Action, actor: Actor, *, classified: Classified | None = None) -> Case:
    """The action's half of `settle`: several actions may be applied before the run is refreshed once."""
    spread = random.uniform(0.5, 1.0)  # noqa: S311  (jitter, not a secret)
    wait = backoff.retry_delay(
        max(action.attempts, 1), classified.retry_after_seconds if classified else None, spread
    )
    case = cases.read(run, action, next_due_at=read_clock() + timedelta(seconds=wait))
    _HANDLERS[case.answer.action](Step(case, actor, classified, wait))
    return case


def refresh_run(run: Run, actor: Actor) -> None:
    """Move the run to the worst state of its open actions (DESIGN: parallel calls), or end its cancelling."""
    run.refresh_from_db()
    if run.state not in RUN_OPEN:
        _correct(run, actor)
    elif run.state == "cancelling":
        end_cancelling(run, actor)
    else:
        _follow_actions(run, actor)


def end_cancelling(run: Run, actor: Actor) -> None:
    """Cancelled as soon as nothing is in flight; a write still unknown keeps its task (F135)."""
    if run.in_flight:
        return
    reason = _cancelled_reason(run)
    record.move_run(
        run, "cancelled", actor, kind="cancelled", outcome="cancelled", reason_code=reason,
        customer_message=messages.customer_message(reason),
    )  # fmt: skip


def escalate_run(run: Run, reason: str, actor: Actor, *, failed_step: str | None = None) -> None:
    """Stop the run for a person because of the run itself: a budget, a deadline, a missing effect."""
    if run.state == "escalated" and run.reason_code == reason:
        return
    escalation.open_task(run, reason, action=None, actor=actor)
    record.move_run(
        run, "escalated", actor, kind="escalated", outcome=OUTCOME_OF[reason].value, reason_code=reason,
        failed_step=failed_step, customer_message=messages.customer_message(reason),
    )  # fmt: skip


# --- what each answer of the table becomes ------------------------------------------------------------------


def _close_ok(step: Step) -> None:
    _prove(step)
    escalation.resolve_tasks(step.run, action=step.action, actor=step.actor, resolution="The effect is proven.")


def _close_cancelled(step: Step) -> None:
    if step.case.answer.rule != "7b":
        return _void(step)
    _prove(step)
    escalation.resolve_tasks(step.run, action=step.action, actor=step.actor, resolution="The effect is proven.")
    if step.case.tool.compensate is not None:
        escalation.open_task(
            step.run, "cancelled_with_effects", action=step.action, actor=step.actor, kind="effect_after_cancel"
        )
    return None


def _void(step: Step) -> None:
    _move(step, "void", kind="void", reason_code="not_applied")
    escalation.resolve_tasks(
        step.run, action=step.action, actor=step.actor, resolution="It is proven that nothing happened."
    )


def _fatal(step: Step) -> None:
    """The call is refused for good; whether the run can go on is for the agent or a person (DESIGN: refusals)."""
    reason = step.classified.reason if step.classified else (_last_reason(step.action) or "policy_denied")
    field = step.classified.field if step.classified else ""
    kept = OUTCOME_OF[reason].value in ("needs_human", "needs_input")
    _move(step, "held" if kept else "refused_permanent", kind="refused", reason_code=reason, error_field=field)
    if kept:
        escalation.open_task(step.run, reason, action=step.action, actor=step.actor)
    else:
        escalation.resolve_tasks(
            step.run, action=step.action, actor=step.actor, resolution="The provider refused it."
        )


def _human(step: Step) -> None:
    reason = step.case.answer.reason
    if reason == "conflicting_evidence" and _is_key_conflict(step):
        reason = "idempotency_key_conflict"
    if reason == "budget_exhausted":
        reason = cases.spent_budget(step.run, step.case.now) or reason
    _move(step, "held", kind="held", reason_code=reason, due_at=None)
    kind = "duplicate_effect" if reason == "conflicting_evidence" and _counted_twice(step.action) else None
    escalation.open_task(step.run, reason, action=step.action, actor=step.actor, kind=kind)


def _counted_twice(action: Action) -> bool:
    return action.evidence.filter(verdict="conflict", count__gte=2).exists()


def _is_key_conflict(step: Step) -> bool:
    just_now = step.classified is not None and step.classified.key_conflict
    return just_now or step.action.reason_code == "idempotency_key_conflict"


def _ask_approval(step: Step) -> None:
    """Shut because a person holds the task: the settled outcome is theirs to act on. Else an approval is missing."""
    claimed = escalation.holder(step.run) is not None
    reason = "external_outcome_resolved" if claimed else "approval_required"
    _move(step, "held", kind="held", reason_code=reason, due_at=None)
    escalation.open_task(
        step.run, reason, action=step.action, actor=step.actor, kind="reconcile_write" if claimed else None
    )


def _retry(step: Step) -> None:
    """Free the same action for another try: at once where the provider asked for no pause after a proven look."""
    proven_absent = step.case.evidence.verdict == "absent_final"
    state = "absent_final" if proven_absent else "refused_transient"
    if step.case.answer.rule == "9d":
        state = "unknown"
    reason = _waiting_reason(step)
    due_at = step.case.now if proven_absent else step.case.now + timedelta(seconds=step.retry_in)
    _move(step, state, kind="retry_planned", reason_code=reason, due_at=due_at)
    if proven_absent:
        escalation.resolve_tasks(
            step.run, action=step.action, actor=step.actor, resolution="It is proven that nothing happened."
        )


def _look(step: Step) -> None:
    """The outcome is open and a look can settle it: plan it, and open the task unless it is only a proof (7c)."""
    rule, now = step.case.tool.reconcile, step.case.now
    since = step.case.known.tries[-1].ended_at or now
    due_at = backoff.next_look_at(
        now=now, looks=step.action.looks, first_look_seconds=rule.first_look_seconds if rule else 0,
        final_from=step.case.final_at, uncertain_since=since,
    )  # fmt: skip
    if step.case.final_at is not None and assembly.early_looks_spent(step.case.known):
        due_at = max(due_at, step.case.final_at)
    reason = {"7c": "proof_pending", "9b": "async_pending"}.get(step.case.answer.rule, "external_outcome_unknown")
    state = step.case.evidence.verdict if step.case.evidence.verdict in _LOOKED else "unknown"
    _move(step, state, kind="outcome_unknown", reason_code=reason, due_at=due_at, uncertain_since=since)
    if OUTCOME_OF[reason].value == "needs_human":
        escalation.open_task(step.run, reason, action=step.action, actor=step.actor)


def _wait(step: Step) -> None:
    if step.case.answer.reason == "look_due":
        return _look(step)
    return _move(step, step.action.state, kind="waiting", due_at=step.case.now + timedelta(seconds=step.retry_in))


def _compensate(step: Step) -> None:
    """Undoing is carried out by a later part of the product; until then a person decides and nothing is sent."""
    _move(step, "held", kind="held", reason_code="compensation_required", due_at=None)
    escalation.open_task(step.run, "compensation_required", action=step.action, actor=step.actor)


_LOOKED = ("absent", "probe_failed", "processing", "partial")

_HANDLERS: dict[Answer, Callable[[Step], None]] = {
    Answer.CLOSE_OK: _close_ok,
    Answer.CLOSE_CANCELLED: _close_cancelled,
    Answer.CLOSE_NO_EFFECT: _void,
    Answer.FATAL: _fatal,
    Answer.HUMAN: _human,
    Answer.WAIT: _wait,
    Answer.RETRY: _retry,
    Answer.PROBE: _look,
    Answer.COMPENSATE: _compensate,
    Answer.ASK_APPROVAL: _ask_approval,
}


def _prove(step: Step) -> None:
    """Close the action on the strongest proof there is, and write the effect down."""
    action, found = step.action, _found(step.action)
    if step.case.evidence.verdict in ("present", "present_final") and found is not None:
        by, external_id, sealed = found.kind, found.external_id, found.sealed_record
    else:
        by, external_id, sealed = "response", *_from_reply(step)
    reason = step.classified.reason if step.classified and by == "response" else PROOF_REASON[by]
    _move(
        step, "succeeded", kind="succeeded", reason_code=reason, external_id=external_id, sealed_result=sealed,
        due_at=_recount_at(step),
    )  # fmt: skip
    if action.effect == "write":
        record.prove_effect(action, run=step.run, by=by, external_id=external_id)


def _recount_at(step: Step) -> datetime | None:
    """When to count once more what was believed on less than a final look (DECISIONS 2); None if it was final."""
    connector = step.case.definition.connector(step.case.tool)
    after = assembly.recount_after(step.case.tool, connector.kind if connector else None)
    if after is None or step.case.evidence.verdict == "present_final":
        return None
    since = step.case.known.tries[-1].ended_at or step.case.now
    return max(step.case.now, since + timedelta(seconds=after))


def _found(action: Action) -> Evidence | None:
    return action.evidence.filter(verdict__in=("present", "present_final")).order_by("-strength", "-id").first()


def _from_reply(step: Step) -> tuple[str, bytes | None]:
    if step.classified is None or step.classified.result is NO_RESULT:
        kept = step.action.sealed_result
        return step.action.external_id, bytes(kept) if kept else None
    return step.classified.external_id, vault.seal(step.case.definition.keys, step.classified.result)


def _move(step: Step, to: str, *, kind: str, **changes: Any) -> None:
    record.move_action(
        step.action, to, step.actor, run=step.run, kind=kind, reason=f"Rule {step.case.answer.rule}.", **changes
    )


def _waiting_reason(step: Step) -> str:
    reason = step.classified.reason if step.classified else _last_reason(step.action)
    return reason if reason and OUTCOME_OF[reason].value == "retryable" else "provider_unavailable"


def _last_reason(action: Action) -> str | None:
    return action.tries.order_by("-number").values_list("reason_code", flat=True).first() or action.reason_code


# --- the run ------------------------------------------------------------------------------------------------

_RANK = ("escalated", "verifying", "compensating", "recovering", "waiting_for_tool", "executing")
SENT_AGAIN = ("provider_unavailable", "provider_rate_limited", "connect_failed")
"""Reasons under which a call waits to be sent again; an unknown write carries one only under a live key."""
_RUN_STATE_OF = {
    "permitted": "waiting_for_tool",
    "refused_transient": "recovering",
    "absent_final": "recovering",
    "held": "escalated",
    "awaiting_approval": "escalated",
    "partial_final": "escalated",
    "conflict": "escalated",
}


def _follow_actions(run: Run, actor: Actor) -> None:
    opens = list(run.actions.filter(settled_at__isnull=True).order_by("id"))
    worst = min(opens, key=lambda action: _RANK.index(_state_for(action)), default=None)
    if run.state == "escalated" and escalation.has_run_task(run):
        return
    to = _state_for(worst) if worst else "executing"
    reason = worst.reason_code if worst and to in ("escalated", "verifying", "recovering") else None
    if to == run.state and reason == run.reason_code:
        return
    record.move_run(run, to, actor, kind=_kind(run.state, to), **_words(worst, reason))


def _state_for(action: Action) -> str:
    """An unknown write that its live key lets us send again waits for that, not for a look (rule 9d)."""
    if action.state == "unknown" and action.reason_code in SENT_AGAIN:
        return "recovering"
    return _RUN_STATE_OF.get(action.state, "verifying")


def _kind(before: str, to: str) -> str:
    """`ready` tells a runner that proposals are welcome again (events feed)."""
    stood = before in ("verifying", "escalated", "recovering", "compensating")
    return "ready" if stood and to in ("executing", "recovering") else to


def _words(action: Action | None, reason: str | None) -> dict[str, Any]:
    if reason is None or action is None:
        return {
            "outcome": None,
            "reason_code": None,
            "failed_step": None,
            "customer_message": "",
            "operator_detail": "",
        }
    return {
        "outcome": OUTCOME_OF[reason].value,
        "reason_code": reason,
        "failed_step": action.step,
        "customer_message": messages.customer_message(reason),
        "operator_detail": messages.title(reason),
    }


def _cancelled_reason(run: Run) -> str:
    unsettled = run.actions.filter(settled_at__isnull=True, effect="write")
    if unsettled.exists() or escalation.contradiction(run) is not None:
        return "cancelled_effect_unknown"
    return "cancelled_with_effects" if run.effects.exists() else "cancelled_by_user"


def _correct(run: Run, actor: Actor) -> None:
    """Later evidence moves a cancelled run's reason code, never its outcome (ruling 5)."""
    if run.state != "cancelled":
        return
    reason = _cancelled_reason(run)
    if reason != run.reason_code:
        record.move_run(
            run, "cancelled", actor, kind="corrected", reason_code=reason,
            customer_message=messages.customer_message(reason), ended_at=run.ended_at,
        )  # fmt: skip
