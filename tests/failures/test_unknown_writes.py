"""Writes whose reply was lost: what may follow, and when (FAULTS A to C; T6, T8)."""

from typing import Any

import pytest

from recovery.connectors.base import failed
from recovery.work.decisions import Overtaken, Refused
from runs.models import Person
from tests.factories import (
    ARGUMENTS,
    RESULTS,
    Case,
    advance_clock,
    finish,
    lose_the_reply,
    propose,
    reply,
    report,
    succeed,
    timed_out,
    turn,
)
from tests.failures.conftest import Opener
from tests.recovery.stories import (
    ABSENT,
    SILENT,
    TWICE,
    Looks,
    effects,
    evidence,
    kinds,
    look,
    open_tasks,
    present,
    press,
    standing,
    tasks,
    tick,
    tries,
    work,
)

UNKNOWN = ("verifying", "needs_human", "external_outcome_unknown")
KEYED: Any = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"}


@pytest.fixture
def lost(opened: Opener) -> Case:
    """The credit left, no reply came; bounds 20 + 5 seconds."""
    case = opened(in_flight_seconds=20, lag_seconds=5)
    turn(case)
    lose_the_reply(case)
    return case


def test_F026_T6_the_next_step_is_blocked_until_a_look_proves_the_effect(lost: Case, looks: Looks) -> None:
    assert standing(lost) == UNKNOWN
    turn(lost)
    blocked = propose(lost, "draft_reply")
    assert (blocked.answer, blocked.error.code) == ("wait", "external_outcome_unknown")
    looks.say(present("cr_7"))
    advance_clock(seconds=6)
    look(lost)
    assert effects(lost) == ["apply_credit"]
    assert propose(lost).result["credit_id"] == "cr_7"
    assert propose(lost, "draft_reply").answer == "execute"
    assert [task.state for task in tasks(lost)] == ["resolved"]


def test_F026_the_next_step_is_blocked_in_the_same_turn_too(lost: Case) -> None:
    assert propose(lost, "draft_reply").answer == "wait"
    assert tries(lost, "draft_reply") == []


def test_F026_a_run_settled_by_a_look_ends_well_and_says_how(lost: Case, looks: Looks) -> None:
    looks.say(present())
    advance_clock(seconds=6)
    look(lost)
    succeed(lost, "draft_reply")
    assert finish(lost).reason_code == "completed_reconciled"


def test_F025_nothing_is_sent_again_before_the_bound(lost: Case, looks: Looks) -> None:
    looks.say(ABSENT)
    advance_clock(seconds=6)
    look(lost)
    assert evidence(lost) == ["absent"]
    assert propose(lost).answer == "wait"
    assert len(tries(lost)) == 1


def test_F027_a_late_commit_is_found_by_the_look_at_the_bound(lost: Case, looks: Looks) -> None:
    looks.say(ABSENT, present())
    advance_clock(seconds=6)
    look(lost)
    assert lost.action().due_at is not None
    advance_clock(seconds=19)
    look(lost)
    assert evidence(lost) == ["absent", "present_final"]
    assert effects(lost) == ["apply_credit"]
    assert len(tries(lost)) == 1


def test_F027_a_final_absence_frees_the_same_call(lost: Case, looks: Looks) -> None:
    looks.say(ABSENT)
    first = tries(lost)[0]
    advance_clock(seconds=25)
    look(lost)
    assert evidence(lost) == ["absent_final"]
    assert open_tasks(lost) == []
    again = propose(lost)
    assert (again.answer, again.attempt) == ("execute", 2)
    assert again.fence > first.fence
    assert again.action_id == lost.action().action_id
    assert report(lost, again, reply(RESULTS["apply_credit"])).answer == "result"
    assert effects(lost) == ["apply_credit"]


def test_F027_each_dispatch_clears_the_verdict(lost: Case, looks: Looks) -> None:
    looks.say(ABSENT)
    advance_clock(seconds=25)
    look(lost)
    assert report(lost, propose(lost), timed_out()).answer == "suspend"
    assert standing(lost) == UNKNOWN
    assert propose(lost).answer == "wait"
    advance_clock(seconds=11)
    look(lost)
    assert evidence(lost) == ["absent_final", "absent"]


