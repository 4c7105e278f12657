"""The boundary's promises to the agent: intent first, one call per permit, and no further than is known."""

from __future__ import annotations

import httpx
import pytest
from steadyhand import Boundary, Call, Problem, Refused, Run, Stopped, Suspended, Tool, Unavailable, Unrecorded
from steadyhand.contract import Outcome

from tests.sdk.counting_server import counting
from tests.sdk.fake_server import RUN, FakeServer, answered, error, permit, problem, resumed, verdict

DUE = "2026-11-30T12:00:00Z"
ARGUMENTS = {"invoice": "in_1", "amount_minor": 2000}


class Credit:
    """A tool that counts how often it is called."""

    name = "apply_credit"

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.calls: list[Call] = []

    def __call__(self, arguments: dict[str, object], call: Call) -> object:
        self.calls.append(call)
        answer = self.answers.pop(0) if self.answers else {"id": "cr_1"}
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


def opened(server: FakeServer, **ways: object) -> Run:
    return server.boundary(**ways).run(workflow="billing", intent="Credit the customer.")


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


def test_a_report_carries_the_attempt_its_fence_and_the_tool(server: FakeServer) -> None:
    opened(server).call(Credit(), ARGUMENTS)
    (report,) = server.came("reports")
    assert (report["attempt_id"], report["fence"], report["tool"]) == ("a-1", 7, "apply_credit")
    assert report["observation"]["body"] == '{"id": "cr_1"}'


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
    assert len(server.came("proposals")) == 1, "the transport tries nothing twice (F106)"


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
    assert second == third, "the same action, named by the step that the server derived"


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


@pytest.mark.parametrize("verb", ["proposals", "reports"])
def test_a_stop_ends_the_agents_work(server: FakeServer, verb: str) -> None:
    stop = error("stopped_by_operator", "An operator stopped this run.")
    answer = answered("stop", error=stop) if verb == "proposals" else verdict(
        "stop", "needs_human", "stopped_by_operator", error=stop
    )
    server.then(verb, answer)
    run = opened(server)
    with pytest.raises(Stopped, match="An operator stopped"), run:
        run.call(Credit(), ARGUMENTS)
    assert server.came("finish") == []


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
    assert (caught.value.error.field, str(caught.value)) == ("arguments.amount", "arguments.amount: send minor units.")


def test_a_problem_names_every_fault(server: FakeServer) -> None:
    faults = [{"field": "tools.0.proof", "remedy": "needs a look-up"}, {"field": "budgets", "remedy": "send numbers"}]
    server.then("workflows", problem(422, "Manifest refused", errors=faults))
    with pytest.raises(Problem, match="tools.0.proof: needs a look-up; budgets: send numbers") as caught:
        server.boundary().register("billing", {"tools": []})
    assert (caught.value.status, caught.value.errors) == (422, faults)


def test_a_tool_cannot_change_what_is_proposed_again(server: FakeServer) -> None:
    server.then("reports", verdict("again", "retryable", "connect_failed", wait_seconds=0))

    def spoil(arguments: dict[str, object], _call: Call) -> object:
        arguments.clear()
        return {"id": "cr_1"}

    opened(server).call(Tool("apply_credit", spoil), ARGUMENTS)
    assert [proposal["arguments"] for proposal in server.came("proposals")] == [ARGUMENTS, ARGUMENTS]


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


def test_an_error_of_the_agent_leaves_the_run_unfinished(server: FakeServer) -> None:
    with pytest.raises(ZeroDivisionError), opened(server):
        raise ZeroDivisionError
    assert server.came("finish") == []


def test_a_run_that_was_halted_is_not_finished_by_swallowing_it(server: FakeServer) -> None:
    server.then("proposals", answered("wait", wait_seconds=600))
    with opened(server) as run, pytest.raises(Suspended):
        run.call(Credit(), ARGUMENTS)
    assert server.came("finish") == []
    assert isinstance(run.halted, Suspended)


def test_a_finished_run_is_finished_once(server: FakeServer) -> None:
    with opened(server) as run:
        assert run.finish(claim="All done.\x00").outcome is Outcome.OK
    assert server.came("finish") == [{"claim": "All done.\\u0000"}]


def test_F104_a_turn_leaves_unknown_usage_unknown(server: FakeServer) -> None:
    run = opened(server)
    run.turn({"input_tokens": 12})
    run.turn()
    unknown = {"input_tokens": None, "output_tokens": None, "cost_minor": None}
    assert [turn["usage"] for turn in server.came("turns")] == [{**unknown, "input_tokens": 12}, unknown]


def test_F100_a_fired_budget_stops_the_agent_by_name(server: FakeServer) -> None:
    fired = error("turn_budget_exhausted", "The turn budget is used up.")
    server.then("turns", {"answer": "stop", "turn": 5, "error": fired})
    with pytest.raises(Stopped) as caught:
        opened(server).turn()
    assert (caught.value.error.code, caught.value.outcome) == ("turn_budget_exhausted", Outcome.NEEDS_HUMAN)


def test_a_resumed_run_goes_on_with_the_record(server: FakeServer) -> None:
    done = {"step": "credit", "tool": "apply_credit", "state": "succeeded", "settled": True}
    server.then("resume", resumed(steps=[done]))
    server.then("proposals", answered("replay", result={"id": "cr_1"}))
    credit = Credit()
    with server.boundary().resume(RUN) as run:
        assert run.steps[0].settled
        assert run.call(credit, ARGUMENTS, step="credit") == {"id": "cr_1"}
    assert credit.calls == []
    assert len(server.came("finish")) == 1


def test_a_run_that_is_not_ready_cannot_be_resumed(server: FakeServer) -> None:
    server.then("resume", resumed(state="verifying", ready=False, due_at=DUE))
    with pytest.raises(Suspended):
        server.boundary().resume(RUN)
    server.then("resume", resumed(state="completed", ready=False, outcome="ok", reason_code="completed"))
    with pytest.raises(Stopped) as ended:
        server.boundary().resume(RUN)
    assert ended.value.outcome is Outcome.OK


def test_a_heartbeat_extends_the_lease_of_its_attempt(server: FakeServer) -> None:
    opened(server).call(Tool("apply_credit", lambda _arguments, call: call.heartbeat()), ARGUMENTS)
    assert server.came("heartbeats") == [{"attempt_id": "a-1", "fence": 7}]


def test_a_tool_needs_a_name(server: FakeServer) -> None:
    with pytest.raises(TypeError, match="Pass Tool"):
        opened(server).call(lambda _arguments, _call: None, ARGUMENTS)
    assert server.came("proposals") == []


def test_the_token_is_sent_as_bearer_and_shown_nowhere(server: FakeServer) -> None:
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        return server.answer(request)

    boundary = Boundary("http://console.test/", "sh_secret", transport=httpx.MockTransport(answer))
    boundary.events(after="e-1", limit=5)
    assert seen == ["Bearer sh_secret"]
    assert server.came("events") == [{"after": "e-1", "limit": "5"}]
    assert "sh_secret" not in repr(boundary) + repr(vars(boundary))
