"""Cancelling: what was not sent is not sent, what was sent is found out, what is proven stays visible (T7)."""

from typing import Any

import pytest
from steadyhand.contract import Cancel, OutcomeDocument

from recovery import intake
from tests.factories import (
    Agent,
    Case,
    advance_clock,
    finish,
    lose_the_reply,
    open_run,
    propose,
    rate_limit,
    reply,
    report,
    succeed,
    timed_out,
)
from tests.failures.conftest import Opener
from tests.recovery.stories import (
    ABSENT,
    TWICE,
    Looks,
    effects,
    evidence,
    kinds,
    look,
    open_tasks,
    present,
    standing,
    tries,
)

CREDIT_DONE = reply({"credit_id": "cr_1"})


def cancel(case: Case) -> OutcomeDocument:
    return intake.cancel(
        case.agent.who, case.run_id, Cancel(reason="The customer changed their mind."), request_id="t"
    )


def test_F134_a_run_with_nothing_under_way_is_cancelled_at_once(opened: Opener) -> None:
    case = opened()
    rate_limit(case)
    assert cancel(case).reason_code == "cancelled_by_user"
    assert propose(case, "load_invoice").answer in ("stop", "deny")
    assert standing(case) == ("cancelled", "cancelled", "cancelled_by_user")


def test_F134_a_call_that_waits_for_approval_is_never_sent(opened: Opener) -> None:
    case = opened(requires_approval=True)
    propose(case)
    cancel(case)
    assert standing(case) == ("cancelled", "cancelled", "cancelled_by_user")
    assert open_tasks(case) == []
    assert tries(case) == []


def test_F135_T7_a_cancel_in_flight_takes_no_new_calls_and_keeps_the_effect_visible(opened: Opener) -> None:
    case = opened()
    permit = propose(case)
    assert cancel(case).state == "cancelling"
    assert propose(case, "load_invoice").answer == "stop"
    assert report(case, permit, CREDIT_DONE).answer in ("stop", "result")
    assert standing(case) == ("cancelled", "cancelled", "cancelled_with_effects")
    assert effects(case) == ["apply_credit"]
    assert open_tasks(case) == [("effect_after_cancel", "cancelled_with_effects")]


def test_F135_a_cancel_beside_an_unknown_write_keeps_its_task(opened: Opener) -> None:
    case = opened()
    lose_the_reply(case)
    assert cancel(case).reason_code == "cancelled_effect_unknown"
    assert open_tasks(case) == [("reconcile_write", "external_outcome_unknown")]


def test_F135_a_lost_reply_after_the_cancel_ends_the_run_with_a_task(opened: Opener) -> None:
    case = opened()
    permit = propose(case)
    cancel(case)
    report(case, permit, timed_out())
    assert standing(case) == ("cancelled", "cancelled", "cancelled_effect_unknown")
    assert open_tasks(case) == [("reconcile_write", "external_outcome_unknown")]


@pytest.mark.parametrize(
    ("found", "reason", "tasks"),
    [
        (present(), "cancelled_with_effects", [("effect_after_cancel", "cancelled_with_effects")]),
        (ABSENT, "cancelled_by_user", []),
    ],
)
def test_F135_later_evidence_moves_the_reason_and_never_the_outcome(
    opened: Opener, looks: Looks, found: Any, reason: str, tasks: Any
) -> None:
    case = opened(in_flight_seconds=20, lag_seconds=5)
    lose_the_reply(case)
    cancel(case)
    looks.say(found)
    advance_clock(seconds=25)
    look(case)
    assert standing(case) == ("cancelled", "cancelled", reason)
    assert open_tasks(case) == tasks
    assert propose(case).answer in ("stop", "replay")
    assert len(tries(case)) == 1


def test_F135_a_late_reply_that_contradicts_a_cancelled_nothing_corrects_what_is_said(
    opened: Opener, looks: Looks
) -> None:
    case = opened(in_flight_seconds=20, lag_seconds=5)
    permit = propose(case)
    report(case, permit, timed_out())
    cancel(case)
    looks.say(ABSENT)
    advance_clock(seconds=25)
    look(case)
    assert "Nothing was changed" in case.run.customer_message
    report(case, permit, CREDIT_DONE)
    assert standing(case) == ("cancelled", "cancelled", "cancelled_effect_unknown")
    assert "Nothing was changed" not in case.run.customer_message
    assert open_tasks(case) == [("decide_next", "conflicting_evidence")]


