"""Whatever a tool answers or raises fits into a report, and nothing in it is made to look better than it was."""

from __future__ import annotations

import contextlib
import json
from decimal import Decimal
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from steadyhand import BusinessRule, InvalidInput, NeedsInput, NotSent, OutcomeUnknown, RateLimited, observe
from steadyhand.contract import MAX_REPLY_BYTES, MAX_REPORT_BYTES, Observation, Report

ANY_TEXT = st.text(st.characters() | st.sampled_from('\x00\x01\x7f\ud83d\ude00\\u0d8"\n'), max_size=300)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


def strings_in(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in strings_in(part)]
    if isinstance(value, list):
        return [text for item in value for text in strings_in(item)]
    return [value] if isinstance(value, str) else []


def fits(observation: Observation) -> None:
    """It travels as JSON, and PostgreSQL can hold it, parsed or not."""
    sent = Report(attempt_id="a", fence=1, observation=observation).model_dump_json().encode()
    assert len(sent) <= MAX_REPORT_BYTES
    received = Report.model_validate_json(sent).observation
    assert received == observation
    texts = [received.body or "", received.message or "", *received.headers.values()]
    if received.body and received.kind == "reply":
        with contextlib.suppress(ValueError):
            texts += strings_in(json.loads(received.body))
    for text in texts:
        text.encode()
        assert "\x00" not in text


@given(ANY_JSON)
def test_every_json_value_fits_and_is_unaltered_unless_it_had_to_be(value: Any) -> None:
    observation = observe.from_result(value)
    fits(observation)
    if not observation.altered:
        assert observation.body == json.dumps(value, ensure_ascii=False)


@given(st.binary(max_size=400), st.sampled_from([200, 201, 404, 429, 500]), st.text(st.characters(max_codepoint=255)))
def test_every_response_fits(content: bytes, status: int, reason: str) -> None:
    response = httpx.Response(status, content=content, headers={"x-request-id": "r1"})
    observation = observe.from_result(response)
    fits(observation)
    assert (observation.status, observation.body_bytes) == (status, len(content))


@given(ANY_TEXT)
def test_every_exception_fits(text: str) -> None:
    class Odd(Exception):
        __qualname__ = text or "Odd"

    fits(observe.from_exception(Odd(text)))
    fits(observe.from_exception(BusinessRule(text, code=text)))
    fits(observe.from_exception(InvalidInput(text, field=text)))
    fits(observe.from_exception(RateLimited(text, retry_after=text)))


def test_text_that_postgres_cannot_hold_is_written_out_and_marked() -> None:
    observation = observe.from_result({"note": "a\x00b\ud800c"})
    assert observation.altered
    assert json.loads(observation.body or "") == {"note": "a\\u0000b\\ud800c"}


def test_honest_escapes_stay_as_they_were() -> None:
    body = '{"smile": "\\ud83d\\ude00", "path": "C:\\\\u0000", "line": "a\\nb"}'
    observation = observe.from_result(httpx.Response(200, text=body))
    assert (observation.body, observation.altered) == (body, False)


def test_a_long_body_is_cut_and_keeps_its_length() -> None:
    for text in ("x" * 2_000_000, "ü" * 1_000_000, '"' * 1_100_000, "\x01" * 400_000):
        observation = observe.from_result(httpx.Response(200, text=text))
        fits(observation)
        assert observation.altered
        assert observation.body_bytes == len(text.encode())
        assert len((observation.body or "").encode()) <= MAX_REPLY_BYTES


def test_headers_that_carry_secrets_do_not_travel() -> None:
    headers = {"set-cookie": "s=1", "authorization": "x", "Retry-After": "3", "location": "https://a.test/b?token=1"}
    observation = observe.from_result(httpx.Response(429, headers=headers, text="{}"))
    kept = {name: value for name, value in observation.headers.items() if not name.startswith("content-")}
    assert kept == {"retry-after": "3", "location": "https://a.test/b"}


class Receipt(BaseModel):
    id: str
    amount: Decimal


def test_a_model_is_reported_as_its_json() -> None:
    assert observe.from_result(Receipt(id="cr_1", amount=Decimal("1.50"))).body == '{"id": "cr_1", "amount": "1.50"}'


def test_an_object_that_is_no_json_proves_nothing() -> None:
    looped: list[Any] = []
    looped.append(looped)
    for value in (object(), looped, {("a", 1): 2}):
        observation = observe.from_result(value)
        assert observation.altered
        fits(observation)


def test_a_status_error_is_the_reply_that_it_carries() -> None:
    request = httpx.Request("POST", "https://pay.test/credits")
    response = httpx.Response(409, json={"code": "already_done"}, request=request)
    with pytest.raises(httpx.HTTPStatusError) as caught:
        response.raise_for_status()
    observation = observe.from_exception(caught.value)
    assert (observation.kind, observation.status) == ("reply", 409)
    assert json.loads(observation.body or "") == {"code": "already_done"}


def test_a_reply_whose_body_was_never_read_is_not_taken_for_whole() -> None:
    unread = httpx.Response(200, stream=httpx.ByteStream(b""))
    unread.is_closed = True
    observation = observe.from_result(unread)
    assert (observation.kind, observation.body, observation.altered) == ("reply", None, True)


@pytest.mark.parametrize(
    ("raised", "kind", "declared"),
    [
        (NotSent("no route"), "not_sent", "not_sent"),
        (OutcomeUnknown(), "exception", "unknown"),
        (RateLimited(retry_after=30), "exception", "rate_limited"),
        (BusinessRule("The window is closed.", code="window"), "exception", "business_rule"),
        (InvalidInput("Not an id.", field="invoice"), "exception", "invalid_input"),
        (NeedsInput("Which invoice?", field="invoice"), "exception", "needs_input"),
    ],
)
def test_a_tool_may_declare_its_own_outcome(raised: Exception, kind: str, declared: str) -> None:
    observation = observe.from_exception(raised, latency_ms=4)
    assert (observation.kind, observation.declared, observation.latency_ms) == (kind, declared, 4)


def test_a_declared_wait_and_field_are_reported() -> None:
    assert observe.from_exception(RateLimited(retry_after=30)).retry_after == "30"
    assert observe.from_exception(NeedsInput("Which?", field="invoice")).declared_field == "invoice"
    assert observe.from_exception(BusinessRule("Closed.", code="window")).message == "window: Closed."


def test_F024_bytes_sent_is_told_only_for_a_lost_connection() -> None:
    assert observe.from_exception(httpx.ReadError("reset"), bytes_sent=0).bytes_sent == 0
    assert observe.from_exception(httpx.ReadTimeout("slow"), bytes_sent=0).bytes_sent is None
    assert observe.from_exception(RuntimeError("?"), bytes_sent=0).bytes_sent is None


def test_an_exception_that_cannot_be_printed_is_still_reported() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert observe.from_exception(Mute()).message == ""
