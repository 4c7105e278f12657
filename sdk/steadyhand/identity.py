"""Canonical arguments: two calls that mean the same have the same bytes (DESIGN: action identity; F089).

Pure. The server alone turns these bytes into an action id, for it holds the tenant's key.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any

MAX_DEPTH = 20
MAX_FIELDS = 500
MAX_STRING = 16 * 1024
MAX_SAFE_INTEGER = 2**53 - 1


class BadInput(ValueError):
    """A value that cannot be recorded. `field` is its path, `remedy` what the sender should do."""

    def __init__(self, field: str, remedy: str) -> None:
        super().__init__(f"{field}: {remedy}")
        self.field = field
        self.remedy = remedy


def canonical(arguments: dict[str, Any], *, without: frozenset[str] = frozenset()) -> bytes:
    """Canonical JSON of the arguments: NFC strings, sorted keys, 1.0 as 1, ids untouched.

    `without` names top-level fields that carry an idempotency key and so say nothing about meaning.
    Raises BadInput for what JSON or PostgreSQL cannot hold.
    """
    kept = {name: value for name, value in arguments.items() if name not in without}
    plain = _plain(kept, "arguments", 0, [MAX_FIELDS])
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def check(value: Any, field: str = "arguments") -> None:
    """Raise BadInput if the value could not be recorded faithfully."""
    _plain(value, field, 0, [MAX_FIELDS])


def _plain(value: Any, field: str, depth: int, room: list[int]) -> Any:
    if depth > MAX_DEPTH:
        raise BadInput(field, f"nest at most {MAX_DEPTH} levels")
    if isinstance(value, str):
        return _text(value, field)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return _number(value, field)
    room[0] -= len(value) if isinstance(value, (dict, list, tuple)) else 0
    if room[0] < 0:
        raise BadInput(field, f"send at most {MAX_FIELDS} fields and items")
    if isinstance(value, dict):
        return _mapping(value, field, depth, room)
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{field}[{index}]", depth + 1, room) for index, item in enumerate(value)]
    raise BadInput(field, f"send JSON, not {type(value).__name__}")


def _mapping(value: dict[Any, Any], field: str, depth: int, room: list[int]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise BadInput(field, "use text for every field name")
        name = _text(key, f"{field} field name")
        if name in plain:
            raise BadInput(f"{field}.{name}", "send each field once")
        plain[name] = _plain(item, f"{field}.{name}", depth + 1, room)
    return plain


def _text(value: str, field: str) -> str:
    if len(value) > MAX_STRING:
        raise BadInput(field, f"send at most {MAX_STRING} characters")
    if "\x00" in value:
        raise BadInput(field, "remove the NUL character")
    if not value.isascii():
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise BadInput(field, "remove the lone surrogate (invalid Unicode)")
        return unicodedata.normalize("NFC", value)
    return value


def _number(value: int | float, field: str) -> int | float:
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise BadInput(field, "send a finite number")
        if not value.is_integer():
            return value
        value = int(value)
    if abs(value) > MAX_SAFE_INTEGER:
        raise BadInput(field, "send an id this long as text: readers of JSON lose digits beyond 2^53")
    return value
