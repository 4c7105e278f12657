"""One request within the deadline, and a trace that knows whether it left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

import httpx
import pytest
import requests
from requests.adapters import HTTPAdapter
from steadyhand import Call, OutcomeUnknown, Tool, async_http_call, http_call, observe
from steadyhand.blocking import Blocking, now
from steadyhand.calls import ToolFunction
from steadyhand.contract import Observation
from steadyhand.repeats import SentTwice
from urllib3.util import Retry

from tests.sdk.counting_server import counting, drop, plainly
from tests.sdk.test_proof import nobody_listening


def fresh(seconds: float = 5.0) -> Call:
    return Call("r", "apply_credit", "credit", seconds, time.monotonic() + seconds)


def post(call: Call, url: str) -> httpx.Response:
    with httpx.Client() as client:
        return http_call(call, client, "POST", url, json={"amount_minor": 1})


def seen(function: ToolFunction, call: Call | None = None) -> Observation:
    """What is observed of a tool's function."""
    ground = Blocking(time.sleep)
    return now(ground.perform(Tool("apply_credit", function), {}, call or fresh()))[0]


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

        observation = seen(twice)
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


Client = Callable[[Call, str], object]


def naively(call: Call, url: str) -> object:
    """A client with tries of its own around http_call."""
    with httpx.Client() as client:
        for last in (False, False, True):
            try:
                return http_call(call, client, "POST", url, json={"amount_minor": 1}).raise_for_status().json()
            except Exception:
                if last:
                    raise
    return None


def wrapped(call: Call, url: str) -> object:
    """The same, by a library that wraps the last error in its own."""
    try:
        return naively(call, url)
    except Exception as error:
        raise RuntimeError("gave up after 3 tries") from error


@pytest.mark.parametrize("client", [naively, wrapped])
def test_F106_a_client_inside_the_tool_sends_once_and_what_that_came_to_is_observed(client: Client) -> None:
    call = fresh()
    with counting(status=503) as counted:
        observation = seen(lambda _arguments, call: client(call, counted.url), call)
    assert counted.arrivals == 1
    assert call.extra_sends == 2
    assert (observation.kind, observation.status) == ("reply", 503)
    assert observation.message == "Repeats of a request inside the tool that were stopped: 2."


def test_F106_a_client_that_could_not_connect_is_not_let_loose_either() -> None:
    with nobody_listening() as url:
        observation = seen(lambda _arguments, call: naively(call, url))
    assert (observation.kind, observation.bytes_sent) == ("not_sent", None)


def test_F106_another_request_of_the_same_tool_may_leave() -> None:
    with counting(answer=plainly(200, body=b'{"id": "cr_1"}')) as counted:

        def two(_arguments: object, call: Call) -> object:
            with httpx.Client() as client:
                http_call(call, client, "GET", f"{counted.url}/invoices/in_1")
                return http_call(call, client, "POST", f"{counted.url}/credits")

        call = fresh()
        assert seen(two, call).status == 200
    assert (counted.paths, call.extra_sends) == (["/invoices/in_1", "/credits"], 0)


def test_a_loop_sends_in_the_same_way() -> None:
    async def main() -> tuple[httpx.Response, int]:
        call = fresh()
        async with httpx.AsyncClient() as client:
            response = await async_http_call(call, client, "POST", counted.url, json={"amount_minor": 1})
            with pytest.raises(SentTwice):
                await async_http_call(call, client, "POST", counted.url, json={"amount_minor": 1})
        assert (call.left, call.bytes_sent) == (True, None)
        return response, call.extra_sends

    with counting(answer=plainly(200, body=b'{"id": "cr_1"}')) as counted:
        response, stopped = asyncio.run(main())
    assert (response.json(), stopped, counted.arrivals) == ({"id": "cr_1"}, 1, 1)


def test_F024_on_a_loop_the_trace_knows_that_nothing_left() -> None:
    async def main(url: str) -> Call:
        call = fresh()
        async with httpx.AsyncClient() as client:
            with pytest.raises(httpx.ConnectError):
                await async_http_call(call, client, "POST", url)
        return call

    with nobody_listening() as url:
        call = asyncio.run(main(url))
    assert (call.left, call.bytes_sent) == (False, 0)


def test_F107_a_client_that_does_not_use_http_call_is_stopped_too() -> None:
    """requests with three tries of its own: its second request never leaves (repeats.py)."""
    tries = requests.Session()
    tries.mount("http://", HTTPAdapter(max_retries=Retry(total=2, status_forcelist=[503], allowed_methods=None)))
    with counting(status=503) as counted:
        observation = seen(lambda _arguments, _call: tries.post(counted.url, json={"amount_minor": 1}))
    assert counted.arrivals == 1
    assert observation.declared == "unknown"
    assert "stopped: 1" in (observation.message or "")
