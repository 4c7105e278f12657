"""When a question may not wait for somebody to open the queue (ruling 13). Pure.

Never for one limit that was hit, an approval or a call that used up its tries: those wait for working hours.
"""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN = ("external_outcome_unknown", "partial_effect", "conflicting_evidence", "duplicate_effect")
WAITS_FOR_A_DECISION = (
    "approval_required", "external_outcome_resolved", "compensation_required", "not_compensable", "residual_unsigned",
)  # fmt: skip
UNDO_FAILED = ("compensation_failed",)


@dataclass(frozen=True)
class Question:
    """What a person is asked, and about what.

    `unknown`: whether the call may have changed something that nobody can tell. `answers_later`: whether a look-up,
    a poll, a callback or another try may still settle it without anybody.
    """

    reason_code: str
    effect: str
    unknown: bool
    over_threshold: bool
    irreversible: bool
    answers_later: bool


def pages(question: Question) -> str | None:
    """Why this pages, in a sentence; None where it does not."""
    if question.reason_code in UNDO_FAILED:
        return "An undo failed or nobody knows whether it worked."
    decided = question.reason_code in WAITS_FOR_A_DECISION
    if question.effect != "write" or not question.unknown or decided:
        return None
    if question.over_threshold:
        return "A write above the value threshold may or may not have happened."
    if question.irreversible:
        return "A write that cannot be undone may or may not have happened."
    if question.reason_code in UNKNOWN and not question.answers_later:
        return "A write may or may not have happened, and nothing will tell by itself."
    return None
