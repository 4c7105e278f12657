"""A report is delivered, or the agent does not go on."""

from __future__ import annotations

import httpx
import pytest
from steadyhand import Tool, Unrecorded

from tests.sdk.desk import ARGUMENTS, Credit, opened
from tests.sdk.fake_server import FakeServer, answered


def test_a_report_carries_the_attempt_its_fence_and_the_tool(server: FakeServer) -> None:
    opened(server).call(Credit(), ARGUMENTS)
    (report,) = server.came("reports")
    assert (report["attempt_id"], report["fence"], report["tool"]) == ("a-1", 7, "apply_credit")
    assert report["observation"]["body"] == '{"id": "cr_1"}'


def test_an_undelivered_report_stops_the_agent_and_is_handed_in_later(server: FakeServer) -> None:
    server.then("reports", httpx.ConnectError("down"))
    credit = Credit()
    run = opened(server)
    with pytest.raises(Unrecorded):
        run.call(credit, ARGUMENTS)
    server.then("proposals", answered("replay", result={"id": "cr_1"}))
    assert run.call(credit, ARGUMENTS) == {"id": "cr_1"}
    first, again = server.came("reports")
    assert first == again
    assert len(credit.calls) == 1, "a late report repeats no tool call"


def test_nothing_is_proposed_while_a_report_is_undelivered(server: FakeServer) -> None:
    server.then("reports", httpx.ConnectError("down"), httpx.ConnectError("down"), httpx.ConnectError("down"))
    run = opened(server)
    for _ in range(2):
        with pytest.raises(Unrecorded):
            run.call(Credit(), ARGUMENTS)
    with pytest.raises(Unrecorded):
        run.finish()
    assert len(server.came("proposals")) == 1
    assert server.came("finish") == []


def test_leaving_the_run_delivers_the_kept_report_but_does_not_finish(server: FakeServer) -> None:
    server.then("reports", httpx.ConnectError("down"))
    with pytest.raises(Unrecorded), opened(server) as run:
        run.call(Credit(), ARGUMENTS)
    assert [arrival.verb for arrival in server.arrivals] == ["open", "proposals", "reports", "reports"]


def test_a_report_that_never_arrives_is_named_in_the_log(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.then("reports", *[httpx.ConnectError("down")] * 2)
    with pytest.raises(Unrecorded), opened(server) as run:
        run.call(Credit(), ARGUMENTS)
    assert "attempt a-1 was not delivered" in caplog.text


def test_ctrl_c_in_a_tool_is_reported_and_still_ends_the_program(server: FakeServer) -> None:
    with pytest.raises(KeyboardInterrupt):
        opened(server).call(Credit(KeyboardInterrupt()), ARGUMENTS)
    assert server.came("reports")[0]["observation"]["exc_type"] == "builtins.KeyboardInterrupt"
    server.then("reports", httpx.ConnectError("down"))
    with pytest.raises(KeyboardInterrupt):
        opened(server).call(Credit(KeyboardInterrupt()), ARGUMENTS)


def test_a_heartbeat_extends_the_lease_of_its_attempt(server: FakeServer) -> None:
    opened(server).call(Tool("apply_credit", lambda _arguments, call: call.heartbeat()), ARGUMENTS)
    assert server.came("heartbeats") == [{"attempt_id": "a-1", "fence": 7}]