def test_F041_without_bounds_no_absence_is_ever_final(opened: Opener, looks: Looks) -> None:
    case = opened(in_flight_seconds=None, lag_seconds=None, max_looks=3)
    lose_the_reply(case)
    looks.say(ABSENT)
    for _ in range(5):
        advance_clock(hours=1)
        look(case)
    assert evidence(case) == ["absent"] * 3
    assert standing(case) == ("escalated", "needs_human", "external_outcome_unknown")
    assert len(tries(case)) == 1


def test_F042_after_looks_that_got_no_answer_a_person_checks_again_once_there_is_one(
    opened: Opener, looks: Looks, alice: Person
) -> None:
    case = opened(max_looks=2)
    lose_the_reply(case)
    looks.say(failed("The look-up was answered 401."))
    for _ in range(4):
        advance_clock(minutes=7)
        look(case)
    assert len(looks.asked) == 2
    for _ in range(2):
        press("reconcile", case, alice)
        work(case.tenant.pk)
        advance_clock(minutes=7)
        look(case)
    assert len(looks.asked) == 4, "each check is one look, and none follows by itself"
    assert open_tasks(case) == [("reconcile_write", "external_outcome_unknown")]
    looks.say(present())
    press("reconcile", case, alice)
    work(case.tenant.pk)
    assert (effects(case), open_tasks(case)) == (["apply_credit"], [])


def test_F042_looks_that_were_answered_and_are_used_up_are_not_made_by_hand_either(
    opened: Opener, looks: Looks, alice: Person
) -> None:
    case = opened(in_flight_seconds=None, lag_seconds=None, max_looks=2)
    lose_the_reply(case)
    looks.say(ABSENT)
    for _ in range(4):
        advance_clock(hours=1)
        look(case)
    with pytest.raises(Refused, match="all look-ups that the contract allows have been used"):
        press("reconcile", case, alice)


def test_F042_a_look_that_fails_has_its_own_ceiling(opened: Opener, looks: Looks) -> None:
    case = opened(max_looks=2)
    lose_the_reply(case)
    looks.say(SILENT)
    for _ in range(4):
        advance_clock(hours=1)
        look(case)
    assert evidence(case) == ["probe_failed"] * 2
    assert standing(case) == ("escalated", "needs_human", "external_outcome_unknown")
    assert open_tasks(case) == [("reconcile_write", "external_outcome_unknown")]


def test_F029_two_effects_are_a_conflict_for_a_person(lost: Case, looks: Looks) -> None:
    looks.say(TWICE)
    advance_clock(seconds=6)
    look(lost)
    assert standing(lost) == ("escalated", "needs_human", "conflicting_evidence")
    assert ("duplicate_effect", "duplicate_effect") in open_tasks(lost)
    assert effects(lost) == []


def test_F007_F004_T8_a_lease_that_ends_is_unknown_and_a_look_comes_before_any_send(
    opened: Opener, looks: Looks
) -> None:
    case = opened(in_flight_seconds=20, lag_seconds=5)
    propose(case)
    advance_clock(seconds=46)
    tick()
    assert standing(case) == UNKNOWN
    ended = tries(case)[0]
    assert (ended.observed, ended.ended_at) == ("unknown", ended.lease_until)
    assert propose(case).answer == "wait"
    looks.say(ABSENT)
    advance_clock(seconds=25)
    look(case)
    again = propose(case)
    assert (again.answer, again.attempt) == ("execute", 2)
    assert kinds(case).index("look_started") < kinds(case).index("retry_planned")


def test_F007_the_bounds_run_from_the_lease_end_not_from_its_discovery(opened: Opener, looks: Looks) -> None:
    case = opened(in_flight_seconds=20, lag_seconds=5)
    propose(case)
    advance_clock(seconds=46 + 25)
    looks.say(ABSENT)
    look(case)
    look(case)
    assert evidence(case) == ["absent_final"]


def test_F004_the_agent_that_comes_back_first_finds_its_call_unknown(opened: Opener) -> None:
    case = opened()
    propose(case)
    advance_clock(seconds=46)
    assert propose(case).answer == "wait"
    assert standing(case) == UNKNOWN


def test_F058_a_zombie_reply_settles_the_question_as_evidence(opened: Opener) -> None:
    case = opened()
    permit = propose(case)
    advance_clock(seconds=46)
    tick()
    told = report(case, permit, reply(RESULTS["apply_credit"]))
    assert (told.answer, told.reason_code) == ("result", "completed_late_result")
    assert evidence(case) == ["present"]
    assert tries(case)[0].observed == "unknown"
    assert effects(case) == ["apply_credit"]
    assert open_tasks(case) == []


