"""One field of a schema as a form asks for it, and what was typed read back, as tables."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.rules import questions
from recovery.rules.questions import Field, Unfit

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "account": {"type": "string", "title": "Account number", "description": "As on your bill.", "maxLength": 12},
        "note": {"type": ["string", "null"], "minLength": 3},
        "days": {"type": "integer", "minimum": 1, "maximum": 30},
        "rate": {"type": "number"},
        "urgent": {"type": "boolean"},
        "size": {"enum": ["small", "large", 3, True, None]},
        "address": {"type": "object", "properties": {"city": {"type": "string"}}},
        "lines": {"type": "array"},
        "either": {"type": ["string", "integer"]},
        "anything": {},
    },
}


def field(path: str) -> Field:
    found = questions.field_of(SCHEMA, path)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("path", "kind", "label", "rule"),
    [
        ("account", "text", "Account number", "At most 12 characters."),
        ("note", "text", "Note", ""),
        ("days", "whole", "Days", "A whole number from 1 up to 30."),
        ("rate", "number", "Rate", "A number."),
        ("urgent", "yes_no", "Urgent", ""),
        ("size", "choice", "Size", ""),
        ("address.city", "text", "City", ""),
    ],
)
def test_a_field_is_asked_for_as_its_schema_has_it(path: str, kind: str, label: str, rule: str) -> None:
    found = field(path)
    assert (found.kind, found.label, found.rule) == (kind, label, rule)


@pytest.mark.parametrize("path", ["address", "lines", "lines.0", "either", "anything", "unknown", "account.x", ""])
def test_no_form_asks_for_a_structure_or_for_what_the_schema_does_not_say(path: str) -> None:
    assert questions.field_of(SCHEMA, path) is None


@pytest.mark.parametrize(
    ("path", "typed", "value"),
    [
        ("account", "  acct_1 ", "acct_1"),
        ("note", "<b>yes</b>", "<b>yes</b>"),
        ("days", "30", 30),
        ("rate", "0.5", 0.5),
        ("urgent", "true", True),
        ("urgent", "false", False),
        ("size", "large", "large"),
        ("size", "3", 3),
        ("size", "true", True),
        ("address.city", "Kiel", "Kiel"),
    ],
)
def test_what_is_typed_is_read_as_the_schema_types_it(path: str, typed: str, value: Any) -> None:
    found = questions.read(field(path), typed)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("path", "typed", "sentence"),
    [
        ("account", "x" * 13, "at most 12 characters"),
        ("account", "   ", "Write an answer"),
        ("note", "ab", "at least 3 characters"),
        ("days", "0", "from 1 up to 30"),
        ("days", "31", "from 1 up to 30"),
        ("days", "1.5", "Write a whole number"),
        ("days", "9" * 40, "from 1 up to 30"),
        ("days", "9" * 400, "from 1 up to 30"),
        ("days", "-" + "9" * 400, "from 1 up to 30"),
        ("rate", "nan", "Write a smaller number"),
        ("rate", "1e400", "Write a smaller number"),
        ("urgent", "perhaps", "yes or no"),
        ("size", "huge", "Choose one"),
        ("size", "None", "Choose one"),
    ],
)
def test_what_does_not_fit_is_told_in_a_sentence(path: str, typed: str, sentence: str) -> None:
    with pytest.raises(Unfit, match=sentence):
        questions.read(field(path), typed)


@given(st.text(max_size=3000), st.sampled_from(["account", "note", "days", "rate", "urgent", "size"]))
def test_no_text_breaks_the_reader_or_is_repeated(typed: str, path: str) -> None:
    said = ""
    try:
        questions.read(field(path), typed)
    except Unfit as wrong:
        said = str(wrong)
    assert len(typed.strip()) < 8 or typed.strip() not in said


def test_one_field_is_changed_and_what_was_given_stays() -> None:
    given_before = {"address": {"city": "Kiel", "zip": "1"}, "account": "a"}
    changed = questions.with_value(given_before, "address.city", "Bonn")
    assert changed == {"address": {"city": "Bonn", "zip": "1"}, "account": "a"}
    assert given_before["address"] == {"city": "Kiel", "zip": "1"}
    assert questions.with_value({}, "a.b.c", 1) == {"a": {"b": {"c": 1}}}
