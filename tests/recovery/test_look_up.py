"""The declarative look-up: what counts as ours, and what an answer can and cannot prove (F044, F045, DECISIONS 2)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steadyhand.judging import MAX_ITEMS
from steadyhand.manifest import Connector, Look

from recovery.connectors.base import Finding, Question
from recovery.connectors.http import Unusable, json_of, judge
from recovery.connectors.templates import path_of

ACTION = "a1b2c3"
ARGUMENTS = {"account": "acct_1", "amount_minor": 12_000, "currency": "EUR", "note": "", "nested": {"id": "n/../1"}}
RECORD = {"reference": ACTION, "amount_minor": 12_000, "account": "acct_1", "credit_id": "cr_1", "state": "booked"}
LOOK: dict[str, Any] = {
    "path": "/credits",
    "items": "items",
    "ours": {"reference": "{action_id}"},
    "match": {"amount_minor": "{arguments.amount_minor}", "account": "{arguments.account}"},
    "external_id": "credit_id",
}


def question(**look: Any) -> Question:
    connector = Connector.model_validate({"kind": "http", "base_url": "https://api.example.org"})
    return Question(ACTION, "run-1", "key-1", copy.deepcopy(ARGUMENTS), connector, Look.model_validate(LOOK | look))


def found(document: Any, **look: Any) -> Finding:
    asked = question(**look)
    assert asked.look is not None
    return judge(document, asked, asked.look)


def listed(*records: Any, **look: Any) -> Finding:
    return found({"items": list(records)}, **look)


def other(**changes: Any) -> dict[str, Any]:
    return RECORD | changes


def test_one_whole_record_of_ours_is_present() -> None:
    seen = listed(other(reference="someone-else"), RECORD)
    assert (seen.verdict, seen.count, seen.external_id, seen.record) == ("present", 1, "cr_1", RECORD)


def test_none_of_ours_is_absent() -> None:
    assert (listed().verdict, listed().count) == ("absent", 0)
    assert listed(other(reference="someone-else")).verdict == "absent"


def test_F029_two_of_ours_are_a_conflict_that_counts_them() -> None:
    seen = listed(RECORD, other(credit_id="cr_2"))
    assert (seen.verdict, seen.count) == ("conflict", 2)


@pytest.mark.parametrize(
    "changes",
    [{"amount_minor": 1}, {"account": "acct_2"}, {"amount_minor": "12000"}, {"amount_minor": 1, "account": None}],
)
def test_F044_our_reference_on_other_values_is_a_conflict(changes: dict[str, Any]) -> None:
    seen = listed(other(**changes))
    assert seen.verdict == "conflict"
    assert next(iter(changes)) in seen.fact


@pytest.mark.parametrize("lacking", [{"account": None}, {"account": ""}, {"account": None, "amount_minor": None}])
def test_F045_a_record_of_ours_that_lacks_fields_is_partial_and_never_present(lacking: dict[str, Any]) -> None:
    seen = listed(other(**lacking))
    assert (seen.verdict, seen.count) == ("partial", 1)
    assert all(name in seen.fact for name in lacking)


def test_F044_the_same_amount_under_another_reference_is_not_ours() -> None:
    assert listed(other(reference="a1b2c4")).verdict == "absent"


@given(st.text(max_size=12) | st.integers() | st.none() | st.booleans() | st.lists(st.just(ACTION), max_size=1))
def test_F044_no_look_alike_reference_is_ever_ours(reference: Any) -> None:
    if reference != ACTION:
        assert listed(other(reference=reference)).verdict == "absent"


@pytest.mark.parametrize("identity", [None, "", " ", "\t\u00a0", True, {"a": 1}, []])
def test_a_record_of_ours_without_an_identity_is_a_conflict(identity: Any) -> None:
    assert listed(other(credit_id=identity)).verdict == "conflict"


def test_a_record_that_is_still_being_processed_says_so() -> None:
    condition = {"path": "state", "one_of": ["pending"]}
    assert listed(other(state="pending"), processing=condition).verdict == "processing"
    assert listed(RECORD, processing=condition).verdict == "present"


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"error": "internal"},
        {"items": None},
        {"items": RECORD},
        {"items": {}},
        {"items": "none"},
        {"items": 0},
        [],
        "ok",
        None,
        {"items": ["a"]},
        {"items": [None]},
    ],
)
def test_an_answer_without_the_declared_list_proves_nothing(document: Any) -> None:
    assert found(document).verdict == "probe_failed"


NEXT_PAGE = [
    {"has_more": True}, {"next": "/credits?page=2"}, {"next_page": 2}, {"next_cursor": "c2"}, {"nextPageToken": "t"},
    {"links": {"next": "https://api.example.org/2"}}, {"paging": {"next": {"after": "x"}}},
]  # fmt: skip
LAST_PAGE = [
    {"has_more": False}, {"next": None}, {"next_page": None}, {"next_cursor": ""}, {"links": {}}, {"links": None},
    {"paging": {"next": None}}, {"count": 1},
]  # fmt: skip


@pytest.mark.parametrize("sign", NEXT_PAGE)
def test_F042_nothing_found_in_a_list_that_goes_on_proves_nothing(sign: dict[str, Any]) -> None:
    seen = found({"items": [other(reference="x")], **sign})
    assert (seen.verdict, seen.fact) == ("probe_failed", "The list is not complete.")
    assert found({"data": {"items": [], **sign}}, items="data.items").verdict == "probe_failed"


@pytest.mark.parametrize("sign", LAST_PAGE)
def test_a_list_that_ends_here_may_prove_an_absence(sign: dict[str, Any]) -> None:
    assert found({"items": [], **sign}).verdict == "absent"


@pytest.mark.parametrize("sign", NEXT_PAGE)
def test_what_is_found_in_a_list_that_goes_on_is_there_but_not_counted(sign: dict[str, Any]) -> None:
    seen = found({"items": [RECORD], **sign})
    assert (seen.verdict, seen.count, seen.external_id) == ("present", None, "cr_1")
    assert "went on" in seen.fact
    assert found({"items": [RECORD, RECORD], **sign}).verdict == "conflict"


@pytest.mark.parametrize(
    ("complete", "whole", "part"),
    [
        ({"path": "truncated", "equals": False}, {"truncated": False}, {"truncated": True}),
        ({"path": "meta.left", "equals": 0}, {"meta": {"left": 0}}, {"meta": {"left": 3}}),
        ({"path": "cursor", "present": False}, {"cursor": None}, {"cursor": "c2"}),
        ({"path": "cursor", "equals": None}, {"cursor": None}, {"cursor": "c2"}),
        ({"path": "state", "one_of": ["all"]}, {"state": "all", "next": "/me"}, {}),
    ],
)
def test_F042_the_contract_says_when_a_list_is_complete(complete: Any, whole: Any, part: Any) -> None:
    assert found({"items": [], **whole}, complete=complete).verdict == "absent"
    assert found({"items": [], **part}, complete=complete).verdict == "probe_failed"
    assert found({"items": [RECORD], **part}, complete=complete).verdict == "present"


def test_F042_a_next_page_in_the_headers_counts_too() -> None:
    asked = question(items=None)
    assert asked.look is not None
    assert judge([], asked, asked.look, more=True).verdict == "probe_failed"
    assert judge([RECORD], asked, asked.look, more=True).count is None


def test_a_null_is_no_mark_of_processing() -> None:
    condition = {"path": "pending_since", "present": True}
    assert listed(other(pending_since=None), processing=condition).verdict == "present"
    assert listed(other(pending_since="now"), processing=condition).verdict == "processing"


@pytest.mark.parametrize("identity", ["cr\x00", "cr\ud800", "cr\u202e", "c" * 5000, 10**300])
def test_I6_a_found_identity_is_fit_to_be_stored(identity: Any) -> None:
    seen = listed(other(credit_id=identity))
    assert seen.verdict == "present"
    assert len(seen.external_id) <= 200
    assert (seen.external_id + seen.fact).isprintable()


@pytest.mark.parametrize(
    ("body", "items"),
    [
        (b'{"items": [{"n": "a\\u0000\\ud800", "big": 1e999}]}', [{"n": "a\\u0000\\ud800", "big": "1e999"}]),
        (b'\xef\xbb\xbf{"items": []}', []),
    ],
)
def test_I6_an_answer_is_read_so_that_it_can_be_kept(body: bytes, items: Any) -> None:
    assert json_of(body) == {"items": items}


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"{", b"[" * 900 + b"]" * 900, b"[" * 90_000, b"NaN"])
def test_F042_an_answer_that_cannot_be_read_is_unusable(body: bytes) -> None:
    with pytest.raises(Unusable):
        json_of(body)


def test_an_answer_that_is_one_record_is_ours_or_proves_nothing() -> None:
    assert found(RECORD, items=None).verdict == "present"
    assert found({"error": "internal"}, items=None).verdict == "probe_failed"
    assert found([], items=None).verdict == "absent"


def test_an_empty_reference_recognises_nothing_and_proves_nothing() -> None:
    for slot in ("{arguments.note}", "{arguments.missing}"):
        assert listed(RECORD, ours={"reference": slot}).verdict == "probe_failed"


def test_more_records_than_can_be_counted_prove_nothing() -> None:
    assert listed(*[other(reference="x")] * MAX_ITEMS).verdict == "absent"
    assert listed(*[other(reference="x")] * (MAX_ITEMS + 1)).verdict == "probe_failed"


def test_a_part_of_the_record_may_be_the_result() -> None:
    assert listed(other(result={"credit_id": "cr_1"}), result="result").record == {"credit_id": "cr_1"}


def test_one_and_true_are_not_the_same_value() -> None:
    assert listed(other(amount_minor=True), match={"amount_minor": 1}).verdict == "conflict"
    assert listed(other(amount_minor=1.0), match={"amount_minor": 1}).verdict == "present"


@pytest.mark.parametrize(
    "value", ["../../admin", "a/b", "a?b=c", "a#b", "a b", "%2e%2e%2f", "\r\nHost: x", "é", "{key}"]
)
def test_SEC_20_no_argument_climbs_out_of_the_path(value: str) -> None:
    asked = question()
    asked.arguments["account"] = value
    path = path_of("/accounts/{arguments.account}/credits", asked)
    assert path.count("/") == 3
    assert not set(path) & set("?# \r\n")
    assert "key-1" not in path


def test_SEC_20_only_known_slots_are_filled() -> None:
    assert (
        path_of("/{action_id}/{key}/{run_id}/{arguments.nested.id}", question())
        == f"/{ACTION}/key-1/run-1/n%2F..%2F1"
    )
    assert path_of("/{settings}/{arguments.__class__}", question()) == "/{settings}/"


NAMES = st.sampled_from(["items", "reference", "credit_id", "x"])
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=10,
)


@given(DOCUMENTS)
def test_whatever_a_provider_answers_is_judged(document: Any) -> None:
    verdicts = ("present", "absent", "partial", "processing", "conflict", "probe_failed")
    for items in ("items", None):
        assert found(document, items=items).verdict in verdicts
