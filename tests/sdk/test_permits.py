"""What a permit may ask of the boundary: a new credential, other arguments, a time; and steps that repeat."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest
from steadyhand import Call, Refused, Run, Stopped, Suspended, Tool
from steadyhand.errors import CredentialsRejected

from tests.sdk.desk import ARGUMENTS, DUE, Credit, opened
from tests.sdk.fake_server import FakeServer, answered, error, permit, verdict

REJECTED = verdict("suspend", "needs_human", "credentials_invalid")


def test_a_new_credential_is_fetched_once_where_the_permit_asks_for_it(server: FakeServer) -> None:
    server.then("proposals", permit(), permit("a-2", refresh_credential=True))
    server.then("reports", verdict("again", "retryable", "credential_refresh", wait_seconds=0))
    done: list[str] = []

    def credit(_arguments: object, call: Call) -> Any:
        done.append(f"call {call.refresh_credential}")
        return httpx.Response(401) if len(done) == 1 else {"id": "cr_1"}

    tool = Tool("apply_credit", credit, refresh=lambda: done.append("refresh"))
    assert opened(server).call(tool, ARGUMENTS) == {"id": "cr_1"}
    assert done == ["call False", "refresh", "call True"]


def test_a_refresh_that_fails_is_reported_and_the_tool_is_not_called(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.then("proposals", permit(refresh_credential=True)).then("reports", REJECTED)
    tool = Credit()

    def refresh() -> None:
        raise RuntimeError("client_secret=hunter2")

    with pytest.raises(Suspended, match="credentials_invalid"):
        opened(server).call(Tool("apply_credit", tool, refresh=refresh), ARGUMENTS)
    assert tool.calls == []
    (told,) = server.came("reports")
    assert told["observation"]["declared"] == CredentialsRejected.declared
    assert "hunter2" not in str(told) + caplog.text, "what a token endpoint says may hold a secret"
    assert "RuntimeError" in caplog.text


def test_a_tool_without_a_refresh_is_told_and_called(server: FakeServer) -> None:
    server.then("proposals", permit(refresh_credential=True))
    tool = Credit()
    opened(server).call(tool, ARGUMENTS)
    assert [call.refresh_credential for call in tool.calls] == [True]


def test_F049_only_what_a_permit_leaves_of_a_batch_is_sent(server: FakeServer) -> None:
    server.then("proposals", permit(arguments={"items": ["b"]}))
    sent: list[Any] = []
    tool = Tool("notify", lambda arguments, _call: sent.append(arguments["items"]))
    opened(server).call(tool, {"items": ["a", "b"]})
    assert sent == [["b"]]


def test_F069_a_wall_clock_that_is_a_day_off_changes_nothing(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def story(shift: float) -> tuple[list[float], list[Any]]:
        one = FakeServer()
        one.then("proposals", answered("wait", wait_seconds=2.0, due_at=DUE))
        one.then("reports", verdict("again", "retryable", "connect_failed", wait_seconds=3.0, due_at=DUE))
        tool = Credit(httpx.ConnectError("refused"), {"id": "cr_1"})
        real = time.time
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: real() + shift)
            assert opened(one).call(tool, ARGUMENTS) == {"id": "cr_1"}
        return one.clock.slept, [call.deadline for call in tool.calls]

    assert story(0) == story(86_400) == story(-86_400)
    assert story(86_400)[0] == [2.0, 3.0]


def test_a_read_is_numbered_so_that_reading_again_is_a_new_call(server: FakeServer) -> None:
    server.reads = ["load_invoice"]
    run = opened(server)
    load = Tool("load_invoice", lambda arguments, _call: arguments)
    for _ in range(2):
        run.call(load, {"invoice": "in_1"})
    run.call(load, {"invoice": "in_1"}, step="check")
    run.call(Credit(), ARGUMENTS)
    assert [told["step"] for told in server.came("proposals")] == ["load_invoice", "load_invoice.2", "check", None]


def test_a_read_that_came_to_nothing_keeps_its_number(server: FakeServer) -> None:
    server.reads = ["load_invoice"]
    server.then("reports", verdict("suspend", "retryable", "provider_unavailable"))
    run = opened(server)
    load = Tool("load_invoice", lambda arguments, _call: arguments)
    with pytest.raises(Suspended):
        run.call(load, {"invoice": "in_1"})
    run.call(load, {"invoice": "in_1"})
    assert [told["step"] for told in server.came("proposals")] == ["load_invoice", "load_invoice"]


def test_F104_a_turn_that_says_nothing_leaves_its_reservation_to_the_record(server: FakeServer) -> None:
    with opened(server).model_turn(max_output_tokens=100):
        pass
    begin, end = server.came("turns")
    assert (begin["phase"], begin["usage"]["output_tokens"]) == ("begin", 100)
    assert (end["phase"], end["usage"]["output_tokens"]) == ("end", None)


def test_F100_a_turn_without_room_is_not_begun(server: FakeServer) -> None:
    fired = error("token_budget_exhausted", "The token budget is used up.")
    server.then("turns", {"answer": "stop", "turn": 3, "error": fired})
    asked: list[str] = []
    with pytest.raises(Stopped, match="token budget"), opened(server).model_turn(max_output_tokens=100):
        asked.append("the model")
    assert asked == []


def test_F104_a_turn_that_breaks_is_ended_with_what_is_known(server: FakeServer) -> None:
    def broken(run: Run) -> None:
        with run.model_turn(max_output_tokens=100) as turn:
            turn.used(input_tokens=7)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken(opened(server))
    assert server.came("turns")[1]["usage"]["input_tokens"] == 7


def test_a_layer_is_named_by_the_boundary_or_by_the_call(server: FakeServer) -> None:
    run = opened(server, layer="planner")
    run.call(Credit(), ARGUMENTS)
    run.call(Credit(), ARGUMENTS, layer="wrapper")
    assert [told["layer"] for told in server.came("proposals")] == ["planner", "wrapper"]


def test_a_refusal_that_hides_nothing_names_its_fallback(server: FakeServer) -> None:
    named = error("provider_unavailable", fallback="load_cached_invoice")
    server.then("proposals", answered("deny", error=named))
    with pytest.raises(Refused) as refused:
        opened(server).call(Credit(), ARGUMENTS)
    assert '"fallback": "load_cached_invoice"' in refused.value.for_model()
