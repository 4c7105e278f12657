"""The same promises on an event loop, and what only a loop can do: run side by side, and be cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from steadyhand import AsyncRun, Call, Refused, Suspended, Tool, Unavailable, Unrecorded

from tests.sdk.desk import ARGUMENTS, Credit
from tests.sdk.fake_server import RUN, FakeServer, answered, error, permit, resumed, verdict

Story = Callable[[AsyncRun], Awaitable[Any]]
LOST = verdict("suspend", "needs_human", "external_outcome_unknown")


def play(server: FakeServer, story: Story, **ways: Any) -> Any:
    """A story in a loop of its own, on a run that nobody closes."""

    async def main() -> Any:
        async with server.async_boundary(**ways) as boundary:
            return await story(await boundary.run(workflow="billing", intent="Credit the customer."))

    return asyncio.run(main())


async def credit(arguments: dict[str, Any], call: Call) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"id": "cr_1", "key": call.idempotency_key}


CREDIT = Tool("apply_credit", credit)


def test_an_async_tool_is_called_once_and_its_recorded_result_returned(server: FakeServer) -> None:
    async def main() -> Any:
        async with server.async_boundary() as boundary, boundary.run(workflow="billing", intent="Credit.") as run:
            return await run.call(CREDIT, ARGUMENTS, step="credit")

    assert asyncio.run(main()) == {"id": "cr_1", "key": "sh-key-1"}
    assert [arrival.verb for arrival in server.arrivals] == ["open", "proposals", "reports", "finish"]


def test_a_plain_tool_runs_in_a_thread_and_holds_up_no_loop(server: FakeServer) -> None:
    here = threading.current_thread()

    def plain(_arguments: object, _call: Call) -> dict[str, bool]:
        return {"elsewhere": threading.current_thread() is not here}

    assert play(server, lambda run: run.call(Tool("apply_credit", plain), ARGUMENTS)) == {"elsewhere": True}


def test_calls_of_one_turn_run_side_by_side(server: FakeServer) -> None:
    async def story(run: AsyncRun) -> list[Any]:
        met = asyncio.Barrier(3)

        async def load(arguments: dict[str, Any], _call: Call) -> dict[str, Any]:
            await asyncio.wait_for(met.wait(), 5)
            return {"invoice": arguments["invoice"]}

        calls = (run.call(Tool("load", load), {"invoice": name}, step=name) for name in ("in_1", "in_2", "in_3"))
        return await asyncio.gather(*calls)

    assert play(server, story) == [{"invoice": "in_1"}, {"invoice": "in_2"}, {"invoice": "in_3"}]
    assert len(server.came("reports")) == 3


def test_F031_a_call_waits_on_the_loop_and_proposes_the_same_again(server: FakeServer) -> None:
    server.then("reports", verdict("again", "retryable", "provider_rate_limited", wait_seconds=2.0))
    tool = Credit(httpx.Response(429), {"id": "cr_1"})
    assert play(server, lambda run: run.call(tool, ARGUMENTS)) == {"id": "cr_1"}
    assert server.clock.slept == [2.0]


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        (answered("deny", error=error("policy_denied")), Refused),
        (answered("wait", wait_seconds=600), Suspended),
        (httpx.ConnectError("down"), Unavailable),
    ],
    ids=["denied", "waiting", "unreachable"],
)
def test_nothing_is_called_without_a_permit(
    server: FakeServer, answer: dict[str, Any] | Exception, raised: type[Exception]
) -> None:
    server.then("proposals", answer)
    tool = Credit()
    with pytest.raises(raised):
        play(server, lambda run: run.call(tool, ARGUMENTS))
    assert tool.calls == []


def test_an_undelivered_report_stops_the_agent_and_is_handed_in_later(server: FakeServer) -> None:
    server.then("reports", httpx.ConnectError("down"))

    async def story(run: AsyncRun) -> None:
        with pytest.raises(Unrecorded):
            await run.call(CREDIT, ARGUMENTS)
        await run.close()

    play(server, story)
    first, again = server.came("reports")
    assert first == again


def test_F026_a_call_that_is_cancelled_in_the_air_is_reported_and_then_cancelled(server: FakeServer) -> None:
    server.then("reports", LOST)

    async def story(run: AsyncRun) -> None:
        begun = asyncio.Event()

        async def hang(_arguments: object, _call: Call) -> None:
            begun.set()
            await asyncio.sleep(60)

        task = asyncio.ensure_future(run.call(Tool("apply_credit", hang), ARGUMENTS))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    play(server, story)
    (report,) = server.came("reports")
    assert (report["observation"]["kind"], report["observation"]["exc_type"]) == (
        "exception",
        "asyncio.exceptions.CancelledError",
    )


def test_a_plain_tool_that_is_cancelled_is_reported_though_its_thread_goes_on(server: FakeServer) -> None:
    server.then("reports", LOST)
    begun, release = threading.Event(), threading.Event()

    def hang(_arguments: object, _call: Call) -> None:
        begun.set()
        release.wait(10)

    async def story(run: AsyncRun) -> None:
        task = asyncio.ensure_future(run.call(Tool("apply_credit", hang), ARGUMENTS))
        await asyncio.to_thread(begun.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(server.came("reports")) == 1
        release.set()

    play(server, story)


def slowly(server: FakeServer, verb: str) -> tuple[httpx.MockTransport, asyncio.Event, asyncio.Event]:
    """A server whose next answer to a verb waits; the events say that it was asked, and that it may answer."""
    asked, release = asyncio.Event(), asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith(verb) and not asked.is_set():
            asked.set()
            await release.wait()
        return server.answer(request)

    return httpx.MockTransport(answer), asked, release


@pytest.mark.parametrize(("verb", "kind"), [("proposals", "not_sent"), ("reports", "reply")])
def test_a_cancellation_cuts_off_no_request_to_the_record(server: FakeServer, verb: str, kind: str) -> None:
    """Cancelled while it is proposed: the permit is given back unused. Cancelled while it is reported: it arrives."""
    tool = Credit()

    async def main() -> None:
        transport, asked, release = slowly(server, verb)
        run = await server.async_boundary(transport=transport).run(workflow="billing", intent="Credit.")
        task = asyncio.ensure_future(run.call(tool, ARGUMENTS))
        await asked.wait()
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert [report["observation"]["kind"] for report in server.came("reports")] == [kind]
    assert len(tool.calls) == (1 if verb == "reports" else 0)


def test_a_cancellation_inside_the_tool_is_the_tools_own_failure(server: FakeServer) -> None:
    server.then("reports", LOST)

    async def broken(_arguments: object, _call: Call) -> None:
        raise asyncio.CancelledError

    with pytest.raises(Suspended):
        play(server, lambda run: run.call(Tool("apply_credit", broken), ARGUMENTS))


def test_a_timeout_around_a_call_still_reports_it(server: FakeServer) -> None:
    server.then("reports", LOST)

    async def hang(_arguments: object, _call: Call) -> None:
        await asyncio.sleep(60)

    async def story(run: AsyncRun) -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(run.call(Tool("apply_credit", hang), ARGUMENTS), 0.02)

    play(server, story)
    assert len(server.came("reports")) == 1


def test_a_boundary_serves_one_loop_after_another(server: FakeServer) -> None:
    boundary = server.async_boundary()

    async def once() -> Any:
        return (await boundary.run(workflow="billing", intent="Credit.")).run_id

    assert {asyncio.run(once()), asyncio.run(once())} == {RUN}


def test_a_resumed_run_goes_on_with_the_record(server: FakeServer) -> None:
    server.then("resume", resumed()).then("proposals", answered("replay", result={"id": "cr_1"}))

    async def main() -> Any:
        async with server.async_boundary() as boundary, boundary.resume(RUN) as run:
            return await run.call(CREDIT, ARGUMENTS)

    assert asyncio.run(main()) == {"id": "cr_1"}
    assert len(server.came("finish")) == 1


def test_F104_a_turn_reserves_its_most_and_says_what_it_used(server: FakeServer) -> None:
    async def story(run: AsyncRun) -> None:
        async with run.model_turn(max_input_tokens=900, max_output_tokens=100) as turn:
            turn.used(input_tokens=800, text="I will credit it.\x00")
            turn.used(output_tokens=50)

    play(server, story)
    begin, end = server.came("turns")
    assert (begin["phase"], begin["usage"]["input_tokens"], begin["usage"]["cost_minor"]) == ("begin", 900, None)
    assert (end["phase"], end["usage"]) == ("end", {"input_tokens": 800, "output_tokens": 50, "cost_minor": None})
    assert end["text"] == "I will credit it.\\u0000"


def test_a_permit_that_ages_behind_a_busy_pool_of_threads_is_not_used(server: FakeServer) -> None:
    """The tool's own thread asks for the time, so that a queue in front of it cannot make a call leave late."""

    def slow_permit(_body: object) -> dict[str, Any]:
        server.clock.now += 6
        return permit()

    server.then("proposals", slow_permit)
    server.then("reports", verdict("suspend", "retryable", "connect_failed"))
    tool = Credit()
    with pytest.raises(Suspended):
        play(server, lambda run: run.call(tool, ARGUMENTS))
    assert tool.calls == []
    assert server.came("reports")[0]["observation"]["kind"] == "not_sent"
