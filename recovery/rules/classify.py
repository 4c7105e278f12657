"""What an answer means: an observation and the tool's contract give one typed result (DECISIONS 2, FAULTS B and E).

Pure and total. A write was refused only where the status means "not processed" or the contract says so; whatever
else comes back leaves its outcome unknown, and a status of 200 proves nothing by itself (T3, T10).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

from steadyhand.contract import Observation
from steadyhand.manifest import Tool
from steadyhand.paths import MISSING, dig

from recovery.rules import foreign
from recovery.rules.conditions import holds
from recovery.rules.evidence import Observation as Observed
from runs.redact import clean_text

MAX_RETRY_AFTER_SECONDS = 7 * 86400.0
ABSURD_SECONDS = 366 * 86400.0
NO_RESULT = object()

Validator = Callable[[Any], str | None]
"""Given a result, the first breach of the output schema as a sentence, or None."""


@dataclass(frozen=True)
class Classified:
    """One answer, typed. `result` is what the tool returned (NO_RESULT if it cannot be used)."""

    observed: Observed
    reason: str
    result: Any = NO_RESULT
    external_id: str = ""
    retry_after_seconds: float | None = None
    field: str = ""
    detail: str = ""
    key_conflict: bool = False
    processing: bool = False


def classify(observation: Observation, tool: Tool, *, clock: Callable[[], datetime], breach: Validator) -> Classified:
    """Type an observation. `breach` checks the output schema; `clock` turns a Retry-After date into seconds."""
    if observation.declared is not None:
        return _declared(observation, clock)
    if observation.kind == "not_sent":
        return Classified("not_sent", "connect_failed", detail="The call never left.")
    if observation.kind == "connection_lost" and observation.bytes_sent == 0:
        return Classified("not_sent", "connect_failed", detail="The connection broke before the first byte (F024).")
    if observation.kind != "reply":
        return _unknown(tool, f"No answer came back: {observation.kind.replace('_', ' ')}.")
    if observation.status is None or _is_success(observation.status, tool):
        return _success(observation, tool, breach)
    if observation.status < 300:
        return _invalid(tool, f"The provider answered {observation.status}, which the contract does not list.")
    return _http_refusal(observation, tool, clock)


def retry_after(text: str | None, clock: Callable[[], datetime]) -> float | None:
    """Seconds asked for, from seconds or an HTTP date, at most a week; None where it says nothing usable.

    A long wait is kept long, so that it runs into the deadline; only what no provider can mean is ignored (F032,
    ruling 3).
    """
    if text is None:
        return None
    try:
        seconds = float(text.strip())
    except ValueError:
        seconds = _seconds_until(text, clock)
    usable = seconds == seconds and 0 <= seconds <= ABSURD_SECONDS
    return min(seconds, MAX_RETRY_AFTER_SECONDS) if usable else None


def _seconds_until(text: str, clock: Callable[[], datetime]) -> float:
    try:
        return (parsedate_to_datetime(text) - clock()).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return -1.0


def _declared(observation: Observation, clock: Callable[[], datetime]) -> Classified:
    """A typed exception of the SDK: the tool's author says what it means."""
    detail, field = clean_text(observation.message or ""), foreign.name(observation.declared_field or "")
    match observation.declared:
        case "rate_limited":
            wait = retry_after(observation.retry_after, clock)
            return Classified("transient_reject", "provider_rate_limited", retry_after_seconds=wait, detail=detail)
        case "not_sent":
            return Classified("not_sent", "connect_failed", detail=detail)
        case "business_rule":
            return Classified("permanent_reject", "business_rule_violation", detail=detail)
        case "invalid_input":
            return Classified("permanent_reject", "invalid_arguments", field=field, detail=detail)
        case "needs_input":
            return Classified("permanent_reject", "user_input_required", field=field, detail=detail)
        case _:
            return Classified("unknown", "external_outcome_unknown", detail=detail)


def _unknown(tool: Tool, detail: str) -> Classified:
    """For a read nothing can have changed, so it is only unavailable; for a write nobody knows."""
    reason = "external_outcome_unknown" if tool.effect == "write" else "provider_unavailable"
    return Classified("unknown", reason, detail=detail)


def _is_success(status: int, tool: Tool) -> bool:
    if tool.success_statuses is not None:
        return status in tool.success_statuses or status in tool.async_statuses
    return 200 <= status <= 299


def _http_refusal(observation: Observation, tool: Tool, clock: Callable[[], datetime]) -> Classified:
    status = cast(int, observation.status)
    body = _parse(observation.body)
    detail = f"The provider answered {status}."
    if status in tool.rate_limit_statuses or _is_paced_read(observation, tool):
        wait = retry_after(_header(observation, "retry-after"), clock)
        return Classified("transient_reject", "provider_rate_limited", retry_after_seconds=wait, detail=detail)
    if status in tool.not_executed_statuses:
        wait = retry_after(_header(observation, "retry-after"), clock)
        return Classified("transient_reject", "provider_unavailable", retry_after_seconds=wait, detail=detail)
    named = _named_conflict(body, tool, detail)
    if named is not None:
        return named
    if _leaves_it_open(status, tool):
        return _unknown(tool, detail)
    return Classified("permanent_reject", _REFUSALS.get(status, _family(status)), detail=detail, field=_field(body))