def test_F135_a_contradiction_after_the_cancel_stays_with_a_person(opened: Opener, looks: Looks) -> None:
    case = opened()
    lose_the_reply(case)
    cancel(case)
    looks.say(TWICE)
    advance_clock(minutes=20)
    look(case)
    assert standing(case) == ("cancelled", "cancelled", "cancelled_effect_unknown")
    assert ("duplicate_effect", "duplicate_effect") in open_tasks(case)


def test_F135_the_lease_of_a_cancelled_call_ends_like_any_other(opened: Opener) -> None:
    case = opened()
    propose(case)
    cancel(case)
    advance_clock(minutes=2)
    look(case)
    assert standing(case) == ("cancelled", "cancelled", "cancelled_effect_unknown")


def test_F137_the_other_side_goes_on_after_the_cancel_and_only_what_is_found_there_decides(
    opened: Opener, looks: Looks
) -> None:
    case = opened(in_flight_seconds=60, lag_seconds=5)
    permit = propose(case)
    cancel(case)
    report(case, permit, timed_out())
    looks.say(ABSENT, present())
    advance_clock(seconds=10)
    look(case)
    assert standing(case) == ("cancelled", "cancelled", "cancelled_effect_unknown")
    assert "Nothing was changed" not in case.run.customer_message
    advance_clock(seconds=40)
    look(case)
    assert standing(case) == ("cancelled", "cancelled", "cancelled_with_effects")
    assert (effects(case), len(tries(case))) == (["apply_credit"], 1)
    assert open_tasks(case) == [("effect_after_cancel", "cancelled_with_effects")]


def test_a_cancel_while_the_look_is_under_way_loses_nothing(opened: Opener, looks: Looks) -> None:
    case = opened()
    lose_the_reply(case)
    advance_clock(seconds=6)
    looks.say(ABSENT)
    looks.meanwhile = lambda: cancel(case)
    look(case)
    assert evidence(case)[0] == "absent"
    assert standing(case) == ("cancelled", "cancelled", "cancelled_effect_unknown")


def test_F135_nobody_waits_for_a_read_in_flight_and_its_late_answer_moves_nothing(opened: Opener) -> None:
    case = opened()
    permits = {step: propose(case, "load_invoice", step=step) for step in ("a", "b")}
    assert cancel(case).reason_code == "cancelled_by_user"
    assert standing(case) == ("cancelled", "cancelled", "cancelled_by_user")
    assert propose(case, "load_invoice", step="c").answer == "stop"
    advance_clock(seconds=4)
    for permit in permits.values():
        assert report(case, permit, reply({"invoice_id": "INV-20931"}), tool="load_invoice").answer == "stop"
    assert standing(case) == ("cancelled", "cancelled", "cancelled_by_user")
    assert (open_tasks(case), kinds(case).count("cancelled")) == ([], 1)


def test_F135_a_write_in_flight_is_waited_for_though_a_read_is_not(opened: Opener) -> None:
    case = opened()
    write, read = propose(case), propose(case, "load_invoice")
    assert cancel(case).state == "cancelling"
    report(case, read, reply({"invoice_id": "INV-20931"}))
    assert standing(case)[0] == "cancelling"
    report(case, write, CREDIT_DONE)
    assert standing(case) == ("cancelled", "cancelled", "cancelled_with_effects")


def test_F136_a_second_cancel_while_a_write_is_in_flight_is_no_second_event(opened: Opener) -> None:
    case = opened()
    propose(case)
    cancel(case)
    assert cancel(case).state == "cancelling"
    assert kinds(case).count("cancelling") == 1


def test_F134_the_runs_that_work_for_a_cancelled_one_are_cancelled_with_it(opened: Opener, agent: Agent) -> None:
    parent = opened()
    child = open_run(agent, parent_run_id=str(parent.run_id))
    grandchild = open_run(agent, parent_run_id=str(child.run_id))
    permit = propose(grandchild)
    cancel(parent)
    assert standing(parent)[2] == standing(child)[2] == "cancelled_by_user"
    assert standing(grandchild)[0] == "cancelling"
    report(grandchild, permit, CREDIT_DONE)
    assert standing(grandchild) == ("cancelled", "cancelled", "cancelled_with_effects")


def test_F136_a_second_cancel_and_a_cancel_after_the_end_change_nothing(opened: Opener) -> None:
    case = opened()
    cancel(case)
    assert cancel(case).reason_code == "cancelled_by_user"
    assert kinds(case).count("cancelled") == 1


def test_F136_a_finished_run_is_not_cancelled(opened: Opener) -> None:
    case = opened()
    for tool in ("load_invoice", "apply_credit", "draft_reply"):
        succeed(case, tool)
    finish(case)
    assert cancel(case).outcome == "ok"
