"""What a call may be is decided before it leaves: tools, amounts, windows, approvals, preconditions (F082, F083)."""

from typing import Any

import pytest

from tests.factories import (
    ACCOUNT,
    ARGUMENTS,
    RESULTS,
    Case,
    advance_clock,
    lose_the_reply,
    make_person,
    propose,
    reply,
    report,
    succeed,
    turn,
)
from tests.failures.conftest import Opener
from tests.recovery.stories import Looks, actions, effects, look, open_tasks, present, press, standing, tries

CREDIT = ARGUMENTS["apply_credit"]
FRESH: dict[str, Any] = {"preconditions": [{"tool": "load_invoice", "path": "state", "equals": "open"}]}


def approve(case: Case) -> None:
    press("approve", case, make_person("omar", case.tenant, "oncall"))


def read_invoice(case: Case, step: str, state: str = "open") -> None:
    permit = propose(case, "load_invoice", step=step)
    report(case, permit, reply(RESULTS["load_invoice"] | {"state": state}), tool="load_invoice")


# --- tools and amounts --------------------------------------------------------------------------------------


def test_F082_a_tool_that_the_run_was_not_given_is_denied(opened: Opener) -> None:
    case = opened(run={"scope": {"tools": ["load_invoice"]}})
    assert propose(case, "load_invoice").answer == "execute"
    permit = propose(case)
    assert (permit.answer, permit.error.code, permit.error.field) == ("deny", "policy_denied", "tool")
    assert tries(case) == []


def test_a_run_that_was_given_no_tool_at_all_may_call_none(opened: Opener) -> None:
    case = opened(run={"scope": {"tools": []}})
    assert propose(case, "load_invoice").error.code == "policy_denied"


@pytest.mark.parametrize(("amount", "answer"), [(12_000, "execute"), (12_001, "deny")])
def test_a_tools_own_limit_holds_whatever_the_run_may_move(opened: Opener, amount: int, answer: str) -> None:
    case = opened(max_value_minor=12_000, run={"scope": {}})
    permit = propose(case, arguments=CREDIT | {"amount_minor": amount})
    assert permit.answer == answer
    assert permit.error is None or permit.error.field == "amount_minor"


def test_F083_an_amount_that_is_left_out_is_not_below_the_tools_limit(opened: Opener) -> None:
    case = opened(max_value_minor=12_000, input_schema={"type": "object"}, run={"scope": {}})
    assert propose(case, arguments={"account": ACCOUNT}).error.code == "policy_denied"


# --- approvals ----------------------------------------------------------------------------------------------


def test_what_was_approved_is_sent_once_and_the_next_call_asks_again(opened: Opener) -> None:
    case = opened(requires_approval=True)
    assert propose(case).answer == "wait"
    assert case.run.tool_calls == 0
    approve(case)
    assert succeed(case).answer == "result"
    assert case.run.tool_calls == 1
    assert propose(case, step="once more").answer == "wait"
    assert open_tasks(case) == [("approval", "approval_required")]


def test_an_approval_does_not_cover_other_arguments(opened: Opener) -> None:
    case = opened(requires_approval=True)
    propose(case)
    approve(case)
    assert propose(case, arguments=CREDIT | {"amount_minor": 100}).answer == "wait"
    assert tries(case) == []


def test_an_approval_is_good_for_a_second_try_that_is_proven_not_to_have_happened(opened: Opener) -> None:
    case = opened(requires_approval=True)
    propose(case)
    approve(case)
    report(case, propose(case), reply({}, status=429))
    advance_clock(minutes=5)
    assert succeed(case).answer == "result"
    assert [one.number for one in tries(case)] == [1, 2]
    assert effects(case) == ["apply_credit"]


def test_an_approval_ends_with_the_run_or_when_the_workflow_says(opened: Opener) -> None:
    case = opened(requires_approval=True, deadline_seconds=600)
    propose(case)
    assert case.action().due_at == case.run.deadline_at


# --- rates --------------------------------------------------------------------------------------------------


def test_a_full_window_waits_for_the_next_one_and_counts_nothing(opened: Opener) -> None:
    case = opened(rate_limit={"calls": 1, "per_seconds": 60})
    assert succeed(case).answer == "result"
    full = propose(case, step="second")
    assert (full.answer, full.error.code) == ("wait", "call_rate_limited")
    assert 0 < full.wait_seconds <= 60
    assert (case.run.tool_calls, len(actions(case))) == (1, 1)
    advance_clock(seconds=full.wait_seconds)
    assert propose(case, step="second").answer == "execute"


def test_a_window_is_shared_by_all_runs_of_the_tenant(opened: Opener) -> None:
    limit = {"rate_limit": {"calls": 2, "per_seconds": 3600}}
    first, second = opened(**limit), opened(**limit)
    assert [propose(case).answer for case in (first, second)] == ["execute"] * 2
    assert propose(second, step="third").answer == "wait"


# --- preconditions ------------------------------------------------------------------------------------------


def test_a_call_that_was_never_held_back_reads_nothing_again(opened: Opener) -> None:
    case = opened(**FRESH)
    assert propose(case).answer == "execute"


def test_after_an_approval_what_the_call_rests_on_is_read_again(opened: Opener) -> None:
    case = opened(requires_approval=True, **FRESH)
    read_invoice(case, "before")
    turn(case)
    propose(case)
    approve(case)
    stale = propose(case)
    assert (stale.answer, stale.error.code) == ("deny", "precondition_failed")
    assert stale.error.suggested_actions == ["call load_invoice again", "then repeat this call"]
    assert case.action().state == "approved"
    turn(case)
    read_invoice(case, "again")
    assert propose(case).answer == "execute"


def test_a_precondition_that_no_longer_holds_ends_the_call(opened: Opener) -> None:
    case = opened(requires_approval=True, **FRESH)
    propose(case)
    approve(case)
    read_invoice(case, "again", state="paid")
    assert propose(case).error.code == "precondition_failed"
    assert case.action().state == "rejected"
    assert standing(case)[0] == "executing"
    assert (tries(case), open_tasks(case)) == ([], [])
    read_invoice(case, "third", state="open")
    assert propose(case).error.code == "precondition_failed"


def test_a_refusal_that_has_to_be_waited_out_asks_for_a_fresh_read(opened: Opener) -> None:
    case = opened(**FRESH)
    read_invoice(case, "before")
    report(case, propose(case), reply({}, status=429))
    turn(case)
    advance_clock(minutes=5)
    assert propose(case).error.code == "precondition_failed"
    read_invoice(case, "again")
    assert propose(case).answer == "execute"


def test_after_an_earlier_write_was_in_doubt_a_call_asks_for_a_fresh_read(opened: Opener, looks: Looks) -> None:
    case = opened(**FRESH)
    read_invoice(case, "before")
    lose_the_reply(case)
    looks.say(present())
    advance_clock(seconds=6)
    look(case)
    other = CREDIT | {"amount_minor": 100}
    assert propose(case, arguments=other, step="second").error.code == "precondition_failed"
    assert case.run.tool_calls == 2
    advance_clock(seconds=1)
    read_invoice(case, "again")
    assert propose(case, arguments=other, step="second").answer == "execute"
