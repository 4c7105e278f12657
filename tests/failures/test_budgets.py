"""Ceilings stop a run before its next unit of work, and say which one it was (I8, F090, F100)."""

from typing import Any

import pytest
from steadyhand.contract import Turn, TurnAnswer, Usage

from recovery import intake
from tests.factories import Case, advance_clock, finish, propose, reply, report, succeed
from tests.failures.conftest import Opener
from tests.recovery.stories import kinds, open_tasks, standing, tick


def turn(case: Case, **used: Any) -> TurnAnswer:
    return intake.turn(case.agent.who, case.run_id, Turn(usage=Usage(**used)), request_id="test")


def test_F090_T4_the_turn_ceiling_stops_the_run_and_takes_no_more_calls(opened: Opener) -> None:
    case = opened(budgets={"max_turns": 2})
    assert [turn(case).answer for _ in range(4)] == ["go", "go", "stop", "stop"]
    assert standing(case) == ("escalated", "needs_human", "turn_budget_exhausted")
    assert propose(case, "load_invoice").answer == "wait"
    assert kinds(case).count("escalated") == 1
    assert open_tasks(case) == [("decide_next", "turn_budget_exhausted")]
    assert case.run.turns == 2


@pytest.mark.parametrize(
    ("budget", "used", "reason"),
    [
        ("max_input_tokens", "input_tokens", "token_budget_exhausted"),
        ("max_output_tokens", "output_tokens", "token_budget_exhausted"),
        ("max_estimated_cost_minor_units", "cost_minor", "cost_budget_exhausted"),
    ],
)
def test_F100_a_used_up_ceiling_is_named_exactly_at_its_limit(
    opened: Opener, budget: str, used: str, reason: str
) -> None:
    below = opened(budgets={budget: 100})
    assert turn(below, **{used: 99}).answer == "go"
    assert turn(below, **{used: 1}).answer == "stop"
    assert standing(below) == ("escalated", "needs_human", reason)


def test_F100_the_time_ceiling_stops_the_next_call(opened: Opener) -> None:
    case = opened(budgets={"max_elapsed_seconds": 60})
    succeed(case, "load_invoice")
    advance_clock(seconds=60)
    assert propose(case).answer == "stop"
    assert standing(case) == ("escalated", "needs_human", "time_budget_exhausted")


def test_F100_the_last_call_within_the_ceiling_is_made(opened: Opener) -> None:
    case = opened(budgets={"max_tool_calls": 3})
    for tool in ("load_invoice", "apply_credit", "draft_reply"):
        assert succeed(case, tool).answer == "result"
    assert finish(case).outcome == "ok"
    assert case.run.tool_calls == 3


def test_F101_of_two_ceilings_the_first_in_the_order_is_named(opened: Opener) -> None:
    case = opened(budgets={"max_estimated_cost_minor_units": 10, "max_input_tokens": 10})
    turn(case, cost_minor=10, input_tokens=10)
    assert case.run.reason_code == "cost_budget_exhausted"


def test_F084_a_turn_without_a_call_costs_a_turn_and_no_attempt(opened: Opener) -> None:
    case = opened()
    turn(case)
    assert (case.run.turns, case.run.tool_calls) == (1, 0)


def test_F104_unknown_usage_is_marked_and_never_zero(opened: Opener) -> None:
    case = opened()
    turn(case, input_tokens=5, output_tokens=5)
    assert not case.run.usage_estimated
    turn(case)
    assert case.run.usage_estimated


def test_a_call_in_flight_at_the_ceiling_still_counts_when_it_comes_back(opened: Opener) -> None:
    case = opened(budgets={"max_turns": 1})
    turn(case)
    permit = propose(case)
    turn(case)
    assert report(case, permit, reply({"credit_id": "cr_1"})).answer == "result"
    assert standing(case) == ("escalated", "needs_human", "turn_budget_exhausted")


@pytest.mark.parametrize(
    ("limit", "reason"), [("budgets", "time_budget_exhausted"), ("deadline", "deadline_exceeded")]
)
def test_I16_a_run_whose_agent_never_comes_back_ends_with_a_person(opened: Opener, limit: str, reason: str) -> None:
    promises: Any = {"budgets": {"max_elapsed_seconds": 60}} if limit == "budgets" else {"deadline_seconds": 60}
    case = opened(**promises)
    succeed(case, "load_invoice")
    tick()
    assert standing(case)[0] == "executing"
    advance_clock(seconds=61)
    tick()
    tick()
    assert standing(case) == ("escalated", "needs_human", reason)
    assert open_tasks(case) == [("decide_next", reason)]


def test_I16_a_run_that_waits_for_a_look_or_a_person_is_left_alone_at_its_deadline(opened: Opener) -> None:
    case = opened(deadline_seconds=60)
    report(case, propose(case), reply({}, status=500))
    advance_clock(seconds=61)
    tick()
    assert standing(case) == ("verifying", "needs_human", "external_outcome_unknown")
