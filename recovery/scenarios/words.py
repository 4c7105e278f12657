"""The words of the format and ours: which reasons, kinds of task and states of an effect mean the same. Pure."""

from __future__ import annotations

from typing import Any

SAME_REASON = {
    "retry_exhausted": "retry_ceiling_exhausted",
    "credentials_revoked": "credentials_invalid",
    "approval_expired": "input_deadline_passed",
    "deadline_exceeded": "time_budget_exhausted",
    "precondition_failed": "business_rule_violation",
    "duplicate_effect": "conflicting_evidence",
    "compensation_required": "compensation_failed",
}
"""Names that the format knows under another word, or lets fall together."""
SAME_KIND = {
    "blocked_work": "decide_next",
    "conflicting_action": "decide_next",
    "budget": "decide_next",
    "required_effect": "decide_next",
    "reconnect_tool": "access_request",
    "request_input": "input",
    "provide_input": "input",
    "approve": "approval",
    "approve_action": "approval",
    "conflicting_evidence": "duplicate_effect",
    "question": "input",
    "answer_question": "input",
    "user_input": "input",
    "approve_arguments": "approval",
    "missing_effect": "decide_next",
    "stopped_run": "decide_next",
    "partial_effect": "reconcile_write",
    "complete_partial": "reconcile_write",
}


def plain_reason(code: str | None) -> str | None:
    return SAME_REASON.get(code or "", code)


def also(task: dict[str, Any]) -> str:
    """A write of which parts are done is found out about and decided on alike."""
    return "decide_next" if task["reason"] == "partial_effect" else task["kind"]


def plain_kind(kind: str) -> str:
    return SAME_KIND.get(kind, kind)


EFFECT_WORDS = {
    "unknown": "unknown", "applied": "applied", "done": "applied", "proven": "applied", "not_applied": "none",
    "none": "none", "not_sent": "none", "not_started": "none", "compensated": "undone", "undone": "undone",
    "reversed": "undone",
}  # fmt: skip


_NO_EFFECT = (
    "void", "rejected", "refused_permanent", "refused_transient", "absent_final", "awaiting_approval", "proposed",
    "approved",
)  # fmt: skip


def effect_state(state: str, proven: bool) -> str:
    """What is known of a call's effect: applied, undone, none or unknown."""
    if state == "compensated":
        return "undone"
    if proven or state in ("succeeded", "compensating", "compensation_held"):
        return "applied"
    return "none" if state in _NO_EFFECT else "unknown"
