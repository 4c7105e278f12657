"""How a run ends, resumes and is stopped, and what the agent is told."""

from __future__ import annotations

import httpx
import pytest
from steadyhand import Boundary, Problem, Stopped, Suspended
from steadyhand.contract import Outcome

from tests.sdk.desk import ARGUMENTS, DUE, Credit, opened
from tests.sdk.fake_server import RUN, FakeServer, answered, error, problem, resumed, verdict


@pytest.mark.parametrize("verb", ["proposals", "reports"])
def test_a_stop_ends_the_agents_work(server: FakeServer, verb: str) -> None:
    stop = error("stopped_by_operator", "An operator stopped this run.")
    answer = (
        answered("stop", error=stop)
        if verb == "proposals"
        else verdict("stop", "needs_human", "stopped_by_operator", error=stop)
    )
    server.then(verb, answer)
    run = opened(server)
    with pytest.raises(Stopped, match="An operator stopped"), run:
        run.call(Credit(), ARGUMENTS)
    assert server.came("finish") == []


def test_a_problem_names_every_fault(server: FakeServer) -> None:
    faults = [{"field": "tools.0.proof", "remedy": "needs a look-up"}, {"field": "budgets", "remedy": "send numbers"}]
    server.then("workflows", problem(422, "Manifest refused", errors=faults))
    with pytest.raises(Problem, match=r"tools\.0\.proof: needs a look-up; budgets: send numbers") as caught:
        server.boundary().register("billing", {"tools": []})
    assert (caught.value.status, caught.value.errors) == (422, faults)


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
    assert server.came("finish") == [{"claim": "All done.\\u0000", "ended_by": "agent"}]


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
