"""Each try of each call: when it left, how long it took, what came back, and what comes next."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from console import looks
from console.builders import words
from console.builders.record import Record
from console.looks import Look
from console.pages.task import AttemptRow
from runs.models import Action, Attempt

MOST_TOLD = 300
_KINDS = {
    "timeout": "Timed out after dispatch",
    "connection_lost": "Connection lost after dispatch",
    "exception": "Broke off after dispatch",
    "not_sent": "Not sent",
}
_DECLARED = {
    "rate_limited": "Rate limited",
    "not_sent": "Not sent",
    "business_rule": "Refused by a rule",
    "invalid_input": "Refused: input not usable",
    "unknown": "The tool cannot tell",
}


def rows(record: Record, worker: str) -> list[AttemptRow]:
    """All tries of a run, oldest first; `worker` is the agent that made them."""
    by_time = sorted((attempt for tries in record.attempts.values() for attempt in tries), key=lambda one: one.pk)
    actions = {action.pk: action for action in record.actions}
    return [
        _row(record, actions[attempt.action_id], attempt, worker)
        for attempt in by_time
        if attempt.action_id in actions
    ]


def came_back(attempt: Attempt) -> Look:
    """The badge of what came back, with the status or the way it broke off."""
    look = looks.look("attempt", attempt.observed or "dispatched")
    seen: dict[str, Any] = attempt.observation or {}
    if attempt.observed is None:
        return look.saying("No report yet")
    if seen.get("kind") == "reply":
        return look.saying(f"{seen.get('status', '')} {_said(attempt, look)}".strip())
    if not seen:
        return look.saying("No report before the lease ended")
    if seen.get("declared") == "needs_input":
        return looks.ATTEMPT["needs_input"]
    if seen.get("declared") in _DECLARED:
        return look.saying(_DECLARED[seen["declared"]])
    return look.saying(_KINDS.get(str(seen.get("kind")), look.word))


def declared(attempt: Attempt) -> bool:
    """Whether the tool's author said what this meant, by a typed answer, instead of us reading it from a failure."""
    return bool((attempt.observation or {}).get("declared"))


def told(attempt: Attempt) -> str:
    """What a typed answer said in words, as it was recorded (redacted there); empty where there is none."""
    seen: dict[str, Any] = attempt.observation or {}
    said = " ".join(str(seen.get("message") or "").split()).replace("`", "'") if seen.get("declared") else ""
    return said if len(said) <= MOST_TOLD else f"{said[: MOST_TOLD - 1]}…"


def broken_by(attempt: Attempt) -> str:
    """The type of the exception that ended the tool's own code; empty where it was none."""
    seen: dict[str, Any] = attempt.observation or {}
    named = str(seen.get("exc_type") or "").replace("`", "'")
    return f"The tool's own code raised {named}" if seen.get("kind") == "exception" and named else ""


def missing(action: Action, attempt: Attempt | None) -> str:
    """The field that the requester has to fill in or change; empty where nobody named one."""
    seen: dict[str, Any] = (attempt.observation or {}) if attempt else {}
    return str(action.error_field or seen.get("declared_field") or "").replace("`", "'")


def bytes_words(attempt: Attempt) -> str:
    """How much left and how much came back, where the boundary counted it."""
    seen: dict[str, Any] = attempt.observation or {}
    sent, back = seen.get("bytes_sent"), seen.get("body_bytes")
    if seen.get("kind") == "reply" or sent is None:
        return ""
    return f"{sent:,} bytes sent, {back or 0:,} back"


def _said(attempt: Attempt, look: Look) -> str:
    reasons = {
        "provider_rate_limited": "rate limited",
        "business_rule_violation": "refused by a rule",
        "provider_unavailable": "the provider failed",
        "partial_effect": "a part is done",
        "async_pending": "accepted, its end is open",
    }
    if attempt.observed == "ok_valid":
        return "valid reply"
    return reasons.get(attempt.reason_code or "", look.word.lower())


def _row(record: Record, action: Action, attempt: Attempt, worker: str) -> AttemptRow:
    last = attempt.number == action.attempts
    text, at = _next(action, last)
    asked = attempt.retry_after_seconds
    return AttemptRow(
        tool=action.step,
        number=attempt.number,
        limit=record.limit(action),
        look=came_back(attempt),
        layer=attempt.layer,
        worker=worker,
        next_text=text,
        next_at=at,
        dispatched_at=attempt.dispatched_at,
        latency_ms=attempt.latency_ms,
        left=max(record.limit(action) - action.attempts, 0) if last and action.settled_at is None else None,
        note=f"asks for {words.lasting(asked)}" if asked else _note(attempt),
    )


def _note(attempt: Attempt) -> str:
    return told(attempt) or broken_by(attempt) or bytes_words(attempt)


def _next(action: Action, last: bool) -> tuple[str, datetime | None]:
    if not last:
        return "tried again", None
    if action.settled_at is not None:
        return {"succeeded": "closed ok", "void": "closed, nothing happened"}.get(action.state, "closed"), None
    if action.reason_code == "user_input_required":
        return "the requester answers by", action.due_at
    if action.due_at is not None:
        return (
            "tried again at" if action.state in ("refused_transient", "absent_final") else "look-up at"
        ), action.due_at
    return {"permitted": "waits for the report", "probing": "look-up under way"}.get(
        action.state, "none planned"
    ), None
