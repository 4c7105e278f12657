"""Where a run stands, as its calls stand: forward by the worst open call, back by the next effect, or to its end."""

from __future__ import annotations

from typing import Any

from steadyhand.contract import OUTCOME_OF

from recovery import escalation, rollback, undos
from recovery.endings import conclude
from recovery.rules import messages
from runs import definitions, gathering, record
from runs.models import STANDING, Action, Run
from runs.record import Actor
from runs.states import RUN_OPEN

SENT_AGAIN = (
    "provider_unavailable",
    "provider_rate_limited",
    "connect_failed",
    "credential_refresh",
    "circuit_open",
)
"""Reasons under which a call waits to be sent again; an unknown write carries one only under a live key."""
_RANK = ("escalated", "verifying", "compensating", "recovering", "waiting_for_tool", "executing")
_RUN_STATE_OF = {
    "permitted": "waiting_for_tool",
    "refused_transient": "recovering",
    "absent_final": "recovering",
    "held": "escalated",
    "awaiting_approval": "escalated",
    "partial_final": "escalated",
    "conflict": "escalated",
}
_NO_REASON: dict[str, Any] = {
    "outcome": None,
    "reason_code": None,
    "failed_step": None,
    "customer_message": "",
    "operator_detail": "",
}


def refresh_run(run: Run, actor: Actor) -> None:
    """Move the run to the worst state of its open calls (DESIGN: parallel calls), or on with its cancel, or back."""
    gathering.refresh(run)
    if run.state not in RUN_OPEN:
        _correct(run, actor)
    elif run.state == "cancelling":
        end_cancelling(run, actor)
    elif run.goal == "rollback":
        _follow_rollback(run, actor)
    else:
        _follow_actions(run, actor)


def end_cancelling(run: Run, actor: Actor) -> None:
    """Cancelled as soon as nothing is in flight; a write still unknown keeps its task (F135)."""
    if run.in_flight:
        return
    _close_known_parts(run, actor)
    reason = _cancelled_reason(run)
    record.move_run(
        run, "cancelled", actor, kind="cancelled", outcome="cancelled", reason_code=reason,
        customer_message=messages.customer_message(reason),
    )  # fmt: skip


def _follow_actions(run: Run, actor: Actor) -> None:
    """The items of a batch are not asked: the batch speaks for them."""
    unsettled = gathering.rows(Action, "run_id", run.pk, lambda found: found.filter(settled_at=None))
    opens = [action for action in unsettled if action.settled_at is None and action.role != "item"]
    worst = min(opens, key=lambda action: _RANK.index(_state_for(action)), default=None)
    if run.state == "escalated" and escalation.has_run_task(run):
        return
    to = _state_for(worst) if worst else "executing"
    reason = worst.reason_code if worst and to in ("escalated", "verifying", "recovering") else None
    if (to, reason) != (run.state, run.reason_code):
        record.move_run(run, to, actor, kind=_kind(run.state, to), **_words(worst, reason))
    if worst is None and run.finished_at is not None:
        conclude(run, actor)


def _follow_rollback(run: Run, actor: Actor) -> None:
    """Undo what is next, and stand where that stands; once nothing is left, the run is over."""
    place = rollback.proceed(run, actor)
    if place is None:
        return _end_rollback(run, actor)
    if (run.state, run.reason_code) == (place.state, place.reason):
        return None
    return record.move_run(run, place.state, actor, kind=place.state, **_words(place.action, place.reason))


def _end_rollback(run: Run, actor: Actor) -> None:
    """All is undone: failed for the reason that began it, or cancelled if the run was being cancelled before."""
    cancelled = run.events.filter(kind="cancelling").exists()
    cause, partly = rollback.cause(run), undos.left_over(run)
    reason = _cancelled_reason(run) if cancelled else "partly_compensated" if partly else cause
    to, outcome = ("cancelled", "cancelled") if cancelled else ("failed", OUTCOME_OF[reason].value)
    record.move_run(
        run, to, actor, kind=to, outcome=outcome, reason_code=reason, data={"rolled_back": not partly},
        customer_message=_told_of_rollback(run, reason, partly, cancelled),
        operator_detail=_rolled_back(cause, partly),
    )  # fmt: skip


def _told_of_rollback(run: Run, reason: str, partly: bool, cancelled: bool) -> str:
    undone = run.effects.exclude(compensated_by=None).exists()
    if partly:
        return messages.left_over(cancelled=cancelled, something_undone=undone)
    return messages.taken_back(reason) if undone else messages.customer_message(reason)


def _rolled_back(cause: str, partly: bool) -> str:
    """`not_applied` says no more than that nothing of the run stands."""
    how = "Rolled back in part" if partly else "Rolled back"
    return how if cause == "not_applied" else f"{how}: {messages.title(cause).lower()}"


def _state_for(action: Action) -> str:
    """What the worker sends waits for the worker."""
    if goes_again_unsettled(action):
        return "recovering"
    if action.state in ("proposed", "approved"):
        return "recovering" if action.reason_code == "circuit_open" else "executing"
    return _RUN_STATE_OF.get(action.state, "verifying")


def goes_again_unsettled(action: Action) -> bool:
    """Whether its live key lets an unknown write be sent again: it waits for that, not for a look (rule 9d)."""
    return action.state in ("unknown", "absent", "probe_failed") and action.reason_code in SENT_AGAIN


def _kind(before: str, to: str) -> str:
    """`ready` tells a runner that proposals are welcome again (events feed)."""
    stood = before in ("verifying", "escalated", "recovering", "compensating")
    return "ready" if stood and to in ("executing", "recovering") else to


def _words(action: Action | None, reason: str | None) -> dict[str, Any]:
    if reason is None or action is None:
        return _NO_REASON
    return {
        "outcome": OUTCOME_OF[reason].value,
        "reason_code": reason,
        "failed_step": action.step,
        "customer_message": messages.customer_message(reason),
        "operator_detail": messages.title(reason),
    }


def _close_known_parts(run: Run, actor: Actor) -> None:
    """Of a batch whose every item has its end nothing is in question: in a cancelled run nobody is asked about it,
    unless what is done of it could be taken back (7b)."""
    held = run.actions.filter(state="held", role="call", evidence__verdict="partial_final").distinct()
    for batch in held:
        items = batch.parts.filter(role="item")
        if not items.exists() or items.filter(settled_at__isnull=True).exists():
            continue
        record.move_action(batch, "partial_final", actor, run=run, kind="partial", due_at=None)
        if definitions.of_run(run).tools[batch.tool].compensate is not None:
            escalation.ask_about_kept(run, batch, actor)
        else:
            escalation.resolve_tasks(run, action=batch, actor=actor, resolution="Every item of the call has its end.")


def _cancelled_reason(run: Run) -> str:
    """What is partly done for certain is no unknown."""
    unsettled = run.actions.filter(settled_at__isnull=True, effect="write").exclude(state="partial_final")
    if unsettled.exists() or escalation.contradiction(run) is not None:
        return "cancelled_effect_unknown"
    return "cancelled_with_effects" if run.effects.filter(STANDING).exists() else "cancelled_by_user"


def _correct(run: Run, actor: Actor) -> None:
    """Later evidence moves a cancelled run's reason code, never its outcome (ruling 5)."""
    if run.state != "cancelled":
        return
    _close_known_parts(run, actor)
    reason = _cancelled_reason(run)
    if reason != run.reason_code:
        record.move_run(
            run, "cancelled", actor, kind="corrected", reason_code=reason,
            customer_message=messages.customer_message(reason), ended_at=run.ended_at,
        )  # fmt: skip
