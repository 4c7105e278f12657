"""One call under many names is one call; other arguments are another call (F088, F094, I9)."""

import pytest

from tests.factories import (
    ARGUMENTS,
    RESULTS,
    advance_clock,
    propose,
    refuse,
    reply,
    report,
    succeed,
    timed_out,
    turn,
)
from tests.failures.conftest import Opener
from tests.recovery.stories import actions, effects, kinds, open_tasks, standing, tries

CREDIT = ARGUMENTS["apply_credit"]


def test_F094_a_write_refused_for_good_is_refused_under_every_step_and_not_sent_again(opened: Opener) -> None:
    case = opened()
    refuse(case)
    again = propose(case, step="credit once more")
    assert (again.answer, again.error.code, again.step) == ("deny", "business_rule_violation", "apply_credit")
    assert len(tries(case)) == 1
    assert len(actions(case)) == 1


def test_F094_a_refusal_that_is_asked_for_again_counts_as_a_call(opened: Opener) -> None:
    case = opened()
    refuse(case)
    propose(case, step="second")
    assert case.run.tool_calls == 2
    propose(case)  # the same step again is a replay, for instance after a crash
    assert case.run.tool_calls == 2
    assert kinds(case).count("refused_again") == 1


def test_F094_a_read_that_failed_is_the_same_read_under_another_step(opened: Opener) -> None:
    case = opened()
    for step in ("first", "second", "third"):
        permit = propose(case, "load_invoice", step=step)
        assert (permit.answer, permit.step) == ("execute", "first")
        report(case, permit, reply({}, status=503), tool="load_invoice")
        advance_clock(minutes=5)
    assert [one.number for one in tries(case, "load_invoice")] == [1, 2, 3]
    assert propose(case, "load_invoice", step="fourth").answer == "wait"
    assert standing(case) == ("escalated", "needs_human", "retry_exhausted")


def test_a_read_that_succeeded_may_be_made_once_more_under_another_step(opened: Opener) -> None:
    case = opened()
    succeed(case, "load_invoice")
    assert propose(case, "load_invoice", step="later").answer == "execute"
    assert propose(case, "load_invoice").answer == "replay"


def test_a_write_that_succeeded_is_a_new_call_under_another_step_only(opened: Opener) -> None:
    case = opened()
    succeed(case)
    assert propose(case).answer == "replay"
    assert propose(case, step="a second credit").answer == "execute"
    assert len(tries(case)) == 2


@pytest.mark.parametrize("step", ["apply_credit", "another"])
def test_F088_other_arguments_wait_until_the_first_call_is_settled_and_learn_why(opened: Opener, step: str) -> None:
    case = opened()
    report(case, propose(case), timed_out())
    changed = propose(case, arguments=CREDIT | {"amount_minor": 100}, step=step)
    assert (changed.answer, changed.error.code) == ("wait", "external_outcome_unknown")
    assert "apply_credit has to be settled first" in changed.error.message
    assert changed.action_id != case.action().action_id
    assert len(actions(case)) == 1


def test_F088_other_arguments_under_a_settled_step_are_a_new_call_that_is_checked_again(opened: Opener) -> None:
    case = opened()
    first = propose(case)
    report(case, first, reply(RESULTS["apply_credit"]))
    second = propose(case, arguments=CREDIT | {"amount_minor": 100})
    assert second.answer == "execute"
    assert second.action_id != first.action_id
    too_much = propose(case, arguments=CREDIT | {"amount_minor": 15_001})
    assert (too_much.answer, too_much.error.code) == ("deny", "policy_denied")


def test_F050_a_step_that_fails_in_the_middle_leaves_those_before_it_done_and_goes_on_there(opened: Opener) -> None:
    case = opened()
    succeed(case, "load_invoice")
    turn(case)
    report(case, propose(case), reply({}, status=429))
    turn(case)
    assert propose(case, "draft_reply").answer == "wait"
    advance_clock(minutes=5)
    assert propose(case, "load_invoice").answer == "replay"
    assert succeed(case).answer == "result"
    assert succeed(case, "draft_reply").answer == "result"
    assert [len(tries(case, tool)) for tool in ("load_invoice", "apply_credit", "draft_reply")] == [1, 2, 1]
    assert effects(case) == ["apply_credit", "draft_reply"]
    assert open_tasks(case) == []
