"""Whether a proposed call stays inside what its run may touch, and a run inside its parent's limits. Pure (DESIGN:
policy before dispatch)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from steadyhand.identity import BadInput
from steadyhand.manifest import Tool
from steadyhand.paths import MISSING, dig


def breach(
    scope: dict[str, Any], tool: Tool, arguments: dict[str, Any], clock: Callable[[], datetime]
) -> tuple[str, str] | None:
    """The first way in which the call exceeds its scope, (field, sentence); asks the clock only if it ends.

    A field that the scope names may be a path. A write that leaves it out is refused where the tool knows the field:
    the other side would choose for it. A tool that does not know the field is not concerned.
    """
    ends = scope.get("expires_at")
    if ends is not None and datetime.fromisoformat(ends) <= clock():
        return "scope", "the authorization of this run has ended"
    if scope.get("tools") is not None and tool.name not in scope["tools"]:
        return "tool", f"{tool.name} is not among the tools of this run"
    for field, allowed in _ids(scope):
        values = list(_values(arguments, field))
        if any(not _is_id(value) or str(value) not in allowed for value in values):
            return field, f"{field} is not among those that this run may touch"
        if not values and tool.effect == "write" and _knows(tool.input_schema, field):
            return field, f"{field} is not named, and this run may touch only some"
    return _amount_breach(scope, tool, arguments) or _currency_breach(scope, tool, arguments)


def _amount_breach(scope: dict[str, Any], tool: Tool, arguments: dict[str, Any]) -> tuple[str, str] | None:
    """The run's own limit, and the tool's, which holds in every run."""
    limits = ((scope.get("max_amount_minor"), "this run may move"), (tool.max_value_minor, "this tool may move"))
    if tool.value_field is None:
        return None
    value = dig(arguments, tool.value_field)
    for limit, whose in limits:
        if limit is not None and (not isinstance(value, int) or isinstance(value, bool) or value > limit):
            return tool.value_field, f"the amount is above what {whose}"
    return None


def within(own: dict[str, Any], parent: dict[str, Any]) -> dict[str, Any]:
    """A sub-agent's scope: what it leaves open is its parent's. Raises BadInput for what exceeds that."""
    asked = parent | {name: value for name, value in own.items() if value is not None and name != "ids"}
    ids = (parent.get("ids") or {}) | (own.get("ids") or {})
    exceeded = {f"scope.ids.{field}": not set(ids[field]) <= set(allowed) for field, allowed in _ids(parent)}
    for name, exceeds in _EXCEEDS.items():
        limit = parent.get(name)
        exceeded[f"scope.{name}"] = limit is not None and exceeds(asked[name], limit)
    for field, too_much in exceeded.items():
        if too_much:
            raise BadInput(field, "stay within the scope of the parent run")
    return asked | {"ids": ids}


def _ids(scope: dict[str, Any]) -> list[tuple[str, list[str]]]:
    return list((scope.get("ids") or {}).items())


_EXCEEDS: dict[str, Callable[[Any, Any], bool]] = {
    "tools": lambda own, parent: not set(own) <= set(parent),
    "max_amount_minor": lambda own, parent: own > parent,
    "currency": lambda own, parent: own != parent,
    "expires_at": lambda own, parent: datetime.fromisoformat(own) > datetime.fromisoformat(parent),
}


def _currency_breach(scope: dict[str, Any], tool: Tool, arguments: dict[str, Any]) -> tuple[str, str] | None:
    """The currency binds with and without a limit, wherever the tool has one; a read need not name it."""
    named = tool.currency_field or tool.currency
    if not scope.get("currency") or named is None or currency_of(tool, arguments) == scope["currency"]:
        return None
    if tool.effect == "read" and tool.currency_field and dig(arguments, tool.currency_field) is MISSING:
        return None
    return tool.currency_field or tool.value_field or "currency", "the currency is not the one that this run may move"


def _values(document: Any, path: str) -> Iterator[Any]:
    """Every value at a path, in each item of the lists on the way; a field whose own name is the path counts too."""
    if isinstance(document, list):
        for item in document:
            yield from _values(item, path)
    elif isinstance(document, dict):
        if path in document:
            yield from _leaves(document[path])
        head, dot, rest = path.partition(".")
        if dot and head in document:
            yield from _values(document[head], rest)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _is_id(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _knows(schema: Any, path: str) -> bool:
    """Whether an input schema declares the field, directly or in a branch of it."""
    if isinstance(schema, list):
        return any(_knows(branch, path) for branch in schema)
    if not isinstance(schema, dict):
        return False
    properties = schema.get("properties")
    if isinstance(properties, dict):
        head, dot, rest = path.partition(".")
        if path in properties or (dot and head in properties and _knows(properties[head], rest)):
            return True
    depending = schema.get("dependencies")
    branches = [*depending.values()] if isinstance(depending, dict) else []
    branches += [schema.get(name) for name in _BRANCHES]
    return path in _required(schema) or any(_knows(branch, path) for branch in branches)


def _required(schema: dict[str, Any]) -> list[Any]:
    required = schema.get("required")
    return required if isinstance(required, list) else []


_BRANCHES = ("allOf", "anyOf", "oneOf", "if", "then", "else", "items")


def currency_of(tool: Tool, arguments: dict[str, Any]) -> str:
    value = dig(arguments, tool.currency_field) if tool.currency_field else tool.currency
    return value if isinstance(value, str) and len(value) == 3 else ""


def over(threshold_minor: int | None, value_minor: int | None) -> bool:
    """Whether an amount is known to be more than one person may decide; without a threshold none is."""
    return threshold_minor is not None and value_minor is not None and value_minor > threshold_minor
