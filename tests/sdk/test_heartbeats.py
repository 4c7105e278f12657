"""A long call keeps its lease; one that lost it sends nothing more; a read that nobody waits for ends."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx
import pytest
from steadyhand import Call, Problem, Suspended, Tool, http_call
from steadyhand.contract import Leased

from tests.sdk.desk import ARGUMENTS, opened
from tests.sdk.fake_server import FakeServer, permit, problem, verdict

STOP = {"lease_until": "2026-11-30T12:00:00Z", "stop": True}
LOST = verdict("suspend", "needs_human", "external_outcome_unknown")


def paying(sent: list[str]) -> httpx.Client:
    """A provider that notes the path of each request."""

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.url.path)
        return httpx.Response(200, json={})

    return httpx.Client(transport=httpx.MockTransport(answer))


def test_a_heartbeat_tells_until_when_the_call_is_ours(server: FakeServer) -> None:
    told: list[Leased] = []
    opened(server).call(Tool("apply_credit", lambda _arguments, call: told.append(call.heartbeat())), ARGUMENTS)
    assert told[0].lease_until.isoformat() == "2026-11-30T12:00:00+00:00"
    assert server.came("heartbeats") == [{"attempt_id": "a-1", "fence": 7}]


def test_F060_a_call_that_lost_its_lease_sends_nothing_more(server: FakeServer) -> None:
    server.then("heartbeats", problem(409)).then("reports", LOST)
    sent: list[str] = []
    client = paying(sent)

    def credit(_arguments: object, call: Call) -> object:
        try:
            call.heartbeat()
        except Problem:
            return http_call(call, client, "POST", "http://pay.test/credits")

    with pytest.raises(Suspended):
        opened(server).call(Tool("apply_credit", credit), ARGUMENTS)
    assert sent == []
    assert server.came("reports")[0]["observation"]["declared"] == "not_sent"


def test_F059_a_call_whose_time_is_over_sends_nothing_more(server: FakeServer) -> None:
    server.then("reports", LOST)
    sent: list[str] = []
    client = paying(sent)

    def credit(_arguments: object, call: Call) -> object:
        server.clock.now += call.timeout_seconds
        return http_call(call, client, "POST", "http://pay.test/credits")

    with pytest.raises(Suspended):
        opened(server).call(Tool("apply_credit", credit), ARGUMENTS)
    assert sent == []
    assert server.came("reports")[0]["observation"]["declared"] == "not_sent"


def test_F059_what_left_before_stays_unknown_when_the_time_is_over(server: FakeServer) -> None:
    server.then("reports", LOST)
    client = paying([])

    def credit(_arguments: object, call: Call) -> object:
        http_call(call, client, "POST", "http://pay.test/reserve")
        server.clock.now += call.timeout_seconds
        return http_call(call, client, "POST", "http://pay.test/credits")

    with pytest.raises(Suspended):
        opened(server).call(Tool("apply_credit", credit), ARGUMENTS)
    assert server.came("reports")[0]["observation"]["declared"] == "unknown"


@pytest.mark.parametrize(("reads", "ended"), [(["load_invoice"], True), ([], False)], ids=["read", "write"])
def test_F134_a_cancelled_run_ends_a_read_at_once_and_lets_a_write_go_on(
    server: FakeServer, reads: list[str], ended: bool
) -> None:
    server.reads = reads
    server.then("heartbeats", STOP)
    went_on: list[bool] = []

    def load(_arguments: object, call: Call) -> str:
        call.heartbeat()
        went_on.append(True)
        return "in_1"

    opened(server).call(Tool("load_invoice", load), {"invoice": "in_1"})
    assert went_on == ([] if ended else [True])
    observation = server.came("reports")[0]["observation"]
    assert observation["exc_type"] == ("steadyhand.errors.Cancelled" if ended else None)


def test_a_long_call_beats_by_itself_until_it_ends(server: FakeServer) -> None:
    server.then("proposals", permit(timeout_seconds=0.03)).then("heartbeats", httpx.ConnectError("down"))
    beaten = beats_of(server, 3)
    opened(server).call(Tool("apply_credit", lambda _arguments, _call: beaten.wait(5), heartbeat=True), ARGUMENTS)
    assert beaten.is_set(), "a beat without an answer is made up for by the next"
    assert not [thread for thread in threading.enumerate() if "keep_beating" in repr(thread)]


def test_on_a_loop_a_plain_and_an_async_function_can_both_beat(server: FakeServer) -> None:
    async def slow(_arguments: object, call: Call) -> str:
        return str((await call.heartbeat()).stop)

    async def main() -> list[Any]:
        async with server.async_boundary() as boundary:
            run = await boundary.run(workflow="billing", intent="Credit.")
            plain = Tool("plain", lambda _arguments, call: str(call.heartbeat().stop))
            return await asyncio.gather(run.call(Tool("slow", slow), {}), run.call(plain, {}))

    assert asyncio.run(main()) == ["False", "False"]
    assert len(server.came("heartbeats")) == 2


def test_F134_on_a_loop_the_beat_itself_ends_a_read_that_nobody_waits_for(server: FakeServer) -> None:
    server.reads = ["load_invoice"]
    server.then("proposals", permit(timeout_seconds=0.03)).then("heartbeats", STOP)
    server.then("reports", verdict("suspend", "retryable", "provider_unavailable"))

    async def hang(_arguments: object, _call: Call) -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        async with server.async_boundary() as boundary:
            run = await boundary.run(workflow="billing", intent="Look.")
            await run.call(Tool("load_invoice", hang, heartbeat=True), {})

    with pytest.raises(Suspended):
        asyncio.run(main())
    assert len(server.came("reports")) == 1


def beats_of(server: FakeServer, number: int) -> threading.Event:
    """Set once so many heartbeats have come."""
    event = threading.Event()

    def heard(_body: object) -> dict[str, Any]:
        if len(server.came("heartbeats")) >= number:
            event.set()
        return {"lease_until": "2026-11-30T12:00:00Z"}

    server.then("heartbeats", *[heard] * number)
    return event
