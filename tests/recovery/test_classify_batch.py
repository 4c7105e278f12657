"""A call that carries many items: each item ends by itself, and one whose end is open is never called done (F049)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steadyhand.contract import Observation
from steadyhand.manifest import Tool

from recovery.rules.classify import Before, Classified, classify

NOW = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
BATCH = {
    "items": "mails",
    "key": "ref",
    "results": "results",
    "result_key": "ref",
    "ok": {"path": "status", "one_of": [200, "sent"]},
    "external_id": "id",
}
SEND = Tool.model_validate({"name": "send_mails", "effect": "write", "batch": BATCH})
DONE = {"status": 200, "id": "m_1"}
REFUSED = {"status": 422, "error": {"code": "address_blocked"}}
LIMITED = {"status": 429}
OPEN = [{"status": 500}, {"status": 409}, {"status": "pending"}, {"error": "internal_error"}, {}, None]


def read(entries: Any, refs: tuple[str, ...] = ("a", "b", "c"), done: frozenset[str] = frozenset()) -> Classified:
    before = Before(arguments={"mails": [{"ref": ref, "to": f"{ref}@x.example"} for ref in refs]}, done=done)
    seen = Observation(kind="reply", status=207, body=json.dumps({"results": entries}))
    return classify(seen, SEND, clock=lambda: NOW, breach=lambda result: None, before=before)


def told(**ends: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    return [{"ref": ref, **end} for ref, end in ends.items() if end is not None]


def ends(found: Classified) -> dict[str, str]:
    return {item.key: item.observed for item in found.items}


def test_F049_a_batch_that_went_well_is_a_success_of_each_item() -> None:
    found = read(told(a=DONE, b=DONE, c=DONE))
    assert (found.observed, found.partial, set(ends(found).values())) == ("ok_valid", False, {"ok_valid"})
    assert [item.external_id for item in found.items] == ["m_1"] * 3


@pytest.mark.parametrize("named", [None, "", " ", True, {"a": 1}])
def test_F049_an_item_that_was_done_without_an_id_has_none(named: Any) -> None:
    [item, *_] = read(told(a={**DONE, "id": named}, b=DONE, c=DONE)).items
    assert (item.observed, item.external_id) == ("ok_valid", "")


def test_F049_a_batch_of_which_nothing_was_done_is_a_refusal() -> None:
    found = read(told(a=REFUSED, b=REFUSED, c=REFUSED))
    assert (found.observed, found.reason, found.partial) == ("permanent_reject", "business_rule_violation", False)
    assert read(told(a=LIMITED, b=LIMITED, c=LIMITED)).observed == "transient_reject"


def test_F049_a_partial_batch_names_each_items_end() -> None:
    found = read(told(a=DONE, b=REFUSED, c={"status": 404}))
    assert (found.observed, found.reason, found.partial) == ("unknown", "partial_effect", True)
    assert {item.key: item.reason for item in found.items} == {
        "a": "completed", "b": "business_rule_violation", "c": "resource_not_found",
    }  # fmt: skip
    assert read(told(a=DONE, b=LIMITED, c=LIMITED)).partial


@pytest.mark.parametrize("end", OPEN)
def test_F049_an_item_that_is_neither_done_nor_refused_is_unknown(end: Any) -> None:
    found = read(told(a=DONE, b=REFUSED, c=end))
    assert ends(found) == {"a": "ok_valid", "b": "permanent_reject", "c": "unknown"}
    assert found.partial


def test_F049_an_item_that_is_told_twice_is_a_contradiction() -> None:
    found = read([*told(a=DONE, b=DONE, c=DONE), {"ref": "b", **REFUSED}])
    assert (found.partial, found.conflict, ends(found)["b"]) == (True, True, "unknown")


def test_F049_items_sent_under_one_key_cannot_be_told_apart() -> None:
    assert ends(read(told(a=DONE, b=DONE), refs=("a", "b", "b"))) == {"a": "ok_valid", "b": "unknown"}


@pytest.mark.parametrize("entries", [told(a=DONE, z=DONE), [{"status": 200}], [], None, "sent", {"a": DONE}])
def test_F048_an_answer_that_is_not_about_these_items_proves_nothing(entries: Any) -> None:
    found = read(entries)
    assert (found.observed, found.items) == ("ok_invalid", ())


def test_F049_items_that_were_done_before_are_not_asked_about_again() -> None:
    found = read(told(c=DONE), done=frozenset("ab"))
    assert (found.observed, ends(found)) == ("ok_valid", {"c": "ok_valid"})


def test_F049_without_the_arguments_nothing_is_known_of_any_item() -> None:
    seen = Observation(kind="reply", status=200, body=json.dumps({"results": told(a=DONE)}))
    assert classify(seen, SEND, clock=lambda: NOW, breach=lambda result: None).observed == "ok_invalid"


@given(st.lists(st.sampled_from([DONE, REFUSED, LIMITED, *OPEN]), min_size=1, max_size=5))
def test_F049_the_whole_is_done_only_if_every_item_is(each: list[Any]) -> None:
    refs = tuple("abcde"[: len(each)])
    found = read(told(**dict(zip(refs, each, strict=True))), refs)
    if found.observed == "ok_invalid":
        return
    said = [item.observed for item in found.items]
    assert (found.observed == "ok_valid") == (set(said) == {"ok_valid"})
    assert found.observed != "permanent_reject" or set(said) == {"permanent_reject"}
    assert len(said) == len(each)
