"""What a run came to follows from its record, whatever the model says (F050, F091, F092, I14)."""

import pytest

from tests.factories import advance_clock, finish, lose_the_reply, propose, rate_limit, refuse, reply, report, succeed
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
