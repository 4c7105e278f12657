"""A turn is reserved before it begins, counted by what it used, and never taken for nothing (I8, F100, F104)."""

from typing import Any

import pytest
from steadyhand.contract import Turn, TurnAnswer, Usage

from recovery import intake
from runs import wall
from runs.models import Event
from tests.factories import Agent, Case, advance_clock, finish, open_run, propose, reply, report, succeed
from tests.failures.conftest import Opener
from tests.recovery.stories import kinds, open_tasks, standing

USAGES = [
    ("max_input_tokens", "input_tokens", "token_budget_exhausted"),
    ("max_output_tokens", "output_tokens", "token_budget_exhausted"),
    ("max_estimated_cost_minor_units", "cost_minor", "cost_budget_exhausted"),
]
MEASURED = {"input_tokens": 1, "output_tokens": 1}


def begin(case: Case, **most: Any) -> TurnAnswer:
    return intake.turn(case.agent.who, case.run_id, Turn(phase="begin", usage=Usage(**most)), request_id="test")


def end(case: Case, **used: Any) -> TurnAnswer:
    return intake.turn(case.agent.who, case.run_id, Turn(usage=Usage(**used)), request_id="test")


def fired(case: Case) -> list[str]:
    """What the run's stop says about every ceiling that was reached."""
    with wall.within(case.tenant.pk):
        data: dict[str, Any] = Event.objects.get(run_id=case.run_id, kind="escalated").data
        return list(data["fired"])


def numbers(case: Case, kind: str) -> tuple[int, int]:
    """(used, reserved)"""
    run = case.run
    return getattr(run, kind), getattr(run, f"reserved_{kind}")


# --- each ceiling alone, exact, off by one on both sides ---------------------------------------------------------


@pytest.mark.parametrize(("budget", "kind", "reason"), USAGES)
def test_F100_a_turn_that_may_use_exactly_what_is_left_begins(
    opened: Opener, budget: str, kind: str, reason: str
) -> None:
    case = opened(budgets={budget: 100})
    end(case, **MEASURED | {kind: 40})
    assert begin(case, **{kind: 60}).answer == "go"
    assert numbers(case, kind) == (40, 60)


@pytest.mark.parametrize(("budget", "kind", "reason"), USAGES)
def test_F100_a_turn_that_may_use_one_more_than_is_left_does_not_begin(
    opened: Opener, budget: str, kind: str, reason: str
) -> None:
    case = opened(budgets={budget: 100})
    end(case, **MEASURED | {kind: 40})
    said = begin(case, **{kind: 61})
    assert (said.answer, said.error and said.error.code) == ("stop", reason)
    assert standing(case) == ("escalated", "needs_human", reason)
    assert open_tasks(case) == [("decide_next", reason)]
    assert fired(case) == [reason]
    assert (numbers(case, kind), case.run.turns) == ((40, 0), 1)


def test_F100_the_last_turn_begins_and_the_one_after_it_does_not(opened: Opener) -> None:
    case = opened(budgets={"max_turns": 2})
    for _ in range(2):
        assert begin(case).answer == "go"
        end(case, **MEASURED)
    assert begin(case).answer == "stop"
    assert standing(case) == ("escalated", "needs_human", "turn_budget_exhausted")
    assert case.run.turns == 2


@pytest.mark.parametrize(("seconds", "answer"), [(59, "go"), (60, "stop"), (61, "stop")])
def test_F100_no_turn_begins_once_the_time_is_up(opened: Opener, seconds: int, answer: str) -> None:
    advance_clock(seconds=0)  # from here on the clock stands until it is moved
    case = opened(budgets={"max_elapsed_seconds": 60})
    advance_clock(seconds=seconds)
    assert begin(case).answer == answer
    assert case.run.reason_code == (None if answer == "go" else "time_budget_exhausted")


@pytest.mark.parametrize(("calls", "answer"), [(1, "execute"), (2, "stop")])
def test_F100_no_call_is_permitted_beyond_the_ceiling(opened: Opener, calls: int, answer: str) -> None:
    case = opened(budgets={"max_tool_calls": 2})
    for number in range(calls):
        permit = propose(case, "load_invoice", step=f"load-{number}")
        report(case, permit, reply({"invoice_id": f"INV-{number}"}), tool="load_invoice")
    assert propose(case, "draft_reply").answer == answer
    assert case.run.tool_calls == 2


