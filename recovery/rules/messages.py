"""What the customer is told and what an operator reads, by reason code. Pure templates: no model prose, no exception
text (SEC-35, I14)."""

from __future__ import annotations

from steadyhand.contract import OUTCOME_OF, Outcome, StructuredError

_DONE = "Your request is done."
_TRYING = "This is taking longer than usual; we are still trying."
_REVIEW = "Your request is under review. We will confirm as soon as we are certain."
_CHANGE = "We need something from you before we can go on."
_REFUSED = "We could not do this."
_TAKEN_BACK = "What had been done was taken back."
_TAKEN_BACK_IN_PART = "What had been done was taken back only in part; we will tell you what remains."
_NOT_TAKEN_BACK = "What had been done could not be taken back; we will tell you what remains."

_CUSTOMER: dict[str, str] = {
    "provider_rate_limited": "The service is busy. We will try again shortly.",
    "call_rate_limited": "The service is busy. We will try again shortly.",
    "async_pending": "Your request was accepted and is being worked on.",
    "user_input_required": _CHANGE,
    "input_deadline_passed": "We did not hear back from you in time, so a colleague takes over.",
    "business_rule_violation": "We could not do this: the provider's rules do not allow it.",
    "remote_operation_failed": "We could not do this: the provider reports that it failed.",
    "precondition_failed": "We could not do this: something it relies on has changed meanwhile.",
    "permission_denied": "We could not do this: it is not permitted.",
    "policy_denied": "We could not do this: it is not permitted.",
    "resource_not_found": "We could not do this: what it concerns was not found.",
    "approval_required": "Your request waits for an approval.",
    "cancelled_by_user": "Your request was cancelled. Nothing was changed.",
    "cancelled_with_effects": "Your request was cancelled. Some steps had already been done; we will tell you which.",
    "cancelled_effect_unknown": "Your request was cancelled. We are checking whether one step had already been done.",
}

_BY_OUTCOME = {
    Outcome.OK: _DONE,
    Outcome.RETRYABLE: _TRYING,
    Outcome.NEEDS_INPUT: _CHANGE,
    Outcome.NEEDS_HUMAN: _REVIEW,
    Outcome.FATAL: _REFUSED,
    Outcome.CANCELLED: "Your request was cancelled.",
}

TITLES: dict[str, str] = {
    "completed": "Done",
    "completed_reconciled": "Done, proven by a look",
    "completed_late_result": "Done, its own result came late",
    "already_in_desired_state": "Already as it should be",
    "provider_rate_limited": "The provider asked us to slow down",
    "provider_unavailable": "The provider is not available",
    "connect_failed": "The call never left",
    "credential_refresh": "The credential had run out, a new one is fetched",
    "async_pending": "Accepted, its end is still open",
    "proof_pending": "Answered, not yet confirmed",
    "circuit_open": "The provider is given a rest",
    "look_due": "Waits for its next look",
    "call_rate_limited": "Our own limit for this tool is reached",
    "external_outcome_unknown": "Outcome unknown after dispatch",
    "external_outcome_resolved": "Outcome settled, a person decides on the rest",
    "conflicting_evidence": "Records contradict each other",
    "duplicate_effect": "More than one effect found",
    "partial_effect": "Only part of it happened",
    "compensation_failed": "An undo failed or its outcome is unknown",
    "compensation_required": "An effect waits to be undone",
    "residual_unsigned": "An undo left a rest that somebody has to accept",
    "retry_exhausted": "All tries are used up",
    "deadline_exceeded": "The deadline has passed",
    "budget_exhausted": "A budget is used up",
    "turn_budget_exhausted": "The model used all its turns",
    "tool_call_budget_exhausted": "The run used all its tool calls",
    "time_budget_exhausted": "The run used all its time",
    "token_budget_exhausted": "The run used all its tokens",
    "cost_budget_exhausted": "The run used all its money",
    "usage_unmeasured": "What the model used is not known",
    "no_progress_loop": "The same call came back with the same answer again and again",
    "approval_required": "Waits for an approval",
    "approval_expired": "Nobody approved in time",
    "user_input_required": "The requester must change something",
    "input_deadline_passed": "The requester did not answer in time",
    "credentials_invalid": "The connection was refused by its provider",
    "credentials_revoked": "The connection was revoked by its provider",
    "required_effect_missing": "A required effect is missing",
    "postcondition_unproven": "The reply is not yet confirmed",
    "idempotency_key_conflict": "The provider knows our key with other data",
    "effect_after_cancel": "An effect stands after the cancel",
    "not_compensable": "The effect cannot be undone",
    "definition_changed": "The workflow changed while the run waited",
    "unadmitted_effect": "An effect outside that no call admits",
    "effects_unlisted": "What happened outside cannot be listed",
    "stopped_by_operator": "Stopped by an operator",
    "invalid_tool_result": "The tool's answer breaks its contract",
    "invalid_arguments": "The arguments cannot be used",
    "truncated_arguments": "The model's arguments were cut off",
    "unsupported_operation": "A tool was asked for that does not exist",
    "permission_denied": "Not permitted by the provider",
    "policy_denied": "Not permitted by policy",
    "business_rule_violation": "Refused by a rule of the provider",
    "resource_not_found": "The target does not exist",
    "unexpected_redirect": "The provider pointed somewhere else",
    "remote_operation_failed": "The provider accepted the work and reports that it failed",
    "not_applied": "Proven not applied",
    "partly_compensated": "Taken back in part",
    "precondition_failed": "What the call relies on has changed",
    "cancelled_by_user": "Cancelled, nothing was changed",
    "cancelled_with_effects": "Cancelled, effects exist",
    "cancelled_effect_unknown": "Cancelled, one write is still unknown",
}