def test_F058_a_zombie_error_is_kept_and_settles_nothing(opened: Opener) -> None:
    case = opened()
    permit = propose(case)
    advance_clock(seconds=46)
    tick()
    told = report(case, permit, reply({}, status=422))
    assert told.answer == "suspend"
    assert evidence(case) == ["none"]
    assert standing(case) == UNKNOWN


def test_F058_a_reply_that_follows_its_own_timeout_settles_the_question_once(opened: Opener) -> None:
    case = opened()
    permit = propose(case)
    report(case, permit, timed_out())
    for _ in range(3):
        assert report(case, permit, reply(RESULTS["apply_credit"])).answer == "result"
    assert evidence(case) == ["present"]
    assert effects(case) == ["apply_credit"]


def test_F058_a_late_reply_is_no_stronger_than_a_timely_one(opened: Opener) -> None:
    case = opened(proof="look")
    permit = propose(case)
    advance_clock(seconds=46)
    tick()
    assert report(case, permit, reply(RESULTS["apply_credit"])).answer == "suspend"
    assert effects(case) == []


def test_F028_a_late_reply_after_a_final_absence_is_a_contradiction(lost: Case, looks: Looks) -> None:
    looks.say(ABSENT)
    first = tries(lost)[0]
    advance_clock(seconds=25)
    look(lost)
    again = propose(lost)
    late = again.model_copy(update={"attempt_id": str(first.pk), "fence": first.fence})
    report(lost, late, reply({"credit_id": "cr_1"}))
    assert ("decide_next", "conflicting_evidence") in open_tasks(lost)
    report(lost, again, reply({"credit_id": "cr_2"}))
    assert standing(lost) == ("escalated", "needs_human", "conflicting_evidence")


def test_F028_a_late_reply_after_the_second_try_succeeded_opens_a_task(lost: Case, looks: Looks) -> None:
    looks.say(ABSENT)
    first = tries(lost)[0]
    advance_clock(seconds=25)
    look(lost)
    again = propose(lost)
    report(lost, again, reply({"credit_id": "cr_2"}))
    late = again.model_copy(update={"attempt_id": str(first.pk), "fence": first.fence})
    report(lost, late, reply({"credit_id": "cr_1"}))
    assert open_tasks(lost) == [("decide_next", "conflicting_evidence")]
    succeed(lost, "draft_reply")
    assert finish(lost).reason_code == "conflicting_evidence"


def test_F103_a_deadline_that_passes_in_flight_is_neither_failure_nor_success(opened: Opener, looks: Looks) -> None:
    case = opened(in_flight_seconds=20, lag_seconds=5, deadline_seconds=60)
    propose(case)
    advance_clock(seconds=61)
    tick()
    assert standing(case) == UNKNOWN
    looks.say(ABSENT)
    advance_clock(seconds=25)
    look(case)
    assert standing(case) == ("escalated", "needs_human", "deadline_exceeded")
    assert len(tries(case)) == 1


def test_F103_an_effect_found_after_the_deadline_counts(opened: Opener, looks: Looks) -> None:
    case = opened(in_flight_seconds=20, lag_seconds=5, deadline_seconds=60)
    propose(case)
    advance_clock(seconds=90)
    looks.say(present())
    look(case)
    look(case)
    assert effects(case) == ["apply_credit"]


@pytest.mark.parametrize("status", [500, 502, 504, 408, 503])
def test_F033_F034_a_gateway_error_leaves_a_write_unknown(opened: Opener, status: int) -> None:
    case = opened()
    assert report(case, propose(case), reply({}, status=status)).answer == "suspend"
    assert standing(case) == UNKNOWN


def test_F047_a_key_known_with_other_arguments_is_for_a_person(opened: Opener) -> None:
    manifest_key = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"}
    case = opened(idempotency=manifest_key, conflict_codes={"key_reused": "key_conflict"})
    report(case, propose(case), reply({"error": {"code": "key_reused"}}, status=409))
    assert standing(case) == ("escalated", "needs_human", "idempotency_key_conflict")
    assert open_tasks(case) == [("decide_next", "idempotency_key_conflict")]
    advance_clock(minutes=5)
    assert propose(case).answer == "wait"
    assert len(tries(case)) == 1


