"""Every call of the model passes the boundary, and its errors reach it unsoftened."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from agents import Agent, RunHooks, function_tool
from steadyhand import Run, Suspended
from steadyhand.adapters.openai_agents import guard, guarded_tools, run_agent

from tests.adapters.openai_agents.conftest import Stage
from tests.adapters.openai_agents.desk import CALL, Desk
from tests.sdk.fake_server import FakeServer, answered, error, permit, verdict


def test_the_model_sees_a_strict_schema_without_the_call(run: Run) -> None:
    credit, load = guarded_tools(run, Desk().functions())
    assert credit.params_json_schema["required"] == ["invoice", "amount_minor"]
    assert credit.params_json_schema["additionalProperties"] is False
    assert credit.params_json_schema["properties"]["invoice"]["description"] == "The invoice to credit."
    assert (credit.name, credit.description, load.name) == ("apply_credit", "Credit an invoice.", "load_invoice")


def test_a_call_passes_the_boundary_and_the_record_decides_the_end(server: FakeServer, run: Run) -> None:
    desk = Desk()
    stage = Stage(
        run, guarded_tools(run, desk.functions()), ("c0", "load_invoice", {"invoice": "in_1"}), CALL, "Done."
    )
    end = stage.play()
    assert (end.ok, end.output) == (True, "Done.")
    assert desk.credits == [("in_1", 2000, "sh-key-1")]
    assert [json.loads(text) for text in stage.shown_to_the_model()] == [{"invoice": "in_1"}, {"id": "cr_1"}]
    assert server.came("finish") == [{"claim": "Done.", "ended_by": "agent"}]
    verbs = [arrival.verb for arrival in server.arrivals]
    assert verbs == ["open", *["turns", "proposals", "reports"] * 2, "turns", "finish"]


@pytest.mark.parametrize("made_by", ["guarded_tools", "guard"])
def test_an_error_in_a_tool_reaches_the_boundary_before_it_becomes_text(
    server: FakeServer, run: Run, made_by: str
) -> None:
    server.then(
        "reports", verdict("error", "fatal", "business_rule_violation", error=error("business_rule_violation"))
    )

    def apply_credit(invoice: str, amount_minor: int) -> str:
        raise RuntimeError(f"secret detail about {invoice}")

    tools = [guard(run, function_tool(apply_credit))] if made_by == "guard" else guarded_tools(run, [apply_credit])
    stage = Stage(run, tools, CALL, "I could not do it.")
    stage.play()
    (report,) = server.came("reports")
    assert report["observation"]["exc_type"] == "builtins.RuntimeError"
    (shown,) = stage.shown_to_the_model()
    assert json.loads(shown)["error"]["code"] == "business_rule_violation"
    assert "secret" not in shown


def test_a_refusal_goes_back_to_the_model_which_may_do_better(server: FakeServer, run: Run) -> None:
    too_much = error("policy_denied", "Credits over 10.00 need approval.", field="amount_minor")
    server.then("proposals", answered("deny", error=too_much))
    desk = Desk()
    smaller = ("c2", "apply_credit", {"invoice": "in_1", "amount_minor": 900})
    stage = Stage(run, guarded_tools(run, desk.functions()), CALL, smaller, "Done.")
    stage.play()
    refusal, result = stage.shown_to_the_model()
    assert json.loads(refusal)["error"] == {
        "code": "policy_denied",
        "retryable": False,
        "field": "amount_minor",
        "message": "Credits over 10.00 need approval.",
        "suggested_actions": [],
    }
    assert json.loads(result) == {"id": "cr_1"}
    assert desk.credits == [("in_1", 900, "sh-key-1")]


def test_parallel_calls_of_one_turn_run_side_by_side(server: FakeServer, run: Run) -> None:
    both_here = threading.Barrier(2, timeout=10)

    def apply_credit(invoice: str, amount_minor: int) -> dict[str, str]:
        both_here.wait()
        return {"id": f"cr_{invoice}"}

    turn = [(f"c{i}", "apply_credit", {"invoice": f"in_{i}", "amount_minor": 1}) for i in (1, 2)]
    stage = Stage(run, guarded_tools(run, [apply_credit]), turn, "Done.")
    assert stage.play().ok
    assert [json.loads(text)["id"] for text in stage.shown_to_the_model()] == ["cr_in_1", "cr_in_2"]
    assert {report["attempt_id"] for report in server.came("reports")} == {"a-1", "a-2"}


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ('{"invoice": "in_1", "amount_mi', "truncated_arguments"),
        ('{"invoice": "in_1"', "truncated_arguments"),
        ("Sure, I will credit in_1.", "invalid_arguments"),
        ('["in_1", 2000]', "invalid_arguments"),
        ('{"invoice": "in_1", "invoice": "in_2", "amount_minor": 1}', "invalid_arguments"),
        ('{"invoice": "in_1", "amount_minor": NaN}', "invalid_arguments"),
        ('{"invoice": "in_\\u0000", "amount_minor": 1}', "invalid_arguments"),
        ('{"invoice": "in_1", "amount_minor": 12345678901234567890}', "invalid_arguments"),
    ],
)
def test_F084_arguments_that_are_no_json_object_are_no_attempt(
    server: FakeServer, run: Run, raw: str, code: str
) -> None:
    desk = Desk()
    stage = Stage(run, guarded_tools(run, desk.functions()), ("c1", "apply_credit", raw), "I gave up.")
    stage.play()
    assert json.loads(stage.shown_to_the_model()[0])["error"]["code"] == code
    assert desk.credits == []
    assert server.came("proposals") == []
    assert len(server.came("turns")) == 2


def test_F081_arguments_of_the_wrong_type_are_recorded_as_invalid(server: FakeServer, run: Run) -> None:
    refused = verdict("error", "fatal", "invalid_arguments", error=error("invalid_arguments", field="amount_minor"))
    server.then("reports", refused)
    desk = Desk()
    wrong = ("c1", "apply_credit", {"invoice": "in_1", "amount_minor": "a lot"})
    Stage(run, guarded_tools(run, desk.functions()), wrong, "I gave up.").play()
    observation = server.came("reports")[0]["observation"]
    assert (observation["declared"], observation["declared_field"]) == ("invalid_input", "amount_minor")
    assert desk.credits == []


def test_the_hosts_own_hooks_still_hear_everything(run: Run) -> None:
    heard: list[str] = []

    class Hooks(RunHooks):  # type: ignore[misc]
        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            heard.append("turn")

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            heard.append(tool.name)

    Stage(run, guarded_tools(run, Desk().functions()), CALL, "Done.").play(hooks=Hooks())
    assert heard == ["turn", "apply_credit", "turn"]


def test_an_async_tool_runs_on_the_agents_own_loop_within_its_time(server: FakeServer, run: Run) -> None:
    server.then("reports", verdict("suspend", "needs_human", "external_outcome_unknown"))
    server.then("proposals", permit(step="hang", timeout_seconds=0.2))
    loops: list[asyncio.AbstractEventLoop] = []

    async def hang(invoice: str) -> str:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(60)
        return invoice

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        stage = Stage(run, guarded_tools(run, [hang]), ("c1", "hang", {"invoice": "in_1"}), "Done.")
        await run_agent(run, stage.agent, "Please help.")

    with pytest.raises(Suspended):
        asyncio.run(main())
    assert loops[0] is loops[1]
    assert server.came("reports")[0]["observation"]["kind"] == "timeout"


def test_the_frameworks_tool_timeout_cannot_pass_for_an_answer(run: Run) -> None:
    @function_tool(timeout=0.05)
    async def load_invoice(invoice: str) -> str:
        await asyncio.sleep(0.3)
        return invoice

    stage = Stage(run, [guard(run, load_invoice)], ("c1", "load_invoice", {"invoice": "in_1"}), "Done.")
    stage.play()
    assert stage.shown_to_the_model() == ["in_1"]


def test_a_tool_that_hides_its_errors_is_not_accepted(run: Run) -> None:
    helper = Agent(name="helper").as_tool("ask_helper", "Ask the helper.")
    with pytest.raises(TypeError, match="turns its errors into text"):
        guard(run, helper)


def test_a_guarded_tool_may_go_by_another_name_and_step(server: FakeServer, run: Run) -> None:
    @function_tool
    def credit(invoice: str) -> dict[str, str]:
        return {"id": invoice}

    stage = Stage(
        run, [guard(run, credit, name="apply_credit", step="refund")], ("c", "credit", {"invoice": "i"}), "Ok"
    )
    stage.play()
    (proposal,) = server.came("proposals")
    assert (proposal["tool"], proposal["step"]) == ("apply_credit", "refund")
