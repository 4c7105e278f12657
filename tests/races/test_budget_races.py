"""Two turns reach for the last of a budget on connections of their own: it is reserved once (F102)."""

from __future__ import annotations

from typing import Any

import pytest
from steadyhand.contract import Turn, TurnAnswer, Usage

from recovery import intake
from tests.factories import Agent, Case, billing_manifest, open_run, register
from tests.races.together import answers, at_once
from tests.recovery.stories import kinds, open_tasks, standing

ROUNDS = range(5)


def begin(case: Case, **most: Any) -> TurnAnswer:
    return intake.turn(case.agent.who, case.run_id, Turn(phase="begin", usage=Usage(**most)), request_id="test")


def opened(agent: Agent, **budgets: Any) -> Case:
    register(agent, billing_manifest(budgets=budgets))
    return open_run(agent)


@pytest.mark.parametrize(
    ("budgets", "most", "reason"),
    [
        ({"max_turns": 1}, {}, "turn_budget_exhausted"),
        ({"max_input_tokens": 100}, {"input_tokens": 60}, "token_budget_exhausted"),
        ({"max_estimated_cost_minor_units": 100}, {"cost_minor": 60}, "cost_budget_exhausted"),
    ],
)
def test_F102_two_turns_at_once_do_not_share_what_is_left(
    agent: Agent, budgets: dict[str, int], most: dict[str, int], reason: str
) -> None:
    for _ in ROUNDS:
        case = opened(agent, **budgets)
        assert answers(at_once(*[lambda case=case: begin(case, **most)] * 2)) == ["go", "stop"]
        assert standing(case) == ("escalated", "needs_human", reason)
        assert kinds(case).count("escalated") == 1
        assert len(open_tasks(case)) == 1


def test_F102_two_sub_agents_at_once_do_not_share_their_parents_last_tokens(agent: Agent) -> None:
    for _ in ROUNDS:
        parent = opened(agent, max_input_tokens=100)
        children = [open_run(agent, parent_run_id=str(parent.run_id)) for _ in range(2)]
        begun = at_once(*[lambda child=child: begin(child, input_tokens=60) for child in children])
        assert answers(begun) == ["go", "stop"]
        assert parent.run.reserved_input_tokens == 60
        assert standing(parent) == ("escalated", "needs_human", "token_budget_exhausted")


def test_a_parent_and_its_sub_agent_at_once_wait_for_each_other_and_never_for_ever(agent: Agent) -> None:
    for _ in ROUNDS:
        parent = opened(agent, max_turns=10)
        child = open_run(agent, parent_run_id=str(parent.run_id))
        begun = at_once(*[lambda case=case: begin(case) for case in (parent, child, parent, child)])
        assert answers(begun) == ["go"] * 4
        assert (parent.run.turns, child.run.turns) == (4, 2)
