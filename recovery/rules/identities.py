"""Whose result an answer is: its identity, and whether it is about what was asked for (F048, F087). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from steadyhand.manifest import Tool
from steadyhand.paths import MISSING, dig, word

from recovery.rules import foreign

_ID_LIKE = re.compile(r"(^|_)(id|ref|reference|number)$|[a-z]I[dD]$")
# These name the exchange or the moment, not the thing: they differ between a request and its answer.
_NOT_THE_THING = re.compile(
    r"(request|trace|correlation|version|revision|idempotency|session|event|after|before|next)_"
)


def external_id(body: Any, tool: Tool, arguments: Mapping[str, Any] | None = None) -> str:
    """The result's identity as one text, fit to be stored; fields that it lacks come from the arguments."""
    words = (word(_value(path, body, arguments)) for path in tool.identity_fields)
    return foreign.name("/".join(filter(None, words)))


def lacking(body: Any, tool: Tool, arguments: Mapping[str, Any] | None) -> str | None:
    """The first identity field that neither the result nor the arguments have.

    Where the arguments give all of them, the reply proves something only by a schema that it fits.
    """
    for path in tool.identity_fields:
        if not word(_value(path, body, arguments)):
            return path
    own = any(dig(body, path) is not MISSING for path in tool.identity_fields)
    return None if own or not tool.identity_fields or tool.output_schema is not None else tool.identity_fields[0]


def repeated(body: Any, tool: Tool) -> dict[str, str]:
    """What the answer repeats of the request, by path: it must be what was asked for."""
    if not isinstance(body, dict):
        return {}
    paths = (path.removeprefix("$").removeprefix(".") for path in _same_in_both(tool))
    found = ((path, word(dig(body, path))) for path in paths)
    return {path: value for path, value in found if value}


def differing(echo: Mapping[str, str], arguments: Mapping[str, Any]) -> str | None:
    """The first path at which the answer says something else than the request; case is no difference."""
    for path, value in echo.items():
        asked = word(dig(arguments, path))
        if asked and asked.casefold() != value.casefold():
            return path
    return None


def _same_in_both(tool: Tool) -> Iterator[str]:
    """Fields that mean the same thing in request and answer: declared identities, the amount of a write, and what
    looks like an id where the input demands it and the output promises it."""
    yield from tool.identity_fields
    if tool.effect == "write":
        yield from (path for path in (tool.value_field, tool.currency_field) if path)
    promised = _required(tool.output_schema)
    for name in _required(tool.input_schema):
        if name in promised and _ID_LIKE.search(name) and not _NOT_THE_THING.search(name):
            yield name


def _required(schema: dict[str, Any] | None) -> list[str]:
    named = (schema or {}).get("required")
    return [name for name in named if isinstance(name, str)] if isinstance(named, list) else []


def _value(path: str, body: Any, arguments: Mapping[str, Any] | None) -> Any:
    value = dig(body, path)
    return dig(arguments, path) if value is MISSING and arguments is not None else value