@pytest.mark.parametrize(("failures", "answer"), [(2, "execute"), (3, "wait")])
def test_F100_no_step_is_tried_beyond_its_ceiling(opened: Opener, failures: int, answer: str) -> None:
    case = opened(budgets={"max_attempts_per_step": 3})
    for _ in range(failures):
        report(case, propose(case, "load_invoice"), reply({}, status=429))
        advance_clock(minutes=5)
    assert propose(case, "load_invoice").answer == answer
    assert case.action("load_invoice").attempts == 3


# --- two at once ------------------------------------------------------------------------------------------------


def test_F101_all_ceilings_that_fire_at_once_are_recorded_in_their_order(opened: Opener) -> None:
    ceilings = {
        "max_turns": 1,
        "max_estimated_cost_minor_units": 10,
        "max_output_tokens": 10,
        "max_elapsed_seconds": 60,
    }
    case = opened(budgets=ceilings)
    begin(case, output_tokens=9, cost_minor=9)
    end(case, input_tokens=1, output_tokens=9, cost_minor=9)
    advance_clock(seconds=60)
    assert begin(case, output_tokens=2, cost_minor=2).answer == "stop"
    assert fired(case) == [
        "turn_budget_exhausted",
        "time_budget_exhausted",
        "cost_budget_exhausted",
        "token_budget_exhausted",
    ]
    assert standing(case) == ("escalated", "needs_human", "turn_budget_exhausted")
    assert kinds(case).count("escalated") == 1


def test_F101_a_run_that_has_stopped_keeps_the_reason_that_it_stopped_for(opened: Opener) -> None:
    case = opened(budgets={"max_estimated_cost_minor_units": 10, "max_input_tokens": 100})
    assert begin(case, input_tokens=101).answer == "stop"
    assert end(case, input_tokens=1, output_tokens=1, cost_minor=10).answer == "stop"
    assert begin(case).answer == "stop"
    assert standing(case) == ("escalated", "needs_human", "token_budget_exhausted")
    assert kinds(case).count("escalated") == 1


# --- reservations -----------------------------------------------------------------------------------------------


def test_F102_what_an_open_turn_has_reserved_is_not_there_for_another(opened: Opener) -> None:
    case = opened(budgets={"max_input_tokens": 100})
    assert begin(case, input_tokens=60).answer == "go"
    assert begin(case, input_tokens=60).answer == "stop"
    assert standing(case)[2] == "token_budget_exhausted"


def test_a_turn_that_used_less_gives_the_rest_back(opened: Opener) -> None:
    case = opened(budgets={"max_input_tokens": 100})
    begin(case, input_tokens=90, output_tokens=5)
    assert end(case, input_tokens=20, output_tokens=3).answer == "go"
    assert numbers(case, "input_tokens") == (20, 0)
    assert (case.run.turns, case.run.usage_estimated) == (1, False)
    assert begin(case, input_tokens=80).answer == "go"


def test_a_call_within_the_turn_is_made_though_the_turn_has_reserved_the_rest(opened: Opener) -> None:
    case = opened(budgets={"max_input_tokens": 100})
    begin(case, input_tokens=100)
    assert propose(case, "load_invoice").answer == "execute"


def test_F104_a_crashed_turn_used_what_it_had_reserved(opened: Opener) -> None:
    case = opened(budgets={"max_input_tokens": 100})
    begin(case, input_tokens=60, output_tokens=5)
    assert begin(case, input_tokens=40, output_tokens=5).answer == "go"
    assert numbers(case, "input_tokens") == (60, 40)
    assert (case.run.turns, case.run.usage_estimated) == (2, True)


def test_F104_a_turn_that_nobody_ended_counts_when_the_run_ends(opened: Opener) -> None:
    case = opened(budgets={"max_input_tokens": 100})
    for tool in ("apply_credit", "draft_reply"):
        succeed(case, tool)
    begin(case, input_tokens=60)
    assert finish(case).outcome == "ok"
    assert numbers(case, "input_tokens") == (60, 0)
    assert case.run.usage_estimated


