"""A person agrees to one exact call, refuses it, or answers too late (F124 to F128)."""

from __future__ import annotations

from typing import Any

import pytest

from recovery.work import decisions
from recovery.work.decisions import Overtaken, Refused, Unusable
from runs import wall
from runs.models import Event, Person
from tests.factories import ARGUMENTS, RESULTS, Case, advance_clock, make_person, propose, reply, report, timed_out
from tests.failures.conftest import Opener
from tests.recovery.stories import (
    effects,
    kinds,
    look,
    open_tasks,
    order,
    panel,
    press,
    standing,
    tries,
)

WAITS = ("escalated", "needs_human", "approval_required")


@pytest.fixture
def ada(case: Case) -> Person:
    return make_person("ada", case.tenant, "admin")


@pytest.fixture
def case(opened: Opener) -> Case:
    """A credit that waits for an approval; the wait ends with the run's time, an hour."""
    case = opened(requires_approval=True, budgets={"max_elapsed_seconds": 3600}, run={"requester": "Jo Tanaka"})
    propose(case)
    assert standing(case) == WAITS
    return case


def refusals(case: Case) -> list[Event]:
    with wall.within(case.tenant.pk):
        return list(Event.objects.filter(run_id=case.run_id, kind="refused", actor_kind="person"))


def test_an_approved_call_is_sent_once_when_it_is_proposed_again(case: Case, omar: Person) -> None:
    decision = press("approve", case, omar, reason="Checked with the customer.")
    assert (decision.state, case.action().state) == ("done", "approved")
    assert decision.snapshot["arguments_hash"] == case.action().arguments_hash
    assert case.action().approved_at is not None
    assert standing(case) == ("executing", None, None)
    assert "ready" in kinds(case)
    assert tries(case) == [], "approving sends nothing by itself"
    permit = propose(case)
    assert (permit.answer, permit.attempt) == ("execute", 1)
    assert report(case, permit, reply(RESULTS["apply_credit"])).answer == "result"
    assert (effects(case), len(tries(case)), open_tasks(case)) == (["apply_credit"], 1, [])
    assert propose(case).answer == "replay"


def test_a_second_approval_is_told_who_decided_and_leaves_its_mark(case: Case, omar: Person, ada: Person) -> None:
    late = order(case, ada)
    press("approve", case, omar)
    with pytest.raises(Overtaken, match="already decided: Omar chose “Approve” at"):
        decisions.approve(late)
    with pytest.raises(Overtaken, match="already decided: Omar chose “Approve” at"):
        press("reject", case, ada)
    assert [mark.actor for mark in refusals(case)] == ["Ada", "Ada"]
    assert propose(case).answer == "execute"
    assert propose(case).answer == "wait"
    assert len(tries(case)) == 1


def test_F116_the_same_approval_twice_is_one_decision(case: Case, omar: Person) -> None:
    form = order(case, omar)
    assert decisions.approve(form).pk == decisions.approve(form).pk
    assert kinds(case).count("verb_approve") == 1


@pytest.mark.parametrize("asked_by", ["omar@people.example", "OMAR", " Omar "])
def test_F124_whoever_asked_for_the_run_may_not_approve_it(opened: Opener, omar: Person, asked_by: str) -> None:
    case = opened(requires_approval=True, run={"requester": asked_by})
    propose(case)
    with pytest.raises(Refused, match="you asked for this run"):
        press("approve", case, omar)
    assert standing(case) == WAITS
    press("reject", case, omar)


def test_SEC_06_support_sees_who_decides_and_may_not(case: Case, alice: Person) -> None:
    for verb in ("approve", "reject"):
        with pytest.raises(Refused, match="your role does not include this"):
            press(verb, case, alice)


def test_a_claim_of_another_bars_the_approval(case: Case, omar: Person, ada: Person) -> None:
    press("claim", case, omar)
    with pytest.raises(Refused, match="Omar holds this task"):
        press("approve", case, ada)
    press("approve", case, omar)
    assert propose(case).answer == "execute"


def test_F125_changed_arguments_need_an_approval_of_their_own(case: Case, omar: Person) -> None:
    press("approve", case, omar)
    changed = propose(case, arguments=ARGUMENTS["apply_credit"] | {"amount_minor": 13_000}, step="other")
    assert changed.answer == "wait"
    assert tries(case) == []