_ASK_PERSON = ["wait for the person who looks into it", "work on what does not depend on it"]
_SUGGEST: dict[str, list[str]] = {
    "invalid_arguments": ["change the named field", "ask the requester for the missing value"],
    "truncated_arguments": ["propose the same call with shorter arguments"],
    "unsupported_operation": ["use one of the tools that were offered"],
    "policy_denied": ["tell the requester that this is not permitted"],
    "permission_denied": ["tell the requester that this is not permitted"],
    "business_rule_violation": ["tell the requester that the provider's rules refuse it"],
    "resource_not_found": ["check the identifier with the requester"],
    "precondition_failed": ["read the current state again", "then propose a new call that fits it"],
    "unexpected_redirect": ["tell the requester that the provider could not be reached as expected"],
    "remote_operation_failed": ["tell the requester that the provider reported a failure"],
    "invalid_tool_result": ["go on without this result", "use another tool for the same question"],
    "user_input_required": ["ask the requester for the named field"],
    "no_progress_loop": ["stop repeating this call", "say what is missing instead"],
    "call_rate_limited": ["propose the same call again once the wait is over"],
    "provider_rate_limited": ["propose the same call again once the wait is over"],
    "provider_unavailable": ["propose the same call again once the wait is over"],
    "external_outcome_unknown": _ASK_PERSON,
    "partial_effect": _ASK_PERSON,
    "conflicting_evidence": _ASK_PERSON,
    "credentials_invalid": _ASK_PERSON,
    "credentials_revoked": _ASK_PERSON,
}

