"""JSON Schemas that come from outside: checked when they are registered, compiled once, matched in linear time.

A manifest's author may write any pattern, and an agent any text. So patterns run on an engine that cannot backtrack
(SEC-16), references are not followed, and no fault of a schema library is more than a refusal of the schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import fastjsonschema
import jsonschema
import re2
from steadyhand.identity import BadInput

from runs import redact

DRAFT_7 = ("http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-07/schema")
MAX_PATTERN = 500
# Instructions of the compiled pattern; the slowest way to match costs about 60 microseconds each on 16 KiB of text.
MAX_PATTERN_SIZE = 700
MAX_PATTERN_SIZES = 2000
# Checking costs at most keywords times values; the explaining library takes about ten times as long for each.
SMALL_SCHEMA = 60
MAX_WORK = 2_000_000
MAX_EXPLAINED = 200_000
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor")
# Keywords whose value maps names to schemas, and those whose value is data.
_MAPS = ("properties", "patternProperties", "definitions", "$defs", "dependencies", "dependentSchemas")
_DATA = ("const", "enum", "default", "examples")


@dataclass(frozen=True)
class Schema:
    """A JSON Schema, compiled once: quick to say yes, and able to say in a sentence what is wrong."""

    quick: Callable[[Any], Any]
    readable: Any
    size: int

    def breach(self, value: Any) -> tuple[str, str] | None:
        """(path, sentence) of the first breach, or None. A value that cannot be compared breaks the schema too."""
        if self.size > SMALL_SCHEMA and self.size * _parts(value) > MAX_WORK:
            return "", "the value is too large for the declared schema"
        try:
            self.quick(value)
        except fastjsonschema.JsonSchemaException as wrong:
            return self._explain(value) if self.size * _parts(value) <= MAX_EXPLAINED else _terse(wrong)
        except (ArithmeticError, RecursionError, TypeError, ValueError):
            return "", "the value cannot be checked against the declared schema"
        return None

    def _explain(self, value: Any) -> tuple[str, str]:
        try:
            errors = sorted(islice(self.readable.iter_errors(value), 100), key=_place)
        except (ArithmeticError, RecursionError, TypeError, ValueError):
            errors = []
        if not errors:
            return "", "the value breaks the declared schema"
        first = errors[0]
        path = ".".join(str(part) for part in first.absolute_path) or _named(first)
        return redact.clean_text(path, 200), f"breaks the rule {first.validator}: {_shown(first.validator_value)}"


def compiled(schema: dict[str, Any]) -> Schema:
    """The schema ready for use; the same text is compiled once per process."""
    return _compiled(dump(schema))


def check(schema: dict[str, Any] | None, field: str) -> None:
    """Raise BadInput for a schema that is wrong, follows references, or could hold the server up."""
    if schema is None:
        return
    keywords = list(_keywords(schema, field))
    _refuse_references(keywords, field)
    _refuse_costly([value for name, value in keywords if name == "pattern"], field)
    try:
        jsonschema.Draft7Validator.check_schema(schema)
        compiled(schema)
    except Exception as wrong:  # whatever two libraries raise about what a stranger wrote, the schema is at fault
        raise BadInput(field, "send a valid JSON Schema, draft 7") from wrong


def dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=4000)
def _compiled(text: str) -> Schema:
    schema = json.loads(text)
    schema.pop("$schema", None)  # it names the draft that is used anyway
    quick = fastjsonschema.compile(schema, use_default=False, use_formats=False)
    patterns: dict[str, Any] = quick.__globals__.get("REGEX_PATTERNS", {})
    patterns.update({pattern: _linear(pattern) for pattern in patterns})
    return Schema(quick, _READABLE(schema), sum(1 for _ in _keywords(schema, "schema")))


@lru_cache(maxsize=4000)
def _linear(pattern: str) -> Any:
    options = re2.Options()
    options.max_mem, options.log_errors = 1 << 20, False
    return re2.compile(pattern, options)


def _breaks_pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    if validator.is_type(instance, "string") and not _linear(pattern).search(instance):
        yield jsonschema.ValidationError("the pattern is not met")


def _repeats(validator: Any, unique: bool, instance: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    """The library compares each with each."""
    if unique and validator.is_type(instance, "array") and len({dump(item) for item in instance}) < len(instance):
        yield jsonschema.ValidationError("an item is repeated")


_LINEAR = {"pattern": _breaks_pattern, "uniqueItems": _repeats}
_READABLE: Any = jsonschema.validators.extend(jsonschema.Draft7Validator, _LINEAR)  # type: ignore[no-untyped-call]


def _refuse_references(keywords: list[tuple[str, Any]], field: str) -> None:
    names = {name for name, _ in keywords}
    if names & set(_REFERENCES) or any(name == "id" and isinstance(value, str) for name, value in keywords):
        raise BadInput(field, "write the schema out in full: references are not followed and ids have no use")
    if any(name == "$schema" and value not in DRAFT_7 for name, value in keywords):
        raise BadInput(field, f"write it for draft 7 and leave $schema out, or set it to {DRAFT_7[0]}")
    if "patternProperties" in names:
        raise BadInput(field, "name the properties: patternProperties is not supported")


def _refuse_costly(patterns: list[Any], field: str) -> None:
    """Refuse what the linear engine cannot read, and what is so large that even linear takes too long (SEC-16)."""
    sizes = [_size(pattern) for pattern in patterns]
    if None in sizes:
        raise BadInput(field, "write each pattern in RE2 syntax: no look-around, no back-references, small counts")
    if any(size > MAX_PATTERN_SIZE for size in sizes if size) or sum(size or 0 for size in sizes) > MAX_PATTERN_SIZES:
        raise BadInput(field, "write shorter patterns with smaller counts; maxLength bounds a length better")


def _size(pattern: Any) -> int | None:
    """The size of the compiled pattern; None if it is no pattern."""
    if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN or not pattern.isprintable():
        return None
    try:
        return int(_linear(pattern).programsize)
    except (re2.error, ValueError, TypeError):
        return None


def _keywords(schema: Any, field: str, *, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every keyword of a schema and of the schemas within it, with its value; names and data are no keywords."""
    if depth > 50:
        raise BadInput(field, "nest the schema at most 50 levels deep")
    for part in schema if isinstance(schema, list) else [schema]:
        for name, value in part.items() if isinstance(part, dict) else ():
            yield name, value
            inner = value if isinstance(value, (dict, list)) and name not in _DATA else ()
            if name in _MAPS and isinstance(value, dict):
                inner = list(value.values())
            yield from _keywords(inner, field, depth=depth + 1)


def _parts(value: Any) -> int:
    """How many values a value holds, itself included."""
    if not isinstance(value, (dict, list)):
        return 1
    return 1 + sum(map(_parts, value.values() if isinstance(value, dict) else value))


def _terse(wrong: Any) -> tuple[str, str]:
    """A breach in the words of the quick library, for a value that is too large to be explained."""
    path = ".".join(getattr(wrong, "path", [])[1:])
    return redact.clean_text(path, 200), f"breaks the rule {getattr(wrong, 'rule', None) or 'of its schema'}"


def _place(error: Any) -> list[str]:
    return [str(part) for part in error.absolute_path]


def _shown(rule: Any) -> str:
    return redact.clean_text(json.dumps(rule)[:200])


def _named(error: Any) -> str:
    """The field that a rule on the whole object is about: a missing one, or the first that is not allowed."""
    if error.validator == "required":
        return next((str(name) for name in error.validator_value if name not in error.instance), "")
    if error.validator == "additionalProperties":
        return next((str(name) for name in error.instance if name not in error.schema.get("properties", {})), "")
    return ""