def test_F126_an_approval_holds_for_retries_of_the_same_call_only(case: Case, omar: Person) -> None:
    press("approve", case, omar)
    busy = reply({"error": "busy"}, status=429, headers={"retry-after": "1"})
    assert report(case, propose(case), busy).answer == "again"
    advance_clock(seconds=2)
    again = propose(case)
    assert (again.answer, again.attempt) == ("execute", 2)
    report(case, again, reply(RESULTS["apply_credit"]))
    second = propose(case, arguments=ARGUMENTS["apply_credit"] | {"invoice": "INV-2"}, step="second")
    assert second.answer == "wait"
    assert open_tasks(case) == [("approval", "approval_required")]


def test_an_approved_write_whose_outcome_is_unknown_is_not_sent_again_on_its_approval(
    case: Case, omar: Person
) -> None:
    press("approve", case, omar)
    report(case, propose(case), timed_out())
    assert propose(case).answer == "wait"
    assert len(tries(case)) == 1


def test_a_rejected_call_is_over_and_its_agent_is_told_in_fields(case: Case, omar: Person) -> None:
    press("reject", case, omar, reason="Not ours to pay.")
    action = case.action()
    assert (action.state, action.reason_code) == ("rejected", "policy_denied")
    permit = propose(case)
    assert (permit.answer, permit.error and permit.error.code) == ("deny", "policy_denied")
    assert "Not ours to pay" not in permit.model_dump_json()
    assert (standing(case)[0], open_tasks(case), tries(case)) == ("executing", [], [])


def test_a_reviewers_code_must_be_one_that_the_tool_declares(opened: Opener, omar: Person) -> None:
    case = opened(requires_approval=True, review={"reject_codes": ["wrong_account"]})
    propose(case)
    with pytest.raises(Unusable, match="wrong_account"):
        press("reject", case, omar, code="because")
    assert standing(case) == WAITS
    assert press("reject", case, omar, code="wrong_account").snapshot["code"] == "wrong_account"
    told = propose(case).error
    assert told is not None
    assert (told.code, told.field) == ("policy_denied", "review.wrong_account")


def test_F127_an_approval_that_never_comes_is_none(case: Case, omar: Person) -> None:
    task = case.task()
    advance_clock(minutes=61)
    look(case)
    assert (case.action().state, case.action().reason_code) == ("void", "approval_expired")
    assert standing(case) == ("escalated", "needs_human", "approval_expired")
    assert open_tasks(case) == [("decide_next", "approval_expired")]
    assert case.task().pk == task.pk
    assert propose(case).answer in ("deny", "wait", "stop")
    assert tries(case) == []


def test_F128_an_approval_after_the_end_is_refused_and_nothing_is_sent(case: Case, omar: Person) -> None:
    early = order(case, omar)
    advance_clock(minutes=61)
    with pytest.raises(Refused, match="the time for an approval ended at"):
        decisions.approve(early)
    look(case)
    with pytest.raises((Refused, Overtaken)):
        press("approve", case, omar)
    assert (case.action().state, tries(case)) == ("void", [])


def test_F128_an_approval_after_a_cancel_is_refused(case: Case, omar: Person, alice: Person) -> None:
    late = order(case, omar)
    press("cancel", case, alice)
    with pytest.raises((Refused, Overtaken)):
        decisions.approve(late)
    assert (standing(case)[0], tries(case)) == ("cancelled", [])


def test_an_expired_wait_leaves_a_verb_that_acts(case: Case, omar: Person) -> None:
    advance_clock(minutes=61)
    look(case)
    allowed = {verb.name for verb in panel(case, omar).verbs if verb.allowed}
    assert {"claim", "cancel"} <= allowed
    press("cancel", case, omar)
    assert standing(case)[:2] == ("cancelled", "cancelled")


def test_the_panel_offers_only_what_concerns_an_approval(case: Case, omar: Person) -> None:
    shown = {verb.name: verb.allowed for verb in panel(case, omar).shown}
    assert shown["approve"]
    assert shown["reject"]
    assert not {"replay", "discard", "attest", "top_up"} & set(shown)
    assert not any(verb.recommended for verb in panel(case, omar).shown), "the choice is the person's own"


def test_an_approval_opens_the_way_for_no_other_run(case: Case, opened: Opener, omar: Person) -> None:
    press("approve", case, omar)
    other: Any = opened(requires_approval=True)
    assert propose(other).answer == "wait"
