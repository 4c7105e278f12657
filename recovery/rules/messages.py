"""What the customer is told and what an operator reads, by reason code. Pure templates: no model prose, no exception
text (SEC-35, I14)."""

from __future__ import annotations

from steadyhand.contract import OUTCOME_OF, Outcome, StructuredError

_DONE = "Your request is done."
_TRYING = "This is taking longer than usual; we are still trying."
_REVIEW = "Your request is under review. We will confirm as soon as we are certain."
_CHANGE = "We need something from you before we can go on."
_REFUSED = "We could not do this."

_CUSTOMER: dict[str, str] = {
    "provider_rate_limited": "The service is busy. We will try again shortly.",
    "user_input_required": _CHANGE,
    "business_rule_violation": "We could not do this: the provider's rules do not allow it.",
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
    "external_outcome_unknown": "Outcome unknown after dispatch",
    "external_outcome_resolved": "Outcome settled, a person decides on the rest",
    "conflicting_evidence": "Records contradict each other",
    "duplicate_effect": "More than one effect found",
    "partial_effect": "Only part of it happened",
    "retry_exhausted": "All tries used, nothing happened",
    "deadline_exceeded": "The deadline has passed",
    "budget_exhausted": "A budget is used up",
    "turn_budget_exhausted": "The model used all its turns",
    "tool_call_budget_exhausted": "The run used all its tool calls",
    "time_budget_exhausted": "The run used all its time",
    "token_budget_exhausted": "The run used all its tokens",
    "cost_budget_exhausted": "The run used all its money",
    "approval_required": "Waits for an approval",
    "user_input_required": "The requester must change something",
    "credentials_invalid": "The connection was refused by its provider",
    "required_effect_missing": "A required effect is missing",
    "postcondition_unproven": "The reply is not yet confirmed",
    "idempotency_key_conflict": "The provider knows our key with other data",
    "effect_after_cancel": "An effect stands after the cancel",
    "not_compensable": "The effect cannot be undone",
}

_SUGGEST: dict[str, list[str]] = {
    "invalid_arguments": ["change the named field", "ask the requester for the missing value"],
    "unsupported_operation": ["use one of the tools that were offered"],
    "policy_denied": ["tell the requester that this is not permitted"],
    "permission_denied": ["tell the requester that this is not permitted"],
    "business_rule_violation": ["tell the requester which rule refused it"],
    "resource_not_found": ["check the identifier with the requester"],
    "user_input_required": ["ask the requester for the named field"],
}

_FOR_MODEL: dict[str, str] = {
    "invalid_arguments": "The arguments break the tool's schema.",
    "unsupported_operation": "This tool does not exist here.",
    "policy_denied": "This call is outside what the run is authorized to do.",
    "permission_denied": "The provider does not permit this.",
    "business_rule_violation": "The provider's rules refuse this; repeating it cannot help.",
    "resource_not_found": "The target does not exist.",
    "invalid_tool_result": "The tool's answer could not be used.",
    "user_input_required": "The requester must change the request first.",
    "external_outcome_unknown": "It is not known whether an earlier call took effect. "
    "Say neither that it did nor that it did not.",
}


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


def title(reason: str) -> str:
    """A sentence of what is the matter, for a list of tasks."""
    return TITLES.get(reason, reason.replace("_", " ").capitalize())


def error_for_model(reason: str, *, field: str = "", detail: str = "") -> StructuredError:
    """A refusal as the model may read it: code, field, what to do; never internals."""
    sentence = _FOR_MODEL.get(reason) or _BY_OUTCOME_FOR_MODEL[OUTCOME_OF[reason]]
    return StructuredError(
        code=reason,
        retryable=False,
        field=field or None,
        message=f"{sentence} {detail}".strip() if detail else sentence,
        suggested_actions=_SUGGEST.get(reason, []),
    )
