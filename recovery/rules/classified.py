"""What an answer may come to, as plain values: the words that every classifier speaks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steadyhand.manifest import Tool

from recovery.rules.evidence import Observation as Observed

NO_RESULT = object()


@dataclass(frozen=True)
class Before:
    """What the record knew of this action before the answer came.

    `refreshed`: its credential was already fetched anew once. `tried`: an earlier try of it may have landed.
    `existed`: the contract's `precondition_read` saw the target in this run. `arguments`: what was sent; None where
    nobody looked yet, and then nothing that depends on them is taken for proven.
    """

    refreshed: bool = False
    tried: bool = False
    existed: bool = False
    arguments: Mapping[str, Any] | None = None
    done: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ItemResult:
    """What the answer to a batch says about one of its items (F049)."""

    key: str
    observed: Observed
    reason: str
    external_id: str = ""
    result: Any = NO_RESULT


@dataclass(frozen=True)
class Classified:
    """One answer, typed. `result` is what the tool returned (NO_RESULT if it cannot be used).

    `partial`: the items of a batch came to different ends. `conflict`: the answer contradicts itself.
    `echo`: what the answer repeats of the request, by path, still to be compared with what was sent.
    """

    observed: Observed
    reason: str
    result: Any = NO_RESULT
    external_id: str = ""
    retry_after_seconds: float | None = None
    field: str = ""
    detail: str = ""
    key_conflict: bool = False
    conflict: bool = False
    processing: bool = False
    partial: bool = False
    items: tuple[ItemResult, ...] = ()
    echo: Mapping[str, str] | None = None


def unknown(tool: Tool, detail: str, *, retry_after_seconds: float | None = None) -> Classified:
    """For a read nothing can have changed, so it is only unavailable; for a write nobody knows."""
    reason = "external_outcome_unknown" if tool.effect == "write" else "provider_unavailable"
    return Classified("unknown", reason, detail=detail, retry_after_seconds=retry_after_seconds)


def invalid(tool: Tool, detail: str) -> Classified:
    """A success that breaks the contract proves nothing for a write and is useless for a read (ruling 1)."""
    reason = "external_outcome_unknown" if tool.effect == "write" else "invalid_tool_result"
    return Classified("ok_invalid", reason, detail=detail)


def refused(reason: str, detail: str, *, at: str = "") -> Classified:
    """The provider said no before it did anything; `at` names the field at fault."""
    return Classified("permanent_reject", reason, detail=detail, field=at)


def limited(detail: str, seconds: float | None) -> Classified:
    return Classified("transient_reject", "provider_rate_limited", detail=detail, retry_after_seconds=seconds)


def credential_refused(tool: Tool, before: Before, detail: str) -> Classified:
    """Nothing was applied (ruling 2): the runtime may fetch a new credential once, then a person must (F037)."""
    if tool.credential == "refreshable" and not before.refreshed:
        return Classified("transient_reject", "credential_refresh", detail=detail, retry_after_seconds=0.0)
    return refused("credentials_invalid", detail)


def not_there(tool: Tool, before: Before, detail: str, result: Any = None) -> Classified:
    """The target is missing: what a repeated delete wants, where the target is known to have been there before."""
    if tool.absent_is_success and (before.tried or before.existed):
        return Classified("ok_valid", "already_in_desired_state", result, detail=detail)
    return refused("resource_not_found", detail)
