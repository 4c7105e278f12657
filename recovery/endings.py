"""How a run ends, or stops for a person: by its record alone, whatever its agent says of it (F091, F092, I14)."""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.contract import OUTCOME_OF

from recovery import escalation, fallbacks
from recovery.rules import messages
from runs import definitions, record
from runs.models import Action, Run
from runs.record import Actor

POLICY = ("policy_denied",)
RECONCILED = ("completed_late_result", "completed_reconciled", "already_in_desired_state")


def escalate_run(
    run: Run,
    reason: str,
    actor: Actor,
    *,
    failed_step: str | None = None,
    fired: Sequence[str] = (),
    kind: str | None = None,
) -> None:
    """Stop the run for a person because of the run itself: a budget, a deadline, a missing effect.

    `fired`: every ceiling that was reached at this moment; the event names them all (F101).
    """
    if run.state == "escalated" and run.reason_code == reason:
        return
    escalation.open_task(run, reason, action=None, actor=actor, kind=kind)
    record.move_run(
        run, "escalated", actor, kind="escalated", outcome=OUTCOME_OF[reason].value, reason_code=reason,
        failed_step=failed_step, customer_message=messages.customer_message(reason),
        data={"fired": list(fired)} if fired else None,
    )  # fmt: skip


def conclude(run: Run, actor: Actor) -> None:
    """End a run whose agent is done and whose calls are settled: refused, in question, incomplete, or completed.

    A run that a person has to send on is its agent's again.
    """
    Run.objects.filter(pk=run.pk).update(finished_at=None)
    refused = uncorrected_refusal(run)
    if refused is not None:
        return _end_refused(run, refused, actor)
    contradicted = escalation.contradiction(run)
    if contradicted is not None and contradicted.action is not None:
        return escalate_run(run, "conflicting_evidence", actor, failed_step=contradicted.action.step)
    missing = missing_effect(run)
    if missing is not None:
        return escalate_run(run, "required_effect_missing", actor, failed_step=missing)
    return _complete(run, actor)


def uncorrected_refusal(run: Run) -> Action | None:
    """The first refusal that no later success of its step, its tool or its fallback made good; a policy denial is
    never made good. A call that was given up counts as one: the run did not do what it was to do."""
    refusals = run.actions.filter(state__in=("rejected", "refused_permanent", "void")).order_by("id")
    for refused in refusals:
        if refused.reason_code in POLICY or not _is_corrected(run, refused):
            return refused
    return None


def missing_effect(run: Run) -> str | None:
    """The first tool whose proven effect the workflow demands and the run lacks."""
    required = definitions.of_run(run).manifest.required_effects
    proven = set(run.actions.filter(state="succeeded").values_list("tool", flat=True))
    return next((tool for tool in required if tool not in proven), None)


def _is_corrected(run: Run, refused: Action) -> bool:
    later = run.actions.filter(state="succeeded", id__gt=refused.id)
    by_itself = later.filter(step=refused.step).exists() or later.filter(tool=refused.tool).exists()
    return by_itself or fallbacks.stood_in(run, refused) is not None


def _complete(run: Run, actor: Actor) -> None:
    reasons = set(run.actions.filter(state="succeeded", effect="write").values_list("reason_code", flat=True))
    reason = next((code for code in RECONCILED if code in reasons), "completed")
    told = [messages.customer_message(reason), *fallbacks.staleness(run)]
    record.move_run(
        run, "completed", actor, kind="completed", outcome="ok", reason_code=reason, failed_step=None,
        customer_message=" ".join(told), operator_detail="",
    )  # fmt: skip


def _end_refused(run: Run, refused: Action, actor: Actor) -> None:
    """The run fails with the refusal; a read that only came to the end of its tries is a person's to decide. It was
    given up, so there is no letter of it to replay."""
    reason = "not_applied" if refused.state == "void" else refused.reason_code or "policy_denied"
    if OUTCOME_OF[reason].value == "needs_human":
        return escalate_run(run, reason, actor, failed_step=refused.step, kind="decide_next")
    return record.move_run(
        run, "failed", actor, kind="failed", outcome=OUTCOME_OF[reason].value, reason_code=reason,
        failed_step=refused.step, customer_message=messages.customer_message(reason),
        operator_detail=messages.title(reason),
    )  # fmt: skip
