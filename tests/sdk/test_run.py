"""The boundary's promises to the agent: intent first, one call per permit, and no further than is known."""

from __future__ import annotations

import httpx
import pytest
from steadyhand import Boundary, Call, Refused, Suspended, Tool, Unavailable
from steadyhand.contract import Outcome

from tests.sdk.counting_server import counting
from tests.sdk.desk import ARGUMENTS, DUE, Credit, opened
from tests.sdk.fake_server import RUN, FakeServer, answered, error, permit, problem, verdict


def test_a_permitted_call_runs_once_and_returns_the_recorded_result(server: FakeServer) -> None:
    credit = Credit({"id": "cr_9"})
    with opened(server) as run:
        assert run.call(credit, ARGUMENTS, step="credit") == {"id": "cr_9"}
    assert len(credit.calls) == 1
    assert (credit.calls[0].idempotency_key, credit.calls[0].timeout_seconds) == ("sh-key-1", 20.0)
    assert [arrival.verb for arrival in server.arrivals] == ["open", "proposals", "reports", "finish"]


def test_the_intent_is_recorded_before_the_tool_is_called(server: FakeServer) -> None:
    seen: list[int] = []
    opened(server).call(Tool("apply_credit", lambda _a, _c: seen.append(len(server.came("proposals")))), ARGUMENTS)
    assert seen == [1]


def test_a_replay_returns_the_recorded_result_without_a_call(server: FakeServer) -> None:
    server.then("proposals", answered("replay", result={"id": "cr_1"}))
    credit = Credit()
    assert opened(server).call(credit, ARGUMENTS) == {"id": "cr_1"}
    assert credit.calls == []


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.Response(500),
        httpx.Response(503, text="down"),
        httpx.Response(429),
        httpx.Response(302, headers={"location": "http://elsewhere.test"}),
        httpx.Response(200, text="<html>a proxy</html>"),
        httpx.Response(200, json={**permit(), "attempt_id": None}),
    ],
    ids=repr,
)
def test_a_write_is_not_sent_when_its_intent_cannot_be_recorded(
    server: FakeServer, failure: Exception | httpx.Response
) -> None:
    server.then("proposals", failure)
    credit = Credit()
    with pytest.raises(Unavailable):
        opened(server).call(credit, ARGUMENTS)
    assert credit.calls == []
    assert [arrival.verb for arrival in server.arrivals] == ["open", "proposals"], "nothing is tried twice (F106)"


def test_F107_the_transport_sends_each_request_once_over_a_real_socket() -> None:
    with counting(status=503) as counted, pytest.raises(Unavailable):
        Boundary(counted.url, "sh_a_b_c", timeout=2).run(workflow="billing", intent="Look.")
    assert counted.arrivals == 1


