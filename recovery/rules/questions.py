"""One field of a call as a form can ask for it: read from the tool's schema, and what was typed read back. Pure."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

LONGEST_ANSWER = 2000
MOST_CHOICES = 200
Kind = Literal["text", "whole", "number", "yes_no", "choice"]
_KINDS: dict[str, Kind] = {"string": "text", "integer": "whole", "number": "number", "boolean": "yes_no"}
_PLAIN = (str, int, float, bool)


class Unfit(Exception):
    """What was typed is no answer; the message says what would be one, and repeats nothing of it."""


@dataclass(frozen=True)
class Field:
    """`path` in the arguments, `label` and `hint` in the words of the tool's author, bounds where there are any."""

    path: str
    kind: Kind
    label: str
    hint: str = ""
    choices: tuple[str | int | float | bool, ...] = ()
    shortest: int = 0
    longest: int = LONGEST_ANSWER
    least: float | None = None
    most: float | None = None

    @property
    def rule(self) -> str:
        """The constraints in words."""
        if self.kind == "text":
            return f"At most {self.longest} characters." if self.longest < LONGEST_ANSWER else ""
        if self.kind not in ("whole", "number"):
            return ""
        noun = "A whole number" if self.kind == "whole" else "A number"
        least = f" from {self.least:g}" if self.least is not None else ""
        most = f" up to {self.most:g}" if self.most is not None else ""
        return f"{noun}{least}{most}."


def field_of(schema: dict[str, Any], path: str) -> Field | None:
    """The field at a path of objects; None for a structure, a list, or a path that the schema does not describe."""
    found = _within(schema, path.split(".")) if path else None
    if found is None:
        return None
    words = _Words(path, _label(found, path), str(found.get("description") or "")[:300])
    if "enum" in found:
        choices = [one for one in found["enum"][:MOST_CHOICES] if isinstance(one, _PLAIN)]
        return Field(words.path, "choice", words.label, words.hint, tuple(choices)) if choices else None
    kind = _KINDS.get(_type(found))
    if kind is None:
        return None
    return Field(
        words.path, kind, words.label, words.hint, least=_number(found, "minimum"), most=_number(found, "maximum"),
        shortest=int(_number(found, "minLength") or 0), longest=_longest(found),
    )  # fmt: skip


def read(field: Field, text: str) -> Any:
    """The value that was typed. Raises Unfit."""
    if field.kind == "choice":
        found = [one for one in field.choices if shown(one) == text]
        if not found:
            raise Unfit("Choose one of the answers.")
        return found[0]
    if field.kind == "text":
        return _text(field, text)
    if field.kind == "yes_no":
        if text not in ("true", "false"):
            raise Unfit("Choose yes or no.")
        return text == "true"
    return _counted(field, text)


def shown(choice: str | float | bool) -> str:
    """A choice as a form carries it."""
    return str(choice).lower() if isinstance(choice, bool) else str(choice)


def with_value(arguments: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The arguments with one field changed; what was given stays as it is."""
    changed = copy.deepcopy(arguments)
    place = changed
    *above, last = path.split(".")
    for part in above:
        inner = place.get(part)
        place[part] = place = inner if isinstance(inner, dict) else {}
    place[last] = value
    return changed


class _Words(NamedTuple):
    path: str
    label: str
    hint: str


def _within(schema: Any, parts: Sequence[str]) -> dict[str, Any] | None:
    for part in parts:
        properties = schema.get("properties") if isinstance(schema, dict) else None
        schema = properties.get(part) if isinstance(properties, dict) else None
    return schema if isinstance(schema, dict) else None


def _type(schema: dict[str, Any]) -> str:
    """The one type besides null; empty for a field without one, or with several."""
    named = schema.get("type")
    types = [one for one in (named if isinstance(named, list) else [named]) if one not in (None, "null")]
    return str(types[0]) if len(types) == 1 else ""


def _label(schema: dict[str, Any], path: str) -> str:
    title = schema.get("title")
    named = title if isinstance(title, str) and title.strip() else path.split(".")[-1].replace("_", " ")
    return named[:1].upper() + named[1:120]


def _longest(schema: dict[str, Any]) -> int:
    return min(int(_number(schema, "maxLength") or LONGEST_ANSWER), LONGEST_ANSWER)


def _number(schema: dict[str, Any], name: str) -> float | None:
    found = schema.get(name)
    return found if isinstance(found, (int, float)) and not isinstance(found, bool) else None


def _text(field: Field, text: str) -> str:
    kept = text.strip()
    if not kept or len(kept) < field.shortest:
        raise Unfit(
            f"Write at least {max(field.shortest, 1)} characters." if field.shortest > 1 else "Write an answer."
        )
    if len(kept) > field.longest:
        raise Unfit(f"Write at most {field.longest} characters.")
    return kept


def _counted(field: Field, text: str) -> int | float:
    try:
        value = int(text) if field.kind == "whole" else float(text)
    except ValueError as wrong:
        raise Unfit("Write a whole number." if field.kind == "whole" else "Write a number.") from wrong
    low = field.least is not None and value < field.least
    # Compared first: a whole number may have more digits than any float.
    if abs(value) > 2**53 or not math.isfinite(value) or low or (field.most is not None and value > field.most):
        raise Unfit(field.rule if low or field.most is not None else "Write a smaller number.")
    return value
