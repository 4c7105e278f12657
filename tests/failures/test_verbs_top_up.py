"""One bounded top-up of the budget that stopped a run, by a person, with a reason (I8, F100)."""

from __future__ import annotations

import pytest

from recovery.work import decisions
from recovery.work.decisions import Overtaken, ReasonMissing, Refused, Unusable
from runs.models import Person
from tests.factories import Case, advance_clock, finish, propose, succeed, turn
from tests.failures.conftest import Opener
from tests.recovery.stories import open_tasks, order, panel, press, standing, tick


@pytest.fixture
def spent(opened: Opener) -> Case:
    """Four turns were allowed, and a fifth was wanted."""
    case = opened(budgets={"max_turns": 4})
    for _ in range(5):
        turn(case)
    assert standing(case) == ("escalated", "needs_human", "turn_budget_exhausted")
    return case


def test_F100_a_person_adds_half_at_most_and_the_run_goes_on(spent: Case, alice: Person) -> None:
    decision = press("top_up", spent, alice, reason="Nearly done.")
    assert (decision.rule, decision.state) == ("I8", "done")
    assert (spent.run.max_turns, spent.run.topped_up) == (6, "turn_budget_exhausted")
    assert (standing(spent)[0], open_tasks(spent)) == ("executing", [])
    turn(spent)
    turn(spent)
    assert standing(spent)[0] == "executing"
    turn(spent)
    assert standing(spent) == ("escalated", "needs_human", "turn_budget_exhausted")


def test_a_second_top_up_is_refused(spent: Case, alice: Person, omar: Person) -> None:
    press("top_up", spent, alice, amount=1)
    turn(spent)
    turn(spent)
    with pytest.raises(Refused, match="topped up once already"):
        press("top_up", spent, omar)
    assert spent.run.max_turns == 5


@pytest.mark.parametrize("amount", [0, -1, 3, 10**9])
def test_an_amount_out_of_bounds_changes_nothing(spent: Case, alice: Person, amount: int) -> None:
    with pytest.raises(Unusable, match="Add 1 to 2 turns") as wrong:
        press("top_up", spent, alice, amount=amount)
    assert wrong.value.field == "amount"
    assert (spent.run.max_turns, spent.run.topped_up, standing(spent)[0]) == (4, "", "escalated")


def test_a_top_up_wants_a_reason(spent: Case, alice: Person) -> None:
    with pytest.raises(ReasonMissing):
        press("top_up", spent, alice, reason=" ")


def test_F116_two_clicks_add_once(spent: Case, alice: Person) -> None:
    form = order(spent, alice)
    assert decisions.top_up(form).pk == decisions.top_up(form).pk
    assert spent.run.max_turns == 6


def test_F117_of_two_people_one_tops_up(spent: Case, alice: Person, omar: Person) -> None:
    forms = [order(spent, person) for person in (alice, omar)]
    decisions.top_up(forms[0])
    with pytest.raises(Overtaken, match="Alice chose “Top up the budget”"):
        decisions.top_up(forms[1])
    assert spent.run.max_turns == 6


def test_a_ceiling_of_one_is_raised_by_one(opened: Opener, alice: Person) -> None:
    case = opened(budgets={"max_tool_calls": 1})
    succeed(case, "load_invoice")
    propose(case)
    assert standing(case)[2] == "tool_call_budget_exhausted"
    press("top_up", case, alice)
    assert case.run.max_tool_calls == 2
    assert propose(case).answer == "execute"


def test_time_is_added_from_the_moment_of_the_top_up(opened: Opener, alice: Person) -> None:
    case = opened(budgets={"max_elapsed_seconds": 600})
    advance_clock(minutes=40)
    tick()
    assert standing(case)[2] == "time_budget_exhausted"
    press("top_up", case, alice)
    advance_clock(seconds=299)
    assert propose(case, "load_invoice").answer == "execute"
    advance_clock(seconds=2)
    assert propose(case).answer == "stop"


def test_tokens_are_added_where_they_were_used_up(opened: Opener, alice: Person) -> None:
    case = opened(budgets={"max_input_tokens": 10_000, "max_output_tokens": 100})
    turn(case, input_tokens=5, output_tokens=100)
    assert standing(case)[2] == "token_budget_exhausted"
    press("top_up", case, alice)
    assert (case.run.max_input_tokens, case.run.max_output_tokens) == (10_000, 150)


def test_a_run_that_no_budget_stopped_cannot_be_topped_up(opened: Opener, alice: Person) -> None:
    case = opened()
    finish(case)
    assert standing(case)[2] == "required_effect_missing"
    assert "top_up" not in {verb.name for verb in panel(case, alice).shown}
    with pytest.raises(Refused, match="no budget"):
        press("top_up", case, alice)
