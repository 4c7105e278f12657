"""One request within the deadline, and a trace that knows whether it left."""

from __future__ import annotations

import time
from http.server import BaseHTTPRequestHandler

import httpx
import pytest
from steadyhand import Call, OutcomeUnknown, Tool, http_call, observe
from steadyhand.calls import perform

from tests.sdk.counting_server import counting, drop, plainly
from tests.sdk.test_proof import nobody_listening


def fresh(seconds: float = 5.0) -> Call:
    return Call("r", "apply_credit", "credit", seconds, time.monotonic() + seconds)


def post(call: Call, url: str) -> httpx.Response:
    with httpx.Client() as client:
        return http_call(call, client, "POST", url, json={"amount_minor": 1})


def test_an_answer_comes_back_whole_and_decoded() -> None:
    with counting(answer=plainly(201, {"x-request-id": "r1"}, b'{"id": "cr_1"}')) as counted:
        call = fresh()
        response = post(call, counted.url)
    assert (response.status_code, response.json(), response.headers["x-request-id"]) == (201, {"id": "cr_1"}, "r1")
    assert (call.left, call.bytes_sent) == (True, None)


def test_F039_a_redirect_is_not_followed() -> None:
    with counting(answer=plainly(307, {"location": "/elsewhere"})) as counted:
        assert post(fresh(), counted.url).status_code == 307
    assert counted.arrivals == 1


def test_F024_the_trace_knows_that_nothing_left() -> None:
    call = fresh()
    with nobody_listening() as url, pytest.raises(httpx.ConnectError):
        post(call, url)
    assert (call.left, call.bytes_sent) == (False, 0)


def test_F024_the_trace_knows_that_something_left() -> None:
    call = fresh()
    with counting(answer=drop) as counted, pytest.raises(httpx.RemoteProtocolError):
        post(call, counted.url)
    assert (call.left, call.bytes_sent) == (True, None)


def test_a_second_request_that_cannot_connect_does_not_undo_the_first() -> None:
    """A tool that sends two requests: the first arrived, so the refused second proves nothing."""
    with nobody_listening() as closed, counting() as counted:

        def twice(_arguments: object, call: Call) -> object:
            post(call, counted.url)
            return post(call, closed)

        observation, _ = perform(Tool("apply_credit", twice), {}, fresh())
    assert (observation.kind, observation.bytes_sent) == ("connection_lost", None)


def test_a_client_without_a_trace_proves_nothing() -> None:
    def broken(_request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("reset")

    call = fresh()
    with httpx.Client(transport=httpx.MockTransport(broken)) as client, pytest.raises(httpx.ReadError):
        http_call(call, client, "POST", "http://pay.test/credits")
    assert call.bytes_sent is None


def test_F040_a_slow_answer_ends_at_the_deadline() -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "1000")
        handler.end_headers()
        for _ in range(1000):
            try:
                handler.wfile.write(b"x")
                handler.wfile.flush()
            except OSError:
                return
            time.sleep(0.02)

    began = time.monotonic()
    with counting(answer=drip) as counted, pytest.raises(httpx.ReadTimeout) as slow:
        post(fresh(0.2), counted.url)
    assert time.monotonic() - began < 5
    assert observe.from_exception(slow.value, left=True).kind == "timeout"


def test_F040_an_answer_without_end_is_unknown() -> None:
    with counting(answer=plainly(200, body=b"x" * 1_200_000)) as counted, pytest.raises(OutcomeUnknown):
        post(fresh(), counted.url)
