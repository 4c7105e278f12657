"""JSON from outside, read so that it can always be kept: what cannot be stored is turned into visible text.

Pure. A tool's answer may hold a NUL, half a character, a number without an end or a thousand levels; none of these
may cost the run its record of what happened (I6).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from steadyhand.paths import MISSING

from runs.redact import DIGEST_CHARS, clean_text, digest

MAX_DEPTH = 100
MAX_NAME = 200
# JSON's readers hold a number as a double: what has more digits than that is kept as the text that it was.
MAX_DIGITS = 308
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def parse(text: str) -> Any:
    """The JSON value of `text`, fit to be stored; MISSING where it is no JSON, repeats a name or nests too deep."""
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_float, parse_int=_int, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return MISSING
    if text.count("[") + text.count("{") > MAX_DEPTH and _too_deep(value, MAX_DEPTH):
        return MISSING
    return value if text.isascii() and "\\u" not in text else _storable(value)


def parse_bytes(body: bytes) -> Any:
    """`parse` for a body as it came over the wire."""
    try:
        return parse(body.decode(json.detect_encoding(body)))
    except UnicodeDecodeError:
        return MISSING


def plain(value: Any, levels: int = MAX_DEPTH) -> Any:
    """A Python value as JSON that can be stored: numbers and times that JSON has no word for become text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _storable(str(value))
    if isinstance(value, int):
        return int(value) if abs(value) < 10**MAX_DIGITS else hex(value)[:MAX_NAME]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, (Mapping, list, tuple, set, frozenset)):
        return _plain_parts(value, levels - 1) if levels else "[nested too deep]"
    if isinstance(value, (date, time, Decimal, UUID)):
        return str(value)
    return f"[{type(value).__name__}]"


def _plain_parts(value: Mapping[Any, Any] | Collection[Any], levels: int) -> Any:
    if isinstance(value, Mapping):
        return {_storable(str(key)): plain(item, levels) for key, item in value.items()}
    return [plain(item, levels) for item in value]


def name(value: Any) -> str:
    """An identity or a field name as it may be stored and shown: short, visible, without secrets.

    Names are compared: where anything of one is hidden or cut off, a digest stands beside it, so that two of them
    never become one. A name that was made so stays what it is.
    """
    text = str(value)
    shown = clean_text(text, MAX_NAME)
    if shown == text:
        return shown
    return f"{clean_text(text, MAX_NAME - 1 - DIGEST_CHARS)}~{digest(text)}"


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object that gives a name two values means neither: readers differ on which one counts."""
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("a name is repeated")
    return read


def _float(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text[:MAX_NAME]


def _int(text: str) -> int | str:
    return int(text) if len(text) <= MAX_DIGITS else text[:MAX_NAME]


def _too_deep(value: Any, levels: int) -> bool:
    if not isinstance(value, (dict, list)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_too_deep(item, levels - 1) for item in inner)


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return _UNSTORABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return value
