"""A run's own moves: a turn is counted, the agent finishes, somebody cancels. The run is locked by the caller."""

from __future__ import annotations

from datetime import datetime

from steadyhand.contract import OUTCOME_OF, Finish, Turn, TurnAnswer

from recovery import case as cases
from recovery import escalation, leases, settle
from recovery.rules import messages
from runs import definitions, record, redact
from runs.models import Action, Run
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import RUN_OPEN

POLICY = ("policy_denied",)
# No model uses that much: a sum that reaches it stays there, above any ceiling, and still fits its column.
MAX_COUNTED = 2**61
RECONCILED = ("completed_late_result", "completed_reconciled", "already_in_desired_state")


def count_turn(run: Run, told: Turn, actor: Actor) -> TurnAnswer:
    """Add a turn and its usage; the ceiling that has been reached is named and stops the run (F090, F100)."""
    if run.state not in RUN_OPEN or run.goal != "forward":
        return _stopped(run)
    if run.turns >= run.max_turns:
        settle.escalate_run(run, "turn_budget_exhausted", actor)
        return _stopped(run)
    _add_usage(run, told)
    spent = cases.spent_budget(run, read_clock())
    if spent is not None:
        settle.escalate_run(run, spent, actor)
        return _stopped(run)
    return TurnAnswer(answer="go", turn=run.turns)


def finish(run: Run, told: Finish, actor: Actor) -> None:
    """End the run if its record allows an end; the closing sentence is kept as a claim (I14)."""
    leases.expire_of_run(run)
    run.refresh_from_db()
    if told.claim and not run.claim:
        Run.objects.filter(pk=run.pk).update(claim=redact.clean_text(told.claim))
        run.refresh_from_db()
    if run.state not in ("planning", "executing"):
        return None
    if told.ended_by == "turn_limit":
        return settle.escalate_run(run, "turn_budget_exhausted", actor)
    refused = uncorrected_refusal(run)
    if refused is not None:
        return _fail(run, refused, actor)
    contradicted = escalation.contradiction(run)
    if contradicted is not None and contradicted.action is not None:
        return settle.escalate_run(run, "conflicting_evidence", actor, failed_step=contradicted.action.step)
    missing = missing_effect(run)
    if missing is not None:
        return settle.escalate_run(run, "required_effect_missing", actor, failed_step=missing)
    return _complete(run, actor)


def cancel(run: Run, actor: Actor, *, reason: str) -> None:
    """Set the goal to cancel, void what was never dispatched, and end as soon as nothing is in flight."""
    record.move_run(run, "cancelling", actor, kind="cancelling", reason=reason, goal="cancel")
    for action in run.actions.filter(settled_at__isnull=True).exclude(state="permitted"):
        if action.attempts == 0:
            record.move_action(action, "void", actor, run=run, kind="void", reason_code="not_applied")
            escalation.resolve_tasks(run, action=action, actor=actor, resolution="The run was cancelled.")
        else:
            settle.apply(run, action, actor)
    for task in run.tasks.filter(action=None, state__in=("open", "claimed", "reopened")):
        escalation.close(task, actor=actor, resolution="The run was cancelled.")
    settle.refresh_run(run, actor)


def uncorrected_refusal(run: Run) -> Action | None:
    """The first refusal that no later success of its step or tool made good; a policy denial is never made good."""
    refusals = run.actions.filter(state__in=("rejected", "refused_permanent")).order_by("id")
    for refused in refusals:
        later = run.actions.filter(state="succeeded", id__gt=refused.id)
        corrected = later.filter(step=refused.step).exists() or later.filter(tool=refused.tool).exists()
        if refused.reason_code in POLICY or not corrected:
            return refused
    return None


def missing_effect(run: Run) -> str | None:
    """The first tool whose proven effect the workflow demands and the run lacks."""
    required = definitions.of_run(run).manifest.required_effects
    proven = set(run.actions.filter(state="succeeded").values_list("tool", flat=True))
    return next((tool for tool in required if tool not in proven), None)


def _complete(run: Run, actor: Actor) -> None:
    reasons = set(run.actions.filter(state="succeeded", effect="write").values_list("reason_code", flat=True))
    reason = next((code for code in RECONCILED if code in reasons), "completed")
    record.move_run(
        run, "completed", actor, kind="completed", outcome="ok", reason_code=reason, failed_step=None,
        customer_message=messages.customer_message(reason), operator_detail="",
    )  # fmt: skip


def _fail(run: Run, refused: Action, actor: Actor) -> None:
    reason = refused.reason_code or "policy_denied"
    record.move_run(
        run, "failed", actor, kind="failed", outcome=OUTCOME_OF[reason].value, reason_code=reason,
        failed_step=refused.step, customer_message=messages.customer_message(reason),
        operator_detail=messages.title(reason),
    )  # fmt: skip


def _add_usage(run: Run, told: Turn) -> None:
    """One guarded UPDATE: the ceiling stands in the statement, so that two turns cannot share the last one."""
    used = told.usage
    states_changes = {
        "turns": run.turns + 1,
        "input_tokens": _sum(run.input_tokens, used.input_tokens),
        "output_tokens": _sum(run.output_tokens, used.output_tokens),
        "cost_minor": _sum(run.cost_minor, used.cost_minor),
        "usage_estimated": run.usage_estimated or used.input_tokens is None or used.output_tokens is None,
        "version": run.version + 1,
    }
    Run.objects.filter(pk=run.pk).update(**states_changes)
    run.refresh_from_db()


def _sum(so_far: int, more: int | None) -> int:
    return min(so_far + (more or 0), MAX_COUNTED)


def _stopped(run: Run) -> TurnAnswer:
    return TurnAnswer(
        answer="stop", turn=run.turns, error=messages.error_for_model(run.reason_code or "stopped_by_operator")
    )


def earliest_due(run: Run) -> datetime | None:
    """When the run's next waiting action falls due."""
    due: datetime | None = (
        run.actions.filter(due_at__isnull=False).order_by("due_at").values_list("due_at", flat=True).first()
    )
    return due
