"""Schemas that strangers write: refused with a reason or matched in a moment, whatever stands in them (SEC-16)."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from steadyhand.identity import BadInput

from runs import schemas
from runs.schemas import MAX_PATTERN_SIZE

HOSTILE_PATTERNS = [
    "a*a*!x$", "a?" * 40 + "a" * 40 + "$", "a{1,9999}a{1,9999}a{1,9999}b$", "a{1,999}a{1,999}b$", "(?x)(a+) +$",
    "(?x)(?:a|a) {1,60}$", "^(a+)+$", "^(?:a+){1,60}$", "(a+\\))?+", "([^]]+a)+$", "(?:[a]|[]]|[a])*?$", "(.*a){20}$",
    "(" * 24 + "a?" + ")?" * 24 + "b$", "^(a|a)(a|a)(a|a)$", "(?:(?:.{0,30}){0,30})x$", ".*.*.*.*.*.*.*x$",
    "(?=a+)a", "(a)\\1+", "(?<=a)b", "(?:a|b|ab)*c{1,60}", "^(\\w+\\s?)*$", "(a{1,30}){1,30}$",
]  # fmt: skip
HOSTILE_TEXTS = [
    "a" * 16_384,
    "a" * 16_383 + "!",
    "a" * 40 + "!",
    "ab" * 8192,
    "b" * 16_384,
    "a b" * 5461,
    "é" * 8192,
]


def text_of(**rules: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": {"type": "string", **rules}}}


@pytest.mark.parametrize("pattern", HOSTILE_PATTERNS)
@pytest.mark.parametrize("shape", ["property", "items", "names", "branch"])
def test_SEC_16_no_pattern_holds_the_server_up(pattern: str, shape: str) -> None:
    inner = {"pattern": pattern}
    schema: dict[str, Any] = {
        "property": text_of(**inner),
        "items": {"properties": {"x": {"anyOf": [{"type": "integer"}, inner]}}},
        "names": {"propertyNames": inner},
        "branch": {"if": text_of(**inner), "then": False},
    }[shape]
    try:
        schemas.check(schema, "s")
    except BadInput:
        return
    for text in HOSTILE_TEXTS:
        began = time.process_time()
        schemas.compiled(schema).breach({"x": text, text: 1})
        assert time.process_time() - began < 0.2  # less than 50 ms on a machine that does nothing else


def test_patterns_that_are_large_together_are_refused() -> None:
    schema = {"allOf": [{"pattern": f"{letter}{{1,300}}$"} for letter in "abcdefgh"]}
    with pytest.raises(BadInput, match="shorter patterns"):
        schemas.check(schema, "s")
    assert MAX_PATTERN_SIZE >= 700


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^INV-[0-9]{1,9}$", "INV-12", "INV-12\n"),
        (r"^[A-Z]{3}$", "EUR", "EURO"),
        (r"^[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}$", "jo@a.example", "jo@"),
        (r"^\d{4}-\d{2}-\d{2}$", "2026-03-14", "٢٠٢٦-03-14"),
        (r"^(open|closed)$", "open", "opened"),
        ("b", "abc", "ac"),
        ("^é+$", "éé", "e"),
    ],
)
def test_ordinary_patterns_mean_what_they_say(pattern: str, good: str, bad: str) -> None:
    schema = text_of(pattern=pattern)
    schemas.check(schema, "s")
    assert schemas.compiled(schema).breach({"x": good}) is None
    found = schemas.compiled(schema).breach({"x": bad})
    assert found is not None
    assert found[0] == "x"
    assert found[1].startswith("breaks the rule pattern")


BROKEN: list[dict[str, Any]] = [
    text_of(pattern="("), text_of(pattern="[z-a]"), text_of(pattern="a{99999999999}"), text_of(pattern=7),
    text_of(pattern="a\x00"), text_of(pattern="*"), text_of(pattern="a" * 501),
    {"patternProperties": {"^a": {}}}, {"patternProperties": {"*": {}}}, {"not": {"patternProperties": {}}},
    {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "id": 5}, {"$schema": "foo"},
    {"$schema": 5}, {"$schema": []}, {"$schema": "https://json-schema.org/draft/2020-12/schema"},
    {"allOf": [{"$schema": "http://json-schema.org/draft-04/schema#"}]},
    {"$id": "http://127.0.0.1/", "type": "object"}, {"id": "http://127.0.0.1/"}, {"$ref": "#"},
    {"properties": {"a": {"$ref": "http://127.0.0.1:1/x"}}}, {"$dynamicRef": "#a"}, {"$recursiveRef": "#"},
    {"type": "banana"}, {"type": 3}, {"properties": []}, {"required": "a"}, {"multipleOf": 0}, {"maximum": "9"},
    {"enum": 3}, {"allOf": {}}, {"properties": {"a": 5}}, {"minLength": -1}, {"items": 4}, {"if": 4},
    {"dependencies": {"a": 5}}, {"not": {"type": "object", "not": {"type": []}}},
]  # fmt: skip


@pytest.mark.parametrize("schema", BROKEN, ids=range(len(BROKEN)))
def test_a_schema_that_is_wrong_is_refused_and_never_an_error_of_ours(schema: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        schemas.check(schema, "tools.0.input_schema")


NAMES_ONLY: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "id": {"type": "string"}, "pattern": {"type": "string"}, "patternProperties": {"type": "string"},
        "properties": {"type": "object", "properties": {"$schema": {"type": "string"}}},
    },
    "required": ["id"],
}  # fmt: skip


def test_fields_may_be_named_like_keywords() -> None:
    schemas.check(NAMES_ONLY, "s")
    assert schemas.compiled(NAMES_ONLY).breach({"id": "a", "pattern": "("}) is None
    assert schemas.compiled(NAMES_ONLY).breach({}) == ("id", 'breaks the rule required: ["id"]')


def test_a_schema_nests_only_so_deep() -> None:
    schema: dict[str, Any] = {}
    for _ in range(60):
        schema = {"not": schema}
    with pytest.raises(BadInput, match="nest"):
        schemas.check(schema, "s")


@pytest.mark.parametrize("value", [10**400, 1e308, -1e308, "x", None, [], {}])
@pytest.mark.parametrize("rule", [{"multipleOf": 1e-320}, {"multipleOf": 0.1}, {"maximum": 3}, {"uniqueItems": True}])
def test_a_value_that_cannot_be_compared_is_a_breach_and_no_error(rule: dict[str, Any], value: Any) -> None:
    schema = {"properties": {"x": {"type": ["number", "null"], **rule}}}
    schemas.check(schema, "s")
    found = schemas.compiled(schema).breach({"x": value})
    assert found is None or found[1]


MIXED = [[0, "a", {}, None][i % 4] if i % 4 > 1 else (i if i % 4 else str(i)) for i in range(16_000)]
LARGE: list[tuple[dict[str, Any], Any]] = [
    ({"uniqueItems": True}, MIXED),
    ({"items": {"anyOf": [{"const": i} for i in range(1000)]}}, MIXED),
    ({"items": {"type": "boolean"}}, MIXED),
    ({"items": {"type": ["integer", "string", "object", "null"]}, "maxItems": 1}, MIXED),
    ({"contains": {"const": "not there"}}, MIXED),
]


@pytest.mark.parametrize(("schema", "value"), LARGE, ids=range(len(LARGE)))
def test_SEC_16_no_value_takes_long_to_check(schema: dict[str, Any], value: Any) -> None:
    schemas.check(schema, "s")
    schemas.compiled(schema)
    began = time.process_time()
    found = schemas.compiled(schema).breach(value)
    assert time.process_time() - began < 2
    assert found is not None
    assert found[1]


def test_a_repeated_item_is_told() -> None:
    found = schemas.compiled({"uniqueItems": True}).breach([1, "a", {"b": 1}, {"b": 1}])
    assert found == ("", "breaks the rule uniqueItems: true")


def test_a_field_in_a_breach_is_fit_to_be_stored() -> None:
    schema = {"type": "object", "additionalProperties": False}
    found = schemas.compiled(schema).breach({"a\x00sk_live_4eC39HqLyjWDarjtT1zdp7dc": 1})
    assert found is not None
    assert found[0].isprintable()
    assert "4eC39" not in found[0]


WORDS = [
    "type", "properties", "items", "pattern", "required", "enum", "$ref", "$id", "id", "not", "allOf", "multipleOf",
    "format", "dependencies", "const", "if", "contains", "$schema", "object", "string", "a", "(", "#",
]  # fmt: skip
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(WORDS), ANY, max_size=5), ANY)
def test_whatever_is_sent_as_a_schema_is_refused_or_works(schema: dict[str, Any], value: Any) -> None:
    try:
        schemas.check(schema, "s")
    except BadInput:
        return
    schemas.compiled(schema).breach(value)