# --- usage that nobody told -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("budget", "kind", "reason"), USAGES)
def test_F104_a_number_that_is_missing_under_a_ceiling_stops_the_run(
    opened: Opener, budget: str, kind: str, reason: str
) -> None:
    case = opened(budgets={budget: 100})
    told = {name: 1 for _, name, _ in USAGES if name != kind}
    said = end(case, **told)
    assert (said.answer, said.error and said.error.code) == ("stop", "usage_unmeasured")
    assert standing(case) == ("escalated", "needs_human", "usage_unmeasured")
    assert open_tasks(case) == [("decide_next", "usage_unmeasured")]
    assert case.run.usage_estimated


def test_F104_a_missing_number_is_what_was_reserved_for_it(opened: Opener) -> None:
    case = opened(budgets={"max_input_tokens": 100, "unmeasured": "stop"})
    begin(case, input_tokens=60, output_tokens=5)
    assert end(case).answer == "go"
    assert numbers(case, "input_tokens") == (60, 0)
    assert case.run.usage_estimated


def test_F104_a_missing_number_is_what_the_manifest_takes_a_turn_to_use(opened: Opener) -> None:
    case = opened(budgets={"max_input_tokens": 100, "turn_input_tokens": 50})
    assert end(case, output_tokens=1).answer == "go"
    assert (case.run.input_tokens, case.run.usage_estimated) == (50, True)
    assert end(case, output_tokens=1).answer == "stop"
    assert standing(case)[2] == "token_budget_exhausted"


def test_F104_an_owner_may_ask_that_every_turn_is_measured(opened: Opener) -> None:
    case = opened(budgets={"unmeasured": "stop", "turn_input_tokens": 50})
    assert end(case, input_tokens=5, output_tokens=5).answer == "go"
    assert end(case, output_tokens=5).answer == "stop"
    assert standing(case)[2] == "usage_unmeasured"


def test_F104_without_a_ceiling_a_missing_number_is_marked_and_stops_nothing(opened: Opener) -> None:
    case = opened()
    assert end(case).answer == "go"
    assert case.run.usage_estimated


def test_F104_a_crashed_turn_that_reserved_nothing_leaves_its_usage_unmeasured(opened: Opener) -> None:
    case = opened(budgets={"max_input_tokens": 100})
    begin(case)
    assert begin(case).answer == "stop"
    assert standing(case)[2] == "usage_unmeasured"
    assert case.run.turns == 1


def test_the_largest_number_that_can_be_told_is_counted(opened: Opener) -> None:
    case = opened(budgets={"max_input_tokens": 2**53 - 1})
    assert end(case, input_tokens=2**53 - 1, output_tokens=2**53 - 1).answer == "stop"
    assert case.run.input_tokens == 2**53 - 1


# --- sub-agents ---------------------------------------------------------------------------------------------------


def test_F100_a_turn_of_a_sub_agent_is_its_parents_too(opened: Opener, agent: Agent) -> None:
    parent = opened(budgets={"max_turns": 2, "max_input_tokens": 100})
    child = open_run(agent, parent_run_id=str(parent.run_id))
    assert begin(child, input_tokens=60, output_tokens=5).answer == "go"
    assert numbers(parent, "input_tokens") == (0, 60)
    end(child, input_tokens=30, output_tokens=5)
    assert (numbers(parent, "input_tokens"), parent.run.turns) == ((30, 0), 1)


def test_F100_the_parents_ceiling_stops_the_sub_agent_and_both_are_seen(opened: Opener, agent: Agent) -> None:
    parent = opened(budgets={"max_turns": 2, "max_input_tokens": 100})
    child = open_run(agent, parent_run_id=str(parent.run_id))
    end(parent, input_tokens=50, output_tokens=1)
    assert begin(child, input_tokens=51).answer == "stop"
    for case in (parent, child):
        assert standing(case) == ("escalated", "needs_human", "token_budget_exhausted")
        assert open_tasks(case) == [("decide_next", "token_budget_exhausted")]
    assert (child.run.turns, parent.run.turns) == (0, 1)
