"""What an answer means: an observation and the tool's contract give one typed result (DECISIONS 2, FAULTS B and E).

Pure and total. A write was refused only where the status means "not processed" or the contract says so; whatever
else comes back leaves its outcome unknown, and a status of 200 proves nothing by itself (T3, T10).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from steadyhand.conditions import holds
from steadyhand.contract import MAX_REPLY_BYTES, Observation
from steadyhand.manifest import Tool
from steadyhand.paths import MISSING

from recovery.rules import batch, delays, envelopes, error_names, foreign, http_refusals, identities, told
from recovery.rules.classified import (
    NO_RESULT,
    Before,
    Classified,
    ItemResult,
    credential_refused,
    invalid,
    limited,
    refused,
    unknown,
)
from recovery.rules.delays import Clock
from runs.redact import clean_text

__all__ = ["NOTHING_KNOWN", "NO_RESULT", "Before", "Classified", "ItemResult", "Validator", "classify"]

Validator = Callable[[Any], str | None]
"""Given a result, the first breach of the output schema as a sentence, or None."""

NOTHING_KNOWN = Before()


def classify(
    observation: Observation, tool: Tool, *, clock: Clock, breach: Validator, before: Before = NOTHING_KNOWN
) -> Classified:
    """Type an observation. `breach` checks the output schema; `clock` turns a Retry-After date into seconds."""
    if observation.declared is not None:
        return _declared(observation, tool, clock, before)
    if observation.kind == "not_sent":
        return Classified("not_sent", "connect_failed", detail="The call never left.")
    if observation.kind == "connection_lost" and observation.bytes_sent == 0:
        return Classified("not_sent", "connect_failed", detail="The connection broke before the first byte (F024).")
    if observation.kind == "exception" and observation.status in http_refusals.WITHOUT_A_BODY:
        return http_refusals.http_refusal(observation, MISSING, tool, clock, before)
    if observation.kind != "reply":
        return unknown(tool, f"No answer came back: {observation.kind.replace('_', ' ')}.")
    return _about_ours(_reply(observation, tool, clock, breach, before), tool, before)


def _declared(observation: Observation, tool: Tool, clock: Clock, before: Before) -> Classified:
    """A typed exception of the SDK: the tool's author says what it means."""
    detail, field = clean_text(observation.message or ""), foreign.name(observation.declared_field or "")
    match observation.declared:
        case "rate_limited":
            return limited(detail, delays.retry_after(observation.retry_after, clock))
        case "not_sent":
            return Classified("not_sent", "connect_failed", detail=detail)
        case "business_rule":
            return refused("business_rule_violation", detail)
        case "invalid_input":
            return refused("invalid_arguments", detail, at=field)
        case "needs_input":
            return refused("user_input_required", detail, at=field)
        case "credentials_rejected":
            return credential_refused(tool, before, "The credential was rejected.")
        case _:
            return unknown(tool, detail)


def _reply(observation: Observation, tool: Tool, clock: Clock, breach: Validator, before: Before) -> Classified:
    code, status = observation.code, observation.status
    if code is not None and code != "OK":
        return envelopes.by_status_name(code, tool, before)
    body = _body(observation)
    if status is None or _is_success(status, tool):
        return _success(observation, body, tool, breach, before)
    if status < 300:
        return invalid(tool, f"The provider answered {status}, which the contract does not list.")
    return http_refusals.http_refusal(observation, body, tool, clock, before)


def _is_success(status: int, tool: Tool) -> bool:
    if tool.success_statuses is not None:
        return status in tool.success_statuses or status in tool.async_statuses
    return 200 <= status <= 299 and (status != MULTI_STATUS or tool.batch is not None or tool.effect == "read")


MULTI_STATUS = 207


def _body(observation: Observation) -> Any:
    """The JSON in the answer; an empty body is null, MISSING what is no JSON, was cut off, or was never read.

    Characters that were written out so that they could be kept leave a body whole, and so do texts in it that were
    cut short (ruling 16): a list or an object that reads to its end was not cut off.
    """
    text = observation.body
    if observation.altered and text is None:
        return MISSING
    body = None if text is None or text.strip() == "" else foreign.parse(text)
    cut_short = observation.altered and (observation.body_bytes or 0) > MAX_REPLY_BYTES
    return MISSING if cut_short and not isinstance(body, (dict, list)) else body


def _success(observation: Observation, body: Any, tool: Tool, breach: Validator, before: Before) -> Classified:
    if body is MISSING:
        return invalid(tool, "The answer is not the JSON that the contract promises.")
    found = envelopes.opened(body, tool)
    if found.error is not None:
        return envelopes.failure(found, tool, before)
    body = found.result
    if any(holds(condition, body) for condition in tool.error_when):
        return _declared_error(body, tool, before)
    if observation.status in tool.async_statuses or (observation.status == ACCEPTED and tool.poll is not None):
        return _accepted(body, tool, before)
    fault = _breach_of(body, tool, breach, before)
    if fault is not None:
        return invalid(tool, fault)
    if tool.batch is not None:
        return batch.classify_items(body, tool, tool.batch, before)
    if tool.completes_by == "callback":
        return _accepted(body, tool, before)
    return Classified("ok_valid", "completed", body, identities.external_id(body, tool, before.arguments))


ACCEPTED = 202


def _declared_error(body: Any, tool: Tool, before: Before) -> Classified:
    """The answer says by its contract's own sign that it is a failure; its code says which (F085)."""
    code, known = error_names.family_of(body)
    detail = f"The answer carries a declared error.{error_names.told(code)}"
    return envelopes.by_contract(body, tool, detail) or envelopes.by_family(known, body, tool, before, detail)


def _accepted(body: Any, tool: Tool, before: Before) -> Classified:
    """Taken on, its end still open; the answer is kept, so that polls and callbacks can find what they speak of."""
    external_id = identities.external_id(body, tool, before.arguments)
    match told.meaning(tool.callback, told.word_at(body, tool.callback.state), ()) if tool.callback else "processing":
        case "job_failed":
            return refused("remote_operation_failed", "The provider says that the operation failed.")
        case "present":
            return Classified("ok_valid", "completed", body, external_id)
    detail = "Accepted; the end is still open."
    return Classified("unknown", "async_pending", body, external_id, detail=detail, processing=True)


def _breach_of(body: Any, tool: Tool, breach: Validator, before: Before) -> str | None:
    missing = next((condition.path for condition in tool.success_requires if not holds(condition, body)), None)
    if missing is not None:
        return f"The answer lacks what success requires: {missing}."
    lacking = identities.lacking(body, tool, before.arguments)
    if lacking is not None:
        return f"The answer lacks its identity: {lacking}."
    return breach(body)


def _about_ours(found: Classified, tool: Tool, before: Before) -> Classified:
    """An answer that repeats other ids or amounts than were sent is about another call: it proves nothing (F048)."""
    if found.result is NO_RESULT:
        return found
    echo = identities.repeated(found.result, tool)
    if not echo or before.arguments is None:
        return replace(found, echo=echo) if echo else found
    other = identities.differing(echo, before.arguments)
    return found if other is None else invalid(tool, f"The answer is about another {foreign.name(other)}.")
