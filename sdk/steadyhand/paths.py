"""Reading one value out of a JSON document by a dotted path, and what it names. Pure."""

from __future__ import annotations

from typing import Any

MISSING = object()


def dig(document: Any, path: str) -> Any:
    """The value at a path like `charge.lines.0.id`, or MISSING. A leading `$.` is allowed; `$` is the document."""
    value = document
    for part in path.removeprefix("$").removeprefix(".").split("."):
        if part == "":
            continue
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
    return value


def word(value: Any) -> str:
    """What names something, as text: a text that is not blank, or a whole number. Empty for everything else."""
    text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    return text if text.strip() else ""
