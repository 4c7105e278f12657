"""No Django here: this environment holds the SDK and one framework."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from agents import Agent, RunConfig, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from steadyhand import Run
from steadyhand.adapters.openai_agents import AgentEnd, run_agent_sync

from tests.sdk.fake_server import FakeServer


@pytest.fixture(autouse=True)
def _no_tracing() -> None:
    set_tracing_disabled(True)


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def run(server: FakeServer) -> Iterator[Run]:
    with server.boundary() as boundary:
        run = boundary.run(workflow="billing", intent="Credit the customer.")
        yield run
        run.close()


class Stage:
    """An agent with a script: each entry is one turn of the model, a text or a list of tool calls."""

    def __init__(self, run: Run, tools: list[Any], *turns: Any) -> None:
        self.model = ScriptedModel([self._step(turn) for turn in turns])
        self.agent = Agent(name="billing", model=self.model, tools=tools)
        self.run = run

    def play(self, **options: Any) -> AgentEnd:
        return run_agent_sync(self.run, self.agent, "Please help.", run_config=RunConfig(), **options)

    def shown_to_the_model(self) -> list[str]:
        """The tool outputs that the model was given in its last turn."""
        last = self.model.calls[-1].input
        return [item["output"] for item in last if item.get("type") == "function_call_output"]

    def _step(self, turn: Any) -> Any:
        if isinstance(turn, str):
            return [assistant_message(turn)]
        calls = turn if isinstance(turn, list) else [turn]
        return [function_call(name, arguments, call_id=call_id) for call_id, name, arguments in calls]
