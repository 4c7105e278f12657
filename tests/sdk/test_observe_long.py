"""An answer longer than what travels: JSON stays JSON, so that none is lost for its length alone (ruling 16)."""

from __future__ import annotations

import json

import httpx
import pytest
from steadyhand import observe
from steadyhand.contract import MAX_REPLY_BYTES, Observation


def seen(value: object) -> Observation:
    return observe.from_result(httpx.Response(201, json=value))


@pytest.mark.parametrize(
    "value",
    [
        {"id": "x_1", "text": "é" * 1_000_000},
        {"id": "x_1", "deep": {"rows": [["y" * 50_000] * 40] * 2}},
        {"id": "x_1", "line": "\u0000\u001b" * 400_000},
    ],
)
def test_what_is_kept_of_a_long_answer_is_still_json(value: dict[str, object]) -> None:
    kept = seen(value)
    assert json.loads(kept.body or "")["id"] == "x_1"
    assert len((kept.body or "").encode()) <= MAX_REPLY_BYTES
    assert kept.altered
    assert (kept.body_bytes or 0) > MAX_REPLY_BYTES


def test_a_cut_text_says_how_long_it_was() -> None:
    kept = json.loads(seen({"id": "x_1", "text": "z" * 1_400_000}).body or "")
    assert kept["text"].endswith("[cut: 1400000 characters]")


def test_an_answer_that_fits_is_kept_as_it_came() -> None:
    kept = seen({"id": "x_1", "text": "z" * 400_000})
    assert not kept.altered


def test_a_list_is_never_cut_short_so_that_nothing_goes_missing_unseen() -> None:
    kept = seen({"id": "x_1", "rows": list(range(300_000))})
    with pytest.raises(ValueError, match=r"Expecting|delimiter|Unterminated"):
        json.loads(kept.body or "")


@pytest.mark.parametrize("text", ["[" * 1_100_000, '{"a":1,"a":2,"b":"' + "x" * 1_100_000 + '"}', "plain " * 200_000])
def test_what_is_no_json_keeps_its_beginning(text: str) -> None:
    kept = observe.from_result(httpx.Response(200, text=text))
    assert text.startswith((kept.body or "")[:1000])
    assert kept.altered
