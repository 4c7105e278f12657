"""What an answer means, line by line (FAULTS B and E, DECISIONS 2, rulings 1 to 3)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steadyhand.contract import MAX_REPLY_BYTES, OUTCOME_OF, Observation
from steadyhand.manifest import Tool

from recovery.rules.classify import NO_RESULT, Classified, classify
from recovery.rules.delays import MAX_RETRY_AFTER_SECONDS, retry_after
from recovery.rules.http_refusals import NOT_PROCESSED

NOW = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
CONTRACT: dict[str, Any] = {
    "identity_fields": ["id"],
    "error_when": [{"path": "error", "present": True}],
    "success_requires": [{"path": "status", "one_of": ["done", "ok"]}],
    "not_executed_statuses": [503],
    "async_statuses": [202],
    "conflict_codes": {
        "exists": "already_done",
        "stale": "version_conflict",
        "window": "business_rule",
        "reused": "key_conflict",
    },
}
WELL = {"id": "x_1", "status": "done"}
UNKNOWN = ("unknown", "external_outcome_unknown")


def tool(effect: str = "write", **changes: Any) -> Tool:
    return Tool.model_validate({"name": "t", "effect": effect} | CONTRACT | changes)


def answer(body: Any = None, status: int | None = 200, **more: Any) -> Observation:
    text = body if isinstance(body, str) else json.dumps(body)
    return Observation(kind="reply", status=status, body=text, **more)


def read(seen: Observation, of: Tool | None = None, fault: str | None = None) -> Classified:
    return classify(seen, of or tool(), clock=lambda: NOW, breach=lambda result: fault)


def said(seen: Observation, of: Tool | None = None) -> tuple[str, str]:
    found = read(seen, of)
    return found.observed, found.reason


# --- nothing came back --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (Observation(kind="not_sent"), ("not_sent", "connect_failed")),  # F023
        (Observation(kind="connection_lost", bytes_sent=0), ("not_sent", "connect_failed")),  # F024
        (Observation(kind="connection_lost", bytes_sent=1), UNKNOWN),
        (Observation(kind="connection_lost"), UNKNOWN),
        (Observation(kind="timeout", bytes_sent=0), UNKNOWN),  # a timeout proves nothing, whatever was counted
        (Observation(kind="timeout", bytes_sent=10), UNKNOWN),
        (Observation(kind="exception", exc_type="ValueError", message="not executed, honestly"), UNKNOWN),
        (Observation(kind="exception", declared="unknown"), UNKNOWN),
        (Observation(kind="exception", declared="not_sent"), ("not_sent", "connect_failed")),
        (Observation(kind="exception", declared="rate_limited"), ("transient_reject", "provider_rate_limited")),
        (Observation(kind="exception", declared="business_rule"), ("permanent_reject", "business_rule_violation")),
        (Observation(kind="exception", declared="invalid_input"), ("permanent_reject", "invalid_arguments")),
        (Observation(kind="exception", declared="needs_input"), ("permanent_reject", "user_input_required")),
    ],
)
def test_F023_F024_silence_is_typed_by_what_is_proven(seen: Observation, expected: tuple[str, str]) -> None:
    assert said(seen) == expected


def test_F024_a_read_without_an_answer_is_only_unavailable() -> None:
    for kind in ("timeout", "connection_lost", "exception"):
        assert said(Observation(kind=kind), tool("read")) == ("unknown", "provider_unavailable")


ANY_OBSERVATION = st.builds(
    Observation,
    kind=st.sampled_from(get_args(Observation.model_fields["kind"].annotation)),
    status=st.none() | st.integers(100, 999),
    body=st.none() | st.text(max_size=40) | st.sampled_from([json.dumps(WELL), '{"error": 1}', '{"code": "reused"}']),
    bytes_sent=st.none() | st.integers(0, 9),
    altered=st.booleans(),
    message=st.none() | st.text(max_size=20),
    retry_after=st.none() | st.text(max_size=8),
    headers=st.dictionaries(st.sampled_from(["Retry-After", "Location", "Date"]), st.text(max_size=8)),
)
ANY_TOOL = st.builds(
    tool,
    effect=st.sampled_from(["read", "write"]),
    success_statuses=st.none() | st.lists(st.sampled_from([200, 201, 204]), max_size=2),
    not_executed_statuses=st.lists(st.sampled_from([500, 503, 409]), max_size=2),
)


@given(ANY_OBSERVATION, ANY_TOOL)
def test_classify_is_total_and_speaks_known_words(seen: Observation, of: Tool) -> None:
    found = read(seen, of)
    assert found.reason in OUTCOME_OF
    assert (found.result is not NO_RESULT) == (found.observed == "ok_valid" or found.processing)


@given(ANY_OBSERVATION.filter(lambda seen: seen.kind in ("timeout", "exception", "connection_lost")), ANY_TOOL)
def test_no_silence_frees_or_fails_a_write(seen: Observation, of: Tool) -> None:
    refused = seen.kind == "exception" and seen.status in (401, 403, 404, 410, 429)
    if not (refused or (seen.kind == "connection_lost" and seen.bytes_sent == 0)):
        assert read(seen, of).observed == "unknown"


@given(ANY_OBSERVATION.filter(lambda seen: seen.kind == "reply"), ANY_TOOL)
def test_a_write_is_called_unharmed_only_by_a_refusal_or_by_what_the_contract_names(
    seen: Observation, of: Tool
) -> None:
    found = read(seen, of)
    if (
        of.effect == "write"
        and found.observed in ("transient_reject", "permanent_reject")
        and seen.status is not None
    ):
        named = seen.status in (429, *of.not_executed_statuses) or any(
            word in (seen.body or "") for word in ("error", "code")
        )
        assert seen.status in NOT_PROCESSED or 300 <= seen.status < 400 or named


@given(ANY_OBSERVATION, ANY_TOOL, st.text(min_size=1, max_size=5))
def test_F086_an_answer_that_breaks_its_schema_is_never_a_success(seen: Observation, of: Tool, fault: str) -> None:
    found = read(seen, of, fault)
    assert found.observed != "ok_valid" or found.reason == "already_in_desired_state"


# --- answers by status --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (answer(WELL), ("ok_valid", "completed")),
        (answer(WELL, status=None), ("ok_valid", "completed")),
        (answer(WELL, status=201), ("ok_valid", "completed")),
        (answer(WELL, status=202), ("unknown", "async_pending")),
        (answer({}, status=429), ("transient_reject", "provider_rate_limited")),  # F031
        (answer({}, status=403, headers={"Retry-After": "3"}), ("permanent_reject", "permission_denied")),
        (answer({}, status=503), ("transient_reject", "provider_unavailable")),  # F035: named in the contract
        (answer({}, status=500), UNKNOWN),  # F033
        (answer({}, status=502), UNKNOWN),  # F034
        (answer({}, status=504), UNKNOWN),
        (answer({}, status=599), UNKNOWN),
        (answer({}, status=408), UNKNOWN),
        (answer({}, status=100), ("ok_invalid", "external_outcome_unknown")),
        (answer({}, status=401), ("permanent_reject", "credentials_invalid")),  # F037
        (answer({}, status=403), ("permanent_reject", "permission_denied")),
        (answer({}, status=404), ("permanent_reject", "resource_not_found")),
        (answer({}, status=410), ("permanent_reject", "resource_not_found")),
        (answer({}, status=400), ("permanent_reject", "business_rule_violation")),
        (answer({}, status=422), ("permanent_reject", "business_rule_violation")),  # F038
        (answer("", status=302), ("permanent_reject", "unexpected_redirect")),  # F039
        (answer({**WELL, "code": "exists"}, status=409), ("ok_valid", "already_in_desired_state")),  # F036
        (answer({"error": {"code": "stale"}}, status=409), ("permanent_reject", "precondition_failed")),
        (answer({"error": "window"}, status=409), ("permanent_reject", "business_rule_violation")),
        (answer({"error": {"code": "reused"}}, status=409), ("unknown", "idempotency_key_conflict")),  # F047
    ],
)
def test_F031_to_F047_a_status_means_what_the_contract_says(seen: Observation, expected: tuple[str, str]) -> None:
    assert said(seen) == expected


PROCESSED_PERHAPS = [407, 408, 409, 412, 418, 421, 423, 424, 425, 426, 430, 440, 449, 450, 460, 499]


@pytest.mark.parametrize("status", PROCESSED_PERHAPS)
def test_T3_a_write_is_not_refused_by_a_status_that_does_not_say_so(status: int) -> None:
    assert said(answer({}, status=status)) == UNKNOWN
    assert read(answer({}, status=status), tool("read")).observed == (
        "unknown" if status == 408 else "permanent_reject"
    )


@pytest.mark.parametrize("status", sorted(NOT_PROCESSED))
def test_F038_a_status_that_says_not_processed_is_a_refusal(status: int) -> None:
    assert read(answer({}, status=status)).observed == "permanent_reject"


@pytest.mark.parametrize("status", [409, 423, 425, 499])
def test_F035_what_the_contract_names_as_not_executed_goes_again(status: int) -> None:
    assert read(answer({}, status=status), tool(not_executed_statuses=[status])).observed == "transient_reject"


RECONCILE = {"connector": "payments"}


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_F039_a_write_that_is_sent_elsewhere_was_not_fulfilled(status: int) -> None:
    assert said(answer("", status=status), tool(reconcile=RECONCILE)) == ("permanent_reject", "unexpected_redirect")


@pytest.mark.parametrize("status", [300, 304])
def test_F039_another_redirect_of_a_write_is_asked_about_where_it_can_be(status: int) -> None:
    assert said(answer("", status=status), tool(reconcile=RECONCILE)) == UNKNOWN
    assert said(answer("", status=status)) == ("permanent_reject", "unexpected_redirect")
    assert said(answer("", status=status), tool("read")) == ("permanent_reject", "unexpected_redirect")


def test_F039_see_other_may_follow_a_write_that_was_carried_out() -> None:
    assert said(answer("", status=303)) == UNKNOWN


def test_F031_a_403_with_a_delay_is_a_limit_for_a_read_and_for_a_write_that_declares_it() -> None:
    limited = answer({}, status=403, headers={"Retry-After": "60"})
    for of in (tool("read"), tool("read", rate_limit_statuses=[403, 429]), tool(rate_limit_statuses=[403, 429])):
        found = read(limited, of)
        assert (found.observed, found.reason) == ("transient_reject", "provider_rate_limited")
        assert found.retry_after_seconds == 60


def test_F035_a_503_that_the_contract_does_not_name_is_unknown() -> None:
    assert said(answer({}, status=503), tool(not_executed_statuses=[])) == UNKNOWN


def test_F047_a_key_conflict_says_so() -> None:
    assert read(answer({"code": "reused"}, status=422)).key_conflict


def test_a_success_that_the_contract_does_not_list_proves_nothing() -> None:
    listed = tool(success_statuses=[201])
    assert said(answer(WELL, status=201), listed) == ("ok_valid", "completed")
    assert said(answer(WELL, status=200), listed) == ("ok_invalid", "external_outcome_unknown")


def test_a_status_that_the_contract_lists_is_a_success() -> None:
    assert said(answer(WELL, status=404), tool(success_statuses=[200, 404])) == ("ok_valid", "completed")


# --- what a success must carry ------------------------------------------------------------------------------

NO_SUCCESS = [
    "",
    "done",
    "<html></html>",
    '{"id": "x_1", "status": "done"',  # F030: cut
    '{"id": NaN, "status": "done"}',
    "[" * 100_000,
    {},
    [],
    None,
    {"status": "done"},
    {"id": "", "status": "done"},
    {"id": " ", "status": "done"},
    {"id": None, "status": "done"},
    {"id": True, "status": "done"},
    {"id": {"a": 1}, "status": "done"},
    {"id": 1.5, "status": "done"},
    {"id": "x_1"},
    {"id": "x_1", "status": "pending"},
    {"id": "x_1", "status": ["done"]},
]


@pytest.mark.parametrize("body", NO_SUCCESS)
@pytest.mark.parametrize(
    ("effect", "reason"), [("write", "external_outcome_unknown"), ("read", "invalid_tool_result")]
)
def test_F030_F086_F087_a_200_without_what_was_promised_is_no_success(body: Any, effect: str, reason: str) -> None:
    assert said(answer(body), tool(effect)) == ("ok_invalid", reason)


def test_F096_an_answer_whose_characters_were_written_out_is_whole() -> None:
    assert said(answer(WELL, altered=True)) == ("ok_valid", "completed")


def test_F030_an_answer_that_was_cut_or_never_read_is_no_success() -> None:
    cut = json.dumps(WELL)[:-1]
    for seen in (answer(cut, altered=True, body_bytes=MAX_REPLY_BYTES + 1), answer(WELL, altered=True)):
        unread = seen.model_copy(update={"body": None}) if seen.body_bytes is None else seen
        assert said(unread) == ("ok_invalid", "external_outcome_unknown")


def test_F030_an_answer_whose_long_texts_were_cut_short_is_whole() -> None:
    long = MAX_REPLY_BYTES + 1
    assert said(answer(WELL, altered=True, body_bytes=long)) == ("ok_valid", "completed")
    assert said(answer("1234567", altered=True, body_bytes=long), tool("read")) == (
        "ok_invalid",
        "invalid_tool_result",
    )


@pytest.mark.parametrize("error", [{"code": "closed"}, "closed", {"message": "no"}, 0, False, ""])
def test_F085_T3_a_declared_error_in_a_200_is_a_refusal(error: Any) -> None:
    assert read(answer({**WELL, "error": error})).observed == "permanent_reject"


def test_F085_a_declared_error_that_is_null_is_none() -> None:
    assert said(answer({**WELL, "error": None})) == ("ok_valid", "completed")


def test_F085_the_field_at_fault_is_named() -> None:
    assert read(answer({"error": {"code": "bad", "field": "account"}})).field == "account"


@pytest.mark.parametrize(("condition", "value", "holds"), [
    ({"equals": 1}, 1, True), ({"equals": 1}, True, False), ({"equals": True}, 1, False),
    ({"equals": None}, None, True),
    ({"one_of": ["a"]}, "a", True), ({"present": True}, None, False), ({"present": False}, None, True),
])  # fmt: skip
def test_a_condition_is_exact(condition: dict[str, Any], value: Any, holds: bool) -> None:
    of = tool(success_requires=[{"path": "v", **condition}])
    assert (read(answer({"id": "x", "v": value}), of).observed == "ok_valid") == holds


def test_the_identity_joins_all_its_fields() -> None:
    assert read(answer({**WELL, "line": 3}), tool(identity_fields=["id", "line"])).external_id == "x_1/3"


# --- what can be kept ---------------------------------------------------------------------------------------


def test_I6_what_cannot_be_stored_is_made_visible() -> None:
    body = (
        '{"id": "a\\u0000b\\ud800", "status": "done", "k\\u0000": ["\\udfff"], "e": "\\u00e9", "s": "\\ud83d\\ude00"}'
    )
    found = read(answer(body))
    assert found.external_id == "a\\u0000b\\ud800"
    assert found.result == {
        "id": "a\\u0000b\\ud800", "status": "done", "k\\u0000": ["\\udfff"], "e": "é", "s": "\U0001f600",
    }  # fmt: skip


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 400])
def test_I6_a_number_without_an_end_is_kept_as_text(number: str) -> None:
    found = read(answer(f'{{"id": "x", "status": "done", "n": {number}}}'))
    assert found.result["n"] == number[:200]


@pytest.mark.parametrize(("levels", "observed"), [(98, "ok_valid"), (101, "ok_invalid"), (900, "ok_invalid")])
def test_I6_an_answer_that_nests_too_deep_is_no_result(levels: int, observed: str) -> None:
    body = '{"id": "x", "status": "done", "d": ' + "[" * levels + "]" * levels + "}"
    assert read(answer(body)).observed == observed
    assert read(answer({**WELL, "text": "[" * levels})).observed == "ok_valid"


@pytest.mark.parametrize("field", ["a\x00b", "a\ud800b", "sk_live_4eC39HqLyjWDarjtT1zdp7dc", "x" * 5000, "\u202e"])
def test_I6_names_from_outside_are_fit_to_be_stored(field: str) -> None:
    refused = read(answer({"error": {"field": field}}, status=422)).field
    told = Observation(kind="exception", declared="needs_input").model_copy(update={"declared_field": field})
    declared = read(told).field
    known = read(answer({**WELL, "id": field})).external_id
    for kept in (refused, declared, known):
        assert kept
        assert kept.isprintable()
        assert len(kept) <= 200
        assert "4eC39" not in kept


@given(st.recursive(st.none() | st.floats() | st.integers() | st.text(alphabet=st.characters(exclude_categories=[])),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_I6_whatever_is_taken_as_a_result_can_be_stored(value: Any) -> None:
    found = read(answer({**WELL, "value": value}))
    if found.observed == "ok_valid":
        text = json.dumps(found.result, allow_nan=False, ensure_ascii=False)
        text.encode()
        assert "\x00" not in text
        assert "\\u0000" not in text.replace("\\\\u0000", "")


# --- delays -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30.0),
        (" 1.5 ", 1.5),
        ("0", 0.0),
        ("Sat, 14 Mar 2026 09:18:00 GMT", 1080.0),
        ("864000", MAX_RETRY_AFTER_SECONDS),
        ("-5", None),
        ("Sat, 14 Mar 2026 08:00:00 GMT", None),
        ("nan", None),
        ("inf", None),
        ("-inf", None),
        ("1e400", None),
        ("99999999999999999999", None),
        ("soon", None),
        ("", None),
        ("Sat, 99 Mar 2026 09:18:00 GMT", None),
        ("Sat, 14 Mar 2026 09:18:00", None),
        (None, None),
    ],
)
def test_F032_a_delay_is_taken_as_asked_or_not_at_all(text: str | None, seconds: float | None) -> None:
    assert retry_after(text, lambda: NOW) == seconds


@given(st.text(max_size=30) | st.floats().map(str) | st.integers().map(str) | st.datetimes().map(str))
def test_F032_no_delay_is_negative_or_over_the_cap(text: str) -> None:
    seconds = retry_after(text, lambda: NOW)
    assert seconds is None or 0 <= seconds <= MAX_RETRY_AFTER_SECONDS


def test_F031_the_header_is_found_in_any_case_and_the_typed_delay_comes_first() -> None:
    assert read(answer({}, status=429, headers={"RETRY-AFTER": "7"})).retry_after_seconds == 7
    assert read(answer({}, status=503, headers={"retry-after": "8"})).retry_after_seconds == 8
    typed = Observation(kind="exception", declared="rate_limited", retry_after="9")
    assert read(typed).retry_after_seconds == 9
