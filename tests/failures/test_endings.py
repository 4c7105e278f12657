"""What a run came to follows from its record, whatever the model says (F050, F091, F092, I14)."""

import pytest
from steadyhand.contract import Finish

from recovery import intake
from tests.factories import (
    advance_clock,
    finish,
    lose_the_reply,
    propose,
    rate_limit,
    refuse,
    reply,
    report,
    succeed,
    turn,
)
from tests.failures.conftest import Opener
from tests.recovery.stories import Looks, effects, look, open_tasks, present, standing, tries


def test_F091_a_model_that_says_done_does_not_make_it_so(opened: Opener) -> None:
    case = opened()
    refuse(case)
    said = finish(case, "All done, the credit has been applied!")
    assert (said.state, said.outcome) == ("failed", "fatal")
    assert "credit" not in (said.customer_message or "")
    assert case.run.claim == "All done, the credit has been applied!"


def test_F092_a_model_that_says_failed_does_not_make_it_so(opened: Opener) -> None:
    case = opened()
    for tool in ("load_invoice", "apply_credit", "draft_reply"):
        succeed(case, tool)
    said = finish(case, "I am sorry, everything failed.")
    assert (said.outcome, said.completed_effects) == ("ok", ["apply_credit", "draft_reply"])


def test_a_missing_required_effect_waits_for_a_person(opened: Opener) -> None:
    case = opened()
    succeed(case)
    said = finish(case)
    assert (said.outcome, said.reason_code, said.failed_step) == (
        "needs_human",
        "required_effect_missing",
        "draft_reply",
    )
    assert open_tasks(case) == [("decide_next", "required_effect_missing")]


def test_a_run_with_an_unknown_write_does_not_finish(opened: Opener) -> None:
    case = opened()
    succeed(case, "draft_reply")
    lose_the_reply(case)
    assert finish(case).reason_code == "external_outcome_unknown"
    assert standing(case)[0] == "verifying"


def test_a_run_with_a_call_in_flight_does_not_finish(opened: Opener) -> None:
    case = opened()
    propose(case)
    assert finish(case).outcome is None


def test_finishing_while_a_retry_is_due_ends_with_a_person_in_the_end(opened: Opener) -> None:
    case = opened(budgets={"max_elapsed_seconds": 600})
    rate_limit(case)
    assert finish(case).outcome == "retryable"
    advance_clock(seconds=31)
    look(case)
    advance_clock(seconds=600)
    look(case)
    assert standing(case) == ("escalated", "needs_human", "time_budget_exhausted")


def test_finishing_twice_ends_once(opened: Opener) -> None:
    case = opened()
    for tool in ("apply_credit", "draft_reply"):
        succeed(case, tool)
    assert finish(case, "first").outcome == finish(case, "second").outcome == "ok"
    assert case.run.claim == "first"


def test_F093_an_agent_that_its_framework_stopped_is_not_done(opened: Opener) -> None:
    case = opened()
    for tool in ("apply_credit", "draft_reply"):
        succeed(case, tool)
    told = Finish(claim="Everything is done.", ended_by="turn_limit")
    said = intake.finish(case.agent.who, case.run_id, told, request_id="test")
    assert (said.outcome, said.reason_code) == ("needs_human", "turn_budget_exhausted")
    assert case.run.claim == "Everything is done."


def test_a_finished_run_ends_by_itself_once_its_last_question_is_answered(opened: Opener, looks: Looks) -> None:
    case = opened()
    succeed(case, "draft_reply")
    lose_the_reply(case)
    finish(case)
    looks.say(present())
    advance_clock(minutes=20)
    look(case)
    assert standing(case) == ("completed", "ok", "completed_reconciled")
    assert open_tasks(case) == []


def test_a_finished_run_ends_by_itself_once_its_last_call_has_come_back(opened: Opener) -> None:
    case = opened()
    succeed(case)
    permit = propose(case, "draft_reply")
    assert finish(case).outcome is None
    report(case, permit, reply({"draft_id": "dr_1"}))
    assert standing(case) == ("completed", "ok", "completed")


def test_a_finished_run_that_lacks_an_effect_in_the_end_waits_for_a_person(opened: Opener, looks: Looks) -> None:
    case = opened()
    lose_the_reply(case)
    finish(case)
    looks.say(present())
    advance_clock(minutes=20)
    look(case)
    assert standing(case) == ("escalated", "needs_human", "required_effect_missing")
    assert case.run.finished_at is None


def test_a_call_after_the_finish_takes_the_finish_back(opened: Opener) -> None:
    case = opened()
    first, second = propose(case, "load_invoice", step="a"), propose(case, "load_invoice", step="b")
    finish(case)
    report(case, first, reply({}, status=503), tool="load_invoice")
    report(case, second, reply({"invoice_id": "INV-20931"}), tool="load_invoice")
    advance_clock(minutes=1)
    report(case, propose(case, "load_invoice", step="a"), reply({"invoice_id": "INV-20931"}), tool="load_invoice")
    assert standing(case)[0] == "executing"
    assert case.run.finished_at is None


def test_another_call_beside_one_in_flight_takes_the_finish_back(opened: Opener) -> None:
    case = opened()
    calls = {"a": propose(case, "load_invoice", step="a")}
    finish(case)
    calls["b"] = propose(case, "load_invoice", step="b")
    for permit in calls.values():
        report(case, permit, reply({"invoice_id": "INV-20931"}), tool="load_invoice")
    assert standing(case)[0] == "executing"


def test_a_stopped_run_is_not_finished_by_the_agent_that_was_stopped(opened: Opener) -> None:
    case = opened(budgets={"max_turns": 1})
    turn(case)
    turn(case)
    finish(case, "I was told to stop.")
    assert standing(case)[2] == "turn_budget_exhausted"
    assert case.run.finished_at is None


@pytest.mark.parametrize("fails", ["rate", "refused", "lost"])
def test_F050_step_three_of_seven_fails_and_the_run_resumes_there(opened: Opener, looks: Looks, fails: str) -> None:
    case = opened(in_flight_seconds=20, lag_seconds=5)
    steps = [("load_invoice", f"load-{number}") for number in (1, 2)] + [("apply_credit", "third")]
    for tool, step in steps[:2]:
        report(case, propose(case, tool, step=step), reply({"invoice_id": "INV-20931"}), tool=tool)
    permit = propose(case, step="third")
    trouble = {"rate": reply({}, status=429), "refused": reply({}, status=422), "lost": reply({}, status=504)}[fails]
    report(case, permit, trouble, tool="apply_credit")
    looks.say(present())
    advance_clock(seconds=26)
    look(case)
    for tool, step in steps[:2]:
        assert propose(case, tool, step=step).answer == "replay"
    assert propose(case, step="third").answer == {"rate": "execute", "refused": "deny", "lost": "replay"}[fails]
    assert len(tries(case)) == (2 if fails == "rate" else 1)
    assert effects(case) == (["third"] if fails == "lost" else [])
