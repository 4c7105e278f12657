"""What an HTTP status other than a success means (FAULTS B). Pure.

A write was refused only where the status means "not processed" or the contract says so (T3).
"""

from __future__ import annotations

from typing import Any, cast

from steadyhand.contract import Observation
from steadyhand.manifest import Tool
from steadyhand.paths import MISSING

from recovery.rules import delays, envelopes, error_names
from recovery.rules.classified import Before, Classified, credential_refused, limited, not_there, refused, unknown
from recovery.rules.delays import Clock

# What these say, by their meaning, is said before the request is carried out: about the request, its sender or its
# target. Not among them: a conflict, a time that ran out, a lock, a request that came too early.
NOT_PROCESSED = frozenset((400, 401, 402, 403, 404, 405, 406, 410, 411, 413, 414, 415, 416, 417, 422, 428, 431, 451))
NOT_FULFILLED = frozenset((301, 302, 307, 308))
WITHOUT_A_BODY = frozenset((401, 403, 404, 410, 429))
"""Refusals that no body could turn into something else."""


def http_refusal(observation: Observation, body: Any, tool: Tool, clock: Clock, before: Before) -> Classified:
    """What a status from 300 on means; `body` is its JSON, MISSING where it has none."""
    status = cast(int, observation.status)
    delay = delays.asked_for(observation.headers, observation.retry_after, clock)
    code, known = error_names.family_of(body)
    detail = " ".join(filter(None, (f"The provider answered {status}.{error_names.told(code)}", delay.note)))
    if status in tool.rate_limit_statuses or _is_paced_read(observation, tool):
        return limited(detail, delay.seconds)
    if status in tool.not_executed_statuses:
        return Classified(
            "transient_reject", "provider_unavailable", detail=detail, retry_after_seconds=delay.seconds
        )
    named = envelopes.by_contract(body, tool, detail)
    if named is not None:
        return named
    if known == "key" and tool.idempotency.kind == "key":
        return envelopes.by_family(known, body, tool, before, detail)
    if _leaves_it_open(status, tool):
        return unknown(tool, detail, retry_after_seconds=delay.seconds)
    return _definite(status, known, body, tool, before, detail, delay.seconds)


def _definite(
    status: int,
    known: error_names.Family | None,
    body: Any,
    tool: Tool,
    before: Before,
    detail: str,
    seconds: float | None,
) -> Classified:
    """A refusal for good, or one that passes: a rejected credential, a target that is gone, a limit by its code."""
    if status == 401:
        return credential_refused(tool, before, detail)
    if status in (404, 410):
        return not_there(tool, before, detail, None if body is MISSING else body)
    if status == 400 and known in ("limit", "credential", "absent", "permission"):
        return envelopes.by_family(known, body, tool, before, detail, seconds)
    if status == 403:
        return refused("permission_denied", detail, at=error_names.field_in(body))
    reason = "unexpected_redirect" if 300 <= status <= 399 else "business_rule_violation"
    return refused(reason, detail, at=error_names.field_in(body))


def _is_paced_read(observation: Observation, tool: Tool) -> bool:
    """A 403 with a delay is a limit in disguise; a write goes again only where the contract says that it is one."""
    if observation.status != 403 or tool.effect != "read":
        return False
    lower = {name.lower(): value for name, value in observation.headers.items()}
    return observation.retry_after is not None or "retry-after" in lower or lower.get("x-ratelimit-remaining") == "0"


def _leaves_it_open(status: int, tool: Tool) -> bool:
    """Whether a write may have happened all the same.

    A redirect says that more is needed to fulfil the request, so it was not; "see other" is the answer to one that
    was, and any other 3xx says nothing of the kind (F039).
    """
    if tool.effect == "read":
        return status >= 500 or status == 408
    if 300 <= status <= 399:
        return status not in NOT_FULFILLED and (status == 303 or tool.reconcile is not None)
    return status not in NOT_PROCESSED
