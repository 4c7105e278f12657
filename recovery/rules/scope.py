"""Whether a proposed call stays inside what its run may touch. Pure (DESIGN: policy before dispatch)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from steadyhand.manifest import Tool
from steadyhand.paths import dig


def breach(
    scope: dict[str, Any], tool: Tool, arguments: dict[str, Any], clock: Callable[[], datetime]
) -> tuple[str, str] | None:
    """The first way in which the call exceeds its scope, (field, sentence); asks the clock only if it ends."""
    ends = scope.get("expires_at")
    if ends is not None and datetime.fromisoformat(ends) <= clock():
        return "scope", "the authorization of this run has ended"
    for field, allowed in (scope.get("ids") or {}).items():
        if field in arguments and str(arguments[field]) not in allowed:
            return field, f"{field} is not among those that this run may touch"
    return _amount_breach(scope, tool, arguments)


def _amount_breach(scope: dict[str, Any], tool: Tool, arguments: dict[str, Any]) -> tuple[str, str] | None:
    limit = scope.get("max_amount_minor")
    if tool.value_field is None or limit is None:
        return None
    value = dig(arguments, tool.value_field)
    if not isinstance(value, int) or value > limit:
        return tool.value_field, "the amount is above what this run may move"
    if scope.get("currency") and currency_of(tool, arguments) != scope["currency"]:
        return tool.currency_field or tool.value_field, "the currency is not the one that this run may move"
    return None


def currency_of(tool: Tool, arguments: dict[str, Any]) -> str:
    value = dig(arguments, tool.currency_field) if tool.currency_field else tool.currency
    return value if isinstance(value, str) and len(value) == 3 else ""