def test_a_read_goes_on_without_a_record_only_where_the_host_said_so(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.then("proposals", httpx.ConnectError("down"), httpx.ConnectError("down"))
    run = opened(server, fail_open_reads={"load_invoice"})
    load = Tool("load_invoice", lambda arguments, _call: {"invoice": arguments["invoice"]})
    assert run.call(load, {"invoice": "in_1"}) == {"invoice": "in_1"}
    assert "without a record" in caplog.text
    with pytest.raises(Unavailable):
        run.call(Credit(), ARGUMENTS)


def test_F031_a_call_waits_in_place_and_proposes_the_same_again(server: FakeServer) -> None:
    limited = verdict("again", "retryable", "provider_rate_limited", wait_seconds=2.0)
    server.then("reports", limited, limited)
    credit = Credit(httpx.Response(429), httpx.Response(429), {"id": "cr_1"})
    assert opened(server).call(credit, ARGUMENTS) == {"id": "cr_1"}
    assert len(credit.calls) == 3
    assert server.clock.slept == [2.0, 2.0]
    first, second, third = server.came("proposals")
    assert first == {**second, "step": None}
    assert second == third
    assert second["step"] == "apply_credit", "the same action: the step that the server derived goes back to it"


def test_a_wait_beyond_the_patience_suspends_the_run(server: FakeServer) -> None:
    server.then("proposals", answered("wait", wait_seconds=20), answered("wait", wait_seconds=20, due_at=DUE))
    run = opened(server, max_wait=30)
    with pytest.raises(Suspended) as suspended:
        run.call(Credit(), ARGUMENTS)
    assert server.clock.slept == [20]
    assert suspended.value.run_id == RUN
    assert suspended.value.due_at is not None


def test_F026_a_suspended_call_does_not_let_the_agent_go_on(server: FakeServer) -> None:
    server.then("reports", verdict("suspend", "needs_human", "external_outcome_unknown", due_at=DUE))
    run = opened(server)
    with pytest.raises(Suspended, match="external_outcome_unknown"), run:
        run.call(Credit(httpx.ReadTimeout("no answer")), ARGUMENTS)
    assert server.came("reports")[0]["observation"]["kind"] == "timeout"
    assert server.came("finish") == []


def test_a_refusal_is_a_structured_error_that_the_model_may_read(server: FakeServer) -> None:
    refused = error("policy_denied", "Credits over 50.00 need another tool.", field="amount_minor")
    server.then("proposals", answered("deny", error=refused))
    credit = Credit()
    with pytest.raises(Refused) as caught:
        opened(server).call(credit, ARGUMENTS)
    assert str(caught.value) == "Credits over 50.00 need another tool."
    assert caught.value.outcome is Outcome.FATAL
    assert '"field": "amount_minor"' in caught.value.for_model()
    assert credit.calls == []


def test_F081_a_tool_that_refuses_for_good_is_refused_and_not_called_again(server: FakeServer) -> None:
    server.then("reports", verdict("error", "fatal", "invalid_arguments", error=error("invalid_arguments")))
    credit = Credit(httpx.Response(422))
    with pytest.raises(Refused):
        opened(server).call(credit, ARGUMENTS)
    assert len(credit.calls) == 1


def test_a_permit_that_came_too_late_is_not_used(server: FakeServer) -> None:
    def slowly(_body: object) -> dict[str, object]:
        server.clock.now += 6
        return permit()

    server.then("proposals", slowly)
    server.then("reports", verdict("again", "retryable", "connect_failed", wait_seconds=1))
    credit = Credit()
    opened(server).call(credit, ARGUMENTS)
    assert server.came("reports")[0]["observation"]["kind"] == "not_sent"
    assert len(credit.calls) == 1, "only the second permit was used"


def test_arguments_that_cannot_be_recorded_are_refused_before_anything_leaves(server: FakeServer) -> None:
    run = opened(server)
    for bad in ({"id": 2**60}, {"note": "a\x00b"}, {"amount": float("nan")}, {"note": "\ud800"}):
        with pytest.raises(Refused) as caught:
            run.call(Credit(), bad)
        assert caught.value.error.code == "invalid_arguments"
    assert server.came("proposals") == []


def test_a_422_on_a_proposal_is_a_refusal_with_its_field(server: FakeServer) -> None:
    server.then("proposals", problem(422, errors=[{"field": "arguments.amount", "remedy": "send minor units"}]))
    with pytest.raises(Refused) as caught:
        opened(server).call(Credit(), ARGUMENTS)
    assert (caught.value.error.field, str(caught.value)) == (
        "arguments.amount",
        "arguments.amount: send minor units.",
    )


def test_a_tool_cannot_change_what_is_proposed_again(server: FakeServer) -> None:
    server.then("reports", verdict("again", "retryable", "connect_failed", wait_seconds=0))

    def spoil(arguments: dict[str, object], _call: Call) -> object:
        arguments["lines"].append("one more")  # type: ignore[attr-defined]
        return {"id": "cr_1"}

    lines = {"lines": ["one"]}
    opened(server).call(Tool("apply_credit", spoil), lines)
    assert (
        [proposal["arguments"] for proposal in server.came("proposals")] == [lines, lines] == [{"lines": ["one"]}] * 2
    )


def test_a_tool_needs_a_name(server: FakeServer) -> None:
    with pytest.raises(TypeError, match="Pass Tool"):
        opened(server).call(lambda _arguments, _call: None, ARGUMENTS)
    assert server.came("proposals") == []