_FOR_MODEL: dict[str, str] = {
    "already_in_desired_state": "What was asked for is already so.",
    "provider_rate_limited": "The provider asked to slow down; the same call may be made again after the wait.",
    "provider_unavailable": "The provider does not answer well at the moment; the call may be made again later.",
    "connect_failed": "The provider could not be reached; the call may be made again later.",
    "credential_refresh": "The credential had run out; the runtime fetches a new one and makes the call again.",
    "async_pending": "The provider accepted this and is still working on it. It is not done yet.",
    "call_rate_limited": "This tool may not be called more often at the moment; wait, then propose the call again.",
    "invalid_arguments": "The arguments break the tool's schema.",
    "truncated_arguments": "The arguments were cut off before their end.",
    "unsupported_operation": "This tool does not exist here.",
    "policy_denied": "This call is outside what the run is authorized to do.",
    "permission_denied": "The provider does not permit this.",
    "business_rule_violation": "The provider's rules refuse this; repeating it cannot help.",
    "resource_not_found": "The target does not exist.",
    "precondition_failed": "What this call relies on has changed since it was read.",
    "unexpected_redirect": "The provider pointed somewhere else instead of answering.",
    "remote_operation_failed": "The provider reports that the operation failed.",
    "invalid_tool_result": "The tool's answer could not be used.",
    "user_input_required": "The requester must change the request first.",
    "no_progress_loop": "The same call came back with the same answer several times; once more brings nothing new.",
    "definition_changed": "The workflow changed while the run waited; a person decides how it goes on.",
    "partial_effect": "Only some items of this call are done; a person looks at the others. Do not repeat the call.",
    "conflicting_evidence": "The records of this call contradict each other; a person decides. Do not repeat it.",
    "credentials_invalid": "The connection to the provider must be renewed by a person before this can go on.",
    "credentials_revoked": "The connection to the provider must be renewed by a person before this can go on.",
    "external_outcome_unknown": "It is not known whether an earlier call took effect. "
    "Say neither that it did nor that it did not.",
}


_RAISED = "A person may raise it; the run is resumed after that. Do not say that it was done, nor that it was not."
_FOR_MODEL |= {
    reason: f"{TITLES[reason]}. {_RAISED}"
    for reason in (
        "budget_exhausted", "turn_budget_exhausted", "tool_call_budget_exhausted", "time_budget_exhausted",
        "token_budget_exhausted", "cost_budget_exhausted",
    )
}  # fmt: skip
_FOR_MODEL["not_applied"] = "This call is closed and is not made again as it stands."
_SUGGEST["not_applied"] = ["ask the requester whether it is still wanted"]
_FOR_MODEL["stopped_by_operator"] = "An operator stopped this. Do not say that it was done, nor that it was not."


# Never that a call was not carried out: only a proof may say so, and a reason code is none (I14).
_BY_OUTCOME_FOR_MODEL: dict[Outcome, str] = {
    Outcome.OK: "This is settled already; the run takes no further calls.",
    Outcome.RETRYABLE: "This call has not come to an end yet.",
    Outcome.NEEDS_INPUT: "The requester must change the request first.",
    Outcome.NEEDS_HUMAN: "A person decides how this goes on. Do not say that it was done, nor that it was not.",
    Outcome.FATAL: "This call is refused.",
    Outcome.CANCELLED: "The run was cancelled.",
}


def customer_message(reason: str) -> str:
    return _CUSTOMER.get(reason) or _BY_OUTCOME[OUTCOME_OF[reason]]


def taken_back(reason: str) -> str:
    """What the customer of a run is told whose effects were all undone; `reason` is what its end is called by."""
    if reason == "not_applied":
        return _TAKEN_BACK
    said = "Your request was cancelled." if reason == "cancelled_by_user" else customer_message(reason)
    return f"{said} {_TAKEN_BACK}"


def left_over(*, cancelled: bool, something_undone: bool) -> str:
    """What the customer of a run is told of which a part stays that was to be taken back (F142)."""
    ended = _BY_OUTCOME[Outcome.CANCELLED] if cancelled else _REFUSED
    return f"{ended} {_TAKEN_BACK_IN_PART if something_undone else _NOT_TAKEN_BACK}"


def title(reason: str) -> str:
    """A sentence of what is the matter, for a list of tasks."""
    return TITLES.get(reason, reason.replace("_", " ").capitalize())


def error_for_model(reason: str, *, field: str = "", detail: str = "") -> StructuredError:
    """What stands in the way, as the model may read it: code, whether the same call may be made again, field, what to
    do; never internals."""
    sentence = _FOR_MODEL.get(reason) or _BY_OUTCOME_FOR_MODEL[OUTCOME_OF[reason]]
    return StructuredError(
        code=reason,
        retryable=OUTCOME_OF[reason] is Outcome.RETRYABLE,
        field=field or None,
        message=f"{sentence} {detail}".strip() if detail else sentence,
        suggested_actions=_SUGGEST.get(reason, []),
    )