def test_an_accepted_job_is_polled_and_never_sent_again(opened: Opener, looks: Looks) -> None:
    case = opened(async_statuses=[202])
    accepted = report(case, propose(case), reply({}, status=202))
    assert (accepted.answer, accepted.reason_code) == ("suspend", "async_pending")
    assert standing(case) == ("verifying", "retryable", "async_pending")
    assert open_tasks(case) == []
    looks.say(present())
    advance_clock(seconds=6)
    look(case)
    assert effects(case) == ["apply_credit"]


def test_proof_by_look_waits_for_the_look_without_a_task(opened: Opener, looks: Looks) -> None:
    case = opened(proof="look")
    told = succeed(case)
    assert (told.answer, told.reason_code) == ("suspend", "proof_pending")
    assert open_tasks(case) == []
    looks.say(present())
    advance_clock(seconds=6)
    look(case)
    assert effects(case) == ["apply_credit"]


def test_parallel_calls_of_one_turn_run_side_by_side(opened: Opener) -> None:
    case = opened()
    first, second = propose(case), propose(case, "draft_reply")
    assert {first.answer, second.answer} == {"execute"}
    report(case, first, reply(RESULTS["apply_credit"]))
    assert standing(case)[0] == "waiting_for_tool"
    report(case, second, reply(RESULTS["draft_reply"]))
    assert standing(case)[0] == "executing"


def test_a_lost_write_does_not_hide_the_success_of_its_neighbour(opened: Opener) -> None:
    case = opened()
    first, second = propose(case), propose(case, "draft_reply")
    report(case, first, timed_out())
    report(case, second, reply(RESULTS["draft_reply"]))
    assert standing(case) == UNKNOWN
    assert effects(case) == ["draft_reply"]


def test_a_held_call_that_settles_beside_one_in_flight_leaves_the_run_waiting(opened: Opener) -> None:
    case = opened(reconcile=False)
    lost_one, flying = propose(case), propose(case, "draft_reply")
    report(case, lost_one, timed_out())
    assert standing(case)[0] == "escalated"
    report(case, lost_one, reply(RESULTS["apply_credit"]))
    assert standing(case)[0] == "waiting_for_tool"
    report(case, flying, reply(RESULTS["draft_reply"]))
    assert standing(case)[0] == "executing"


def test_a_proposal_while_the_look_is_under_way_waits_for_it(opened: Opener, looks: Looks) -> None:
    case = opened(idempotency=KEYED, max_looks=1)
    lose_the_reply(case)
    advance_clock(seconds=6)

    answers: list[str] = []
    looks.say(ABSENT)
    looks.meanwhile = lambda: answers.append(propose(case).answer)
    look(case)
    assert answers == ["wait"]
    assert evidence(case) == ["absent"]
    assert len(tries(case)) == 1


def test_nobody_checks_while_the_same_call_is_out_again_for_its_own_answer_comes_first(
    opened: Opener, looks: Looks, alice: Person
) -> None:
    case = opened(idempotency=KEYED, in_flight_seconds=600)
    lose_the_reply(case)
    looks.say(ABSENT)
    for _ in range(6):
        advance_clock(seconds=60)
        look(case)
    asked = len(looks.asked)
    assert propose(case).answer == "execute"
    assert open_tasks(case) == [("reconcile_write", "external_outcome_unknown")]
    with pytest.raises(Overtaken, match="still out; its own answer comes first"):
        press("reconcile", case, alice)
    work(case.tenant.pk)
    assert len(looks.asked) == asked


def test_F051_the_billing_case_ends_three_ways(opened: Opener, looks: Looks) -> None:
    case = opened(in_flight_seconds=20, lag_seconds=5)
    report(case, propose(case, "load_invoice"), reply({}, status=429, headers={"retry-after": "1"}))
    assert standing(case)[1] == "retryable"
    advance_clock(seconds=2)
    succeed(case, "load_invoice")
    turn(case)
    lose_the_reply(case)
    assert standing(case)[1] == "needs_human"
    looks.say(present())
    advance_clock(seconds=6)
    look(case)
    turn(case)
    report(case, propose(case, "draft_reply"), reply({}, status=422))
    assert finish(case).outcome == "fatal"
    assert effects(case) == ["apply_credit"]
    assert ARGUMENTS["apply_credit"]["account"] not in str(case.run.customer_message)
