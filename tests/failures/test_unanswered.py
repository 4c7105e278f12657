"""Questions that nobody answers, calls that somebody gives up, arguments that nobody can read."""

from __future__ import annotations

from typing import Any

import pytest
from steadyhand.contract import Observation, Proposal

from recovery import intake
from runs.models import Person
from tests.factories import advance_clock, finish, propose, reply, report
from tests.failures.conftest import Opener
from tests.recovery.stories import Looks, actions, open_tasks, press, standing, tick

ASKED = Observation(kind="exception", declared="needs_input", declared_field="account")


def test_a_requester_who_does_not_answer_is_no_reason_to_wait_for_ever(opened: Opener, looks: Looks) -> None:
    case = opened()
    report(case, propose(case), ASKED)
    assert standing(case) == ("escalated", "needs_input", "user_input_required")
    advance_clock(hours=2)
    tick()
    assert standing(case) == ("escalated", "needs_human", "input_deadline_passed")
    assert open_tasks(case) == [("decide_next", "input_deadline_passed")]
    assert actions(case)[-1].attempts == 1


def test_before_its_time_a_question_stays_the_requesters(opened: Opener, looks: Looks) -> None:
    case = opened()
    report(case, propose(case), ASKED)
    advance_clock(minutes=30)
    tick()
    assert standing(case) == ("escalated", "needs_input", "user_input_required")


def test_a_run_whose_call_was_given_up_did_not_go_well(opened: Opener, looks: Looks, omar: Person) -> None:
    case = opened(not_executed_statuses=[503])
    for _ in range(3):
        report(case, propose(case), reply({"error": "down"}, status=503))
        advance_clock(minutes=1)
    press("claim", case, omar)
    press("discard", case, omar, reason="The customer withdrew it.")
    finish(case)
    assert standing(case) == ("failed", "fatal", "not_applied")


@pytest.mark.parametrize("code", ["truncated_arguments", "invalid_arguments"])
def test_F084_arguments_that_cannot_be_read_are_recorded_and_never_sent(opened: Opener, code: Any) -> None:
    case = opened()
    told = Proposal(workflow_id=case.workflow_id, tool="apply_credit", arguments={}, unreadable=code)
    permit = intake.propose(case.agent.who, case.run_id, told, request_id="test")
    assert permit.answer == "deny"
    assert permit.error is not None
    assert permit.error.code == code
    finish(case)
    assert standing(case) == ("failed", "fatal", code)
    assert [action.attempts for action in actions(case)] == [0]