def _is_paced_read(observation: Observation, tool: Tool) -> bool:
    """A 403 with a delay is a limit in disguise; a write goes again only where the contract says that it is one."""
    return observation.status == 403 and tool.effect == "read" and _header(observation, "retry-after") is not None


def _leaves_it_open(status: int, tool: Tool) -> bool:
    """Whether a write may have happened all the same; a redirect is no refusal where a look-up can tell (F039)."""
    if tool.effect == "read":
        return status >= 500 or status == 408
    if 300 <= status <= 399:
        return status == 303 or tool.reconcile is not None
    return status not in NOT_PROCESSED


# What these say, by their meaning, is said before the request is carried out: about the request, its sender or its
# target. Not among them: a conflict, a time that ran out, a lock, a request that came too early.
NOT_PROCESSED = frozenset((400, 401, 402, 403, 404, 405, 406, 410, 411, 413, 414, 415, 416, 417, 422, 428, 431, 451))
_REFUSALS = {
    400: "business_rule_violation",
    401: "credentials_invalid",
    403: "permission_denied",
    404: "resource_not_found",
    410: "resource_not_found",
}


def _family(status: int) -> str:
    return "unexpected_redirect" if 300 <= status <= 399 else "business_rule_violation"


def _named_conflict(body: Any, tool: Tool, detail: str) -> Classified | None:
    """The classes of refusal that the contract names by the provider's own error code (F036, F047)."""
    code = next((text for text in map(str, _error_codes(body)) if text in tool.conflict_codes), None)
    if code is None:
        return None
    match tool.conflict_codes[code]:
        case "already_done":
            external_id, _ = _identity(body, tool)
            return Classified("ok_valid", "already_in_desired_state", body, external_id, detail=detail)
        case "key_conflict":
            return Classified("unknown", "idempotency_key_conflict", detail=detail, key_conflict=True)
        case _:
            told = f"{detail} Code {foreign.name(code)}."
            return Classified("permanent_reject", "business_rule_violation", detail=told)


def _error_codes(body: Any) -> list[Any]:
    paths = ("code", "error", "error.code", "error_code", "type")
    return [value for path in paths if (value := dig(body, path)) is not MISSING and isinstance(value, (str, int))]


def _success(observation: Observation, tool: Tool, breach: Validator) -> Classified:
    body = _parse(observation.body)
    if observation.status in tool.async_statuses:
        return Classified(
            "unknown", "async_pending", body, detail="Accepted; the end is still open.", processing=True
        )
    if body is MISSING or observation.altered:
        return _invalid(tool, "The answer is not the JSON that the contract promises.")
    if any(holds(condition, body) for condition in tool.error_when):
        return Classified(
            "permanent_reject",
            _refusal_in_body(body),
            field=_field(body),
            detail="The answer carries a declared error.",
        )
    fault = _breach_of(body, tool, breach)
    if fault is not None:
        return _invalid(tool, fault)
    external_id, _ = _identity(body, tool)
    return Classified("ok_valid", "completed", body, external_id)


def _breach_of(body: Any, tool: Tool, breach: Validator) -> str | None:
    missing = next((condition.path for condition in tool.success_requires if not holds(condition, body)), None)
    if missing is not None:
        return f"The answer lacks what success requires: {missing}."
    _, lacking = _identity(body, tool)
    if lacking is not None:
        return f"The answer lacks its identity: {lacking}."
    return breach(body)


def _invalid(tool: Tool, detail: str) -> Classified:
    """A 2xx that breaks the contract proves nothing for a write and is useless for a read (ruling 1)."""
    reason = "external_outcome_unknown" if tool.effect == "write" else "invalid_tool_result"
    return Classified("ok_invalid", reason, detail=detail)


def _identity(body: Any, tool: Tool) -> tuple[str, str | None]:
    """The result's identity as text, and the first declared field that is missing."""
    values = [(path, dig(body, path)) for path in tool.identity_fields]
    lacking = next((path for path, value in values if not _is_identity(value)), None)
    return foreign.name("/".join(str(value) for _, value in values if _is_identity(value))), lacking


def _is_identity(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool) and value != ""


def _refusal_in_body(body: Any) -> str:
    return "resource_not_found" if "not_found" in map(str, _error_codes(body)) else "business_rule_violation"


def _field(body: Any) -> str:
    value = next(
        (v for path in ("error.field", "field", "error.param", "param") if (v := dig(body, path)) is not MISSING),
        "",
    )
    return foreign.name(value) if isinstance(value, str) else ""


def _header(observation: Observation, name: str) -> str | None:
    if name == "retry-after" and observation.retry_after is not None:
        return observation.retry_after
    return next((value for key, value in observation.headers.items() if key.lower() == name), None)


def _parse(text: str | None) -> Any:
    """The JSON in a body; an empty body is null; MISSING where it is no JSON."""
    return None if text is None or text.strip() == "" else foreign.parse(text)
