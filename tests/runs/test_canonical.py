"""Two ways to write the same arguments are the same call; nothing else is (F089, I9, F095, F096)."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steadyhand.identity import BadInput, canonical

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NUMBER = st.integers(-(2**53 - 1), 2**53 - 1)
VALUE = st.recursive(
    st.none() | st.booleans() | NUMBER | st.floats(-1e9, 1e9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(TEXT, VALUE, max_size=4)


def same_meaning(value: Any, form: Any) -> Any:
    """The value with keys turned round, whole numbers as floats and text in another Unicode form."""
    if isinstance(value, dict):
        return {form(key): same_meaning(value[key], form) for key in reversed(list(value))}
    if isinstance(value, list):
        return [same_meaning(item, form) for item in value]
    if isinstance(value, str):
        return form(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole and abs(value) < 2**53 else value


def readable(arguments: Any) -> bytes | None:
    try:
        return canonical(arguments)
    except BadInput:
        return None  # two field names that differ in form only


@given(ARGUMENTS)
def test_F089_order_number_and_unicode_forms_do_not_matter(arguments: dict[str, Any]) -> None:
    plain = readable(arguments)
    for name in ("NFC", "NFD"):
        other = same_meaning(arguments, lambda text, name=name: unicodedata.normalize(name, text))
        assert readable(other) == plain or plain is None


@given(ARGUMENTS, ARGUMENTS)
def test_I9_equal_bytes_mean_equal_arguments(one: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = readable(one), readable(other)
    if first is not None and first == second:
        assert canonical(json.loads(first)) == canonical(json.loads(second))
        assert set(one) == set(other) or {unicodedata.normalize("NFC", name) for name in one} == {
            unicodedata.normalize("NFC", name) for name in other
        }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": True}),
        ({"a": 0}, {"a": False}),
        ({"a": None}, {}),
        ({"a": []}, {"a": {}}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": "x"}, {"a": "x "}),
        ({"a": "a"}, {"a": "\u0430"}),
        ({"a": "ﬁ"}, {"a": "fi"}),
        ({"a": 1}, {"A": 1}),
        ({"a": 0.1}, {"a": 0.10000000000000002}),
    ],
)
def test_I9_what_differs_in_meaning_differs_in_bytes(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert canonical(one) != canonical(other)


def test_a_19_digit_id_survives_as_text() -> None:
    assert json.loads(canonical({"id": "1234567890123456789"}))["id"] == "1234567890123456789"


def test_a_field_that_carries_an_idempotency_key_says_nothing_about_meaning() -> None:
    assert canonical({"a": 1, "key": "x"}, without=frozenset(["key"])) == canonical({"a": 1})


def deep(levels: int) -> Any:
    return {"a": deep(levels - 1)} if levels else 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"a": "\0"},
        {"\0": 1},
        {"a": "\ud800"},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": 2**53},
        {"a": 1234567890123456789},
        {"a": "x" * 16_385},
        {"a": list(range(501))},
        {str(number): number for number in range(501)},
        {"é": 1, "e\u0301": 2},
        deep(22),
        {"a": b"bytes"},
    ],
)
def test_F095_F096_what_cannot_be_recorded_faithfully_is_refused_with_a_remedy(arguments: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as refused:
        canonical(arguments)
    assert refused.value.field
    assert refused.value.remedy
