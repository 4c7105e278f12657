"""The arguments that a model sends as text: one JSON object, or a refusal that it can correct."""

from __future__ import annotations

import json
from typing import Any, cast

from steadyhand.contract import Outcome, StructuredError
from steadyhand.errors import Refused


def parsed(raw: str) -> dict[str, Any]:
    """The model's arguments. Raises Refused for what is no JSON object: the model's fault, no attempt (F084)."""
    try:
        arguments = json.loads(raw or "{}", parse_constant=_refuse, object_pairs_hook=_once)
    except (ValueError, RecursionError) as broken:
        code = "truncated_arguments" if _was_cut(broken, raw) else "invalid_arguments"
        raise _not_arguments(code, f"The arguments cannot be read as JSON: {broken}.") from broken
    if not isinstance(arguments, dict):
        raise _not_arguments("invalid_arguments", "The arguments must be one JSON object.")
    return cast(dict[str, Any], arguments)


def _was_cut(broken: Exception, raw: str) -> bool:
    if not isinstance(broken, json.JSONDecodeError):
        return False
    return broken.pos >= len(raw.rstrip()) - 1 or broken.msg.startswith("Unterminated string")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a field is sent twice")
    return dict(pairs)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number")


def _not_arguments(code: str, message: str) -> Refused:
    again = "Send the call again with complete, valid JSON."
    return Refused(
        StructuredError(code=code, retryable=True, message=message, suggested_actions=[again]), Outcome.FATAL
    )
