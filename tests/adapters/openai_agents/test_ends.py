"""The framework may call a failure an answer; the record never does."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import httpx
import pytest
from agents import Agent, MaxTurnsExceeded, ModelBehaviorError, Runner, function_tool
from agents.testing import ModelStep, assistant_message
from agents.usage import Usage
from steadyhand import Run, Stopped, Suspended, Unavailable
from steadyhand.adapters.openai_agents import guard, guarded_tools, run_agent
from steadyhand.contract import Outcome

from tests.adapters.openai_agents.conftest import Stage
from tests.adapters.openai_agents.desk import CALL, Desk
from tests.sdk.fake_server import FakeServer, answered, document, error, verdict


def test_F091_a_cheerful_closing_sentence_is_not_success(server: FakeServer, run: Run) -> None:
    server.then("finish", document("escalated", "needs_human", "required_effect_missing"))
    end = Stage(run, [], "All done, the credit is booked!").play()
    assert not end.ok
    assert end.outcome.outcome is Outcome.NEEDS_HUMAN


def test_T6_F026_a_lost_reply_suspends_the_whole_agent(server: FakeServer, run: Run) -> None:
    server.then("reports", verdict("suspend", "needs_human", "external_outcome_unknown"))
    stage = Stage(run, guarded_tools(run, Desk(httpx.ReadTimeout("lost")).functions()), CALL, "All good!")
    with pytest.raises(Suspended, match="external_outcome_unknown"):
        stage.play()
    assert stage.model.remaining_steps == 1, "the model was not asked again"
    assert server.came("finish") == []
    assert server.came("reports")[0]["observation"]["kind"] == "timeout"


def test_a_stop_in_the_middle_ends_the_agent(server: FakeServer, run: Run) -> None:
    server.then("proposals", answered("stop", error=error("stopped_by_operator", "Stopped by an operator.")))
    desk = Desk()
    with pytest.raises(Stopped, match="Stopped by an operator"):
        Stage(run, guarded_tools(run, desk.functions()), CALL, "All good!").play()
    assert desk.credits == []


def test_a_silent_server_ends_the_agent_and_sends_nothing(server: FakeServer, run: Run) -> None:
    server.then("proposals", httpx.ConnectError("down"))
    desk = Desk()
    with pytest.raises(Unavailable):
        Stage(run, guarded_tools(run, desk.functions()), CALL, "All good!").play()
    assert desk.credits == []


def test_a_call_in_the_air_is_reported_though_its_sibling_ended_the_run(server: FakeServer, run: Run) -> None:
    begun = threading.Event()

    def slow(invoice: str) -> dict[str, str]:
        begun.set()
        time.sleep(0.3)
        return {"id": invoice}

    def doomed(invoice: str) -> str:
        assert begun.wait(10)
        raise ConnectionResetError("reset")

    def judge(body: dict[str, Any]) -> dict[str, Any]:
        lost = body["observation"]["kind"] == "connection_lost"
        return (
            verdict("suspend", "needs_human", "external_outcome_unknown")
            if lost
            else verdict("result", "ok", "completed", result={"id": "in_1"})
        )

    server.then("reports", judge, judge)
    turn = [("c1", "slow", {"invoice": "in_1"}), ("c2", "doomed", {"invoice": "in_2"})]

    async def main() -> list[str]:
        stage = Stage(run, guarded_tools(run, [slow, doomed]), turn, "Done.")
        with pytest.raises(Suspended):
            await run_agent(run, stage.agent, "Please help.")
        return sorted(report["observation"]["kind"] for report in server.came("reports"))

    assert asyncio.run(main()) == ["connection_lost", "reply"]


def endlessly(run: Run, turns: int = 6) -> Stage:
    calls = [(f"c{i}", "load_invoice", {"invoice": f"in_{i}"}) for i in range(turns)]
    return Stage(run, guarded_tools(run, Desk().functions()), *calls)


def test_T4_F090_a_fired_turn_budget_ends_the_agent_before_its_tools_are_called(server: FakeServer, run: Run) -> None:
    fired = error("turn_budget_exhausted", "The turn budget is used up.")
    go = {"answer": "go", "turn": 1}
    server.then("turns", go, {**go, "turn": 2}, {"answer": "stop", "turn": 3, "error": fired})
    with pytest.raises(Stopped, match="turn budget"):
        endlessly(run).play()
    assert len(server.came("proposals")) == 2
    assert server.came("finish") == []


def test_F093_the_frameworks_own_ceiling_ends_the_run_as_a_budget(server: FakeServer, run: Run) -> None:
    with pytest.raises(Stopped) as stopped:
        endlessly(run).play(max_turns=3)
    assert (stopped.value.error.code, stopped.value.outcome) == ("turn_budget_exhausted", Outcome.NEEDS_HUMAN)
    assert server.came("finish") == [{"claim": None, "ended_by": "turn_limit"}]


def test_F093_a_handler_that_returns_an_ordinary_output_is_not_success(server: FakeServer, run: Run) -> None:
    handled: list[Exception] = []

    def soothe(data: Any) -> str:
        handled.append(data.error)
        return "Everything went fine."

    with pytest.raises(Stopped):
        endlessly(run).play(max_turns=3, error_handlers={"max_turns": soothe})
    assert isinstance(handled[0], MaxTurnsExceeded)
    assert server.came("finish") == [{"claim": None, "ended_by": "turn_limit"}], "the soothing words are no claim"


def test_F093_a_handled_bad_output_is_not_success_either(server: FakeServer, run: Run) -> None:
    stage = Stage(run, [], "no JSON at all")
    stage.agent = Agent(name="billing", model=stage.model, output_type=list[int])
    with pytest.raises(ModelBehaviorError):
        stage.play(error_handlers={"invalid_final_output": lambda _data: [1]})
    assert server.came("finish") == []


def test_usage_is_reported_per_turn_and_silence_is_not_zero(server: FakeServer, run: Run) -> None:
    stage = Stage(run, [])
    stage.model.enqueue(
        ModelStep(output=[assistant_message("Hi.")], usage=Usage(1, input_tokens=40, output_tokens=7))
    )
    stage.play()
    stage.model.enqueue([assistant_message("Hi.")])
    stage.play()
    known, silent = [turn["usage"] for turn in server.came("turns")]
    assert (known["input_tokens"], known["output_tokens"], known["cost_minor"]) == (40, 7, None)
    assert (silent["input_tokens"], silent["output_tokens"]) == (None, None)


def test_an_error_of_the_framework_itself_leaves_the_run_unfinished(server: FakeServer, run: Run) -> None:
    stage = Stage(run, guarded_tools(run, Desk().functions()), ("c1", "no_such_tool", {}), "Done.")
    with pytest.raises(ModelBehaviorError):
        stage.play()
    assert server.came("finish") == []


def test_a_run_that_was_halted_takes_no_further_agent_work(server: FakeServer, run: Run) -> None:
    server.then("proposals", answered("wait", wait_seconds=600))
    tools = guarded_tools(run, Desk().functions())
    with pytest.raises(Suspended):
        Stage(run, tools, CALL, "Done.").play()
    with pytest.raises(Suspended):
        Stage(run, tools, CALL, "Done.").play()
    assert len(server.came("proposals")) == 1


def test_a_tool_with_the_frameworks_own_approval_waits_and_is_not_finished(server: FakeServer, run: Run) -> None:
    @function_tool(needs_approval=True)
    def apply_credit(invoice: str, amount_minor: int) -> str:
        return invoice

    with pytest.raises(Suspended, match="approval_required"):
        Stage(run, [guard(run, apply_credit)], CALL, "Done.").play()
    assert server.came("proposals") == server.came("finish") == []


def test_the_unguarded_framework_would_have_called_it_success() -> None:
    """The reason for all this: the framework alone reports a lost write as a cheerful answer."""

    @function_tool
    def apply_credit(invoice: str, amount_minor: int) -> str:
        raise httpx.ReadTimeout("lost")

    stage = Stage(None, [apply_credit], CALL, "All good!")  # type: ignore[arg-type]
    assert Runner.run_sync(stage.agent, "Please help.").final_output == "All good!"
