"""A resolved task is asked again: by a person, or by evidence that contradicts what it was resolved on (F131)."""

from __future__ import annotations

import pytest

from recovery.work.decisions import ReasonMissing, Refused
from runs import wall
from runs.models import Event, Person
from tests.factories import Case, advance_clock, finish, lose_the_reply, make_person, propose, succeed, turn
from tests.failures.conftest import Opener
from tests.recovery.stories import (
    TWICE,
    Looks,
    effects,
    evidence,
    kinds,
    look,
    panel,
    present,
    press,
    standing,
    tasks,
)


@pytest.fixture
def lost(opened: Opener) -> Case:
    case = opened(in_flight_seconds=20, lag_seconds=5)
    turn(case)
    lose_the_reply(case)
    return case


def resolved(case: Case, looks: Looks) -> None:
    """A look proved it, and the task closed by itself."""
    looks.say(present())
    advance_clock(seconds=6)
    look(case)
    assert case.task().state == "resolved"


def reopened(case: Case) -> Event:
    with wall.within(case.tenant.pk):
        return Event.objects.filter(run_id=case.run_id, kind="task_reopened").latest("id")


def test_a_person_asks_again_and_the_clock_starts_anew(lost: Case, looks: Looks, alice: Person) -> None:
    before = lost.task().due_at
    resolved(lost, looks)
    press("reopen", lost, alice, reason="The customer sees no credit.")
    task = lost.task()
    assert (task.state, task.resolved_at, task.resolution) == ("reopened", None, "")
    assert task.due_at > before
    event = reopened(lost)
    assert (event.reason, event.data["resolved_with"]) == ("The customer sees no credit.", "The effect is proven.")
    assert panel(lost, alice).verb("claim").allowed


def test_only_a_resolved_task_is_reopened_and_with_a_reason(lost: Case, looks: Looks, alice: Person) -> None:
    with pytest.raises(Refused, match="the task is open"):
        press("reopen", lost, alice)
    resolved(lost, looks)
    with pytest.raises(ReasonMissing):
        press("reopen", lost, alice, reason="")
    with pytest.raises(Refused, match="your role"):
        press("reopen", lost, make_person("bob", lost.tenant, "viewer"))


def test_one_open_task_asks_about_one_call(lost: Case, looks: Looks, alice: Person) -> None:
    resolved(lost, looks)
    press("reopen", lost, alice)
    with pytest.raises(Refused, match="the task is open"):
        press("reopen", lost, alice)
    assert len(tasks(lost)) == 1


def test_F131_evidence_that_contradicts_reopens_the_task_that_was_resolved_on_it(lost: Case, looks: Looks) -> None:
    resolved(lost, looks)
    number = lost.task().number
    looks.say(TWICE)
    advance_clock(seconds=40)
    look(lost)
    (task,) = tasks(lost)
    assert (task.state, task.number, task.reason_code) == ("reopened", number, "duplicate_effect")
    assert reopened(lost).data["resolved_with"] == "The effect is proven."
    assert lost.action().state == "succeeded", "a settled call is not unsettled"


def vouched_and_over(opened: Opener, omar: Person) -> Case:
    """A credit that somebody vouched for, wrongly, in a run that has ended well on it."""
    case = opened(reconcile=None)
    turn(case)
    lose_the_reply(case)
    press("attest", case, omar, outcome="present", reference="cr_77")
    succeed(case, "draft_reply")
    finish(case)
    assert standing(case) == ("completed", "ok", "completed_reconciled")
    return case


def test_F131_a_wrong_word_is_corrected_beside_the_record_and_nothing_is_edited(
    opened: Opener, omar: Person, alice: Person
) -> None:
    case = vouched_and_over(opened, omar)
    before = case.action().state, effects(case), evidence(case)
    press("reopen", case, alice, reason="The credit was another customer's.")
    press("attest", case, omar, outcome="absent", reference="cr_77 belongs to acct_1")
    assert (case.action().state, effects(case), evidence(case)[:-1]) == before
    assert evidence(case) == ["present", "absent_final"]
    assert standing(case) == ("completed", "ok", "completed_reconciled"), "an end is never taken back"
    assert kinds(case).count("record_corrected") == 1
    task = case.task()
    assert (task.state, task.resolution.startswith("Corrected: it did not happen.")) == ("resolved", True)


def test_F131_a_correction_takes_the_same_two_people_as_the_word_did(
    opened: Opener, omar: Person, alice: Person
) -> None:
    case = vouched_and_over(opened, omar)
    press("reopen", case, alice)
    press("attest", case, alice, outcome="absent", reference="case 4711")
    assert (case.task().state, kinds(case).count("record_corrected")) == ("awaiting_approval", 0)
    with pytest.raises(Refused, match="your role"):
        press("approve", case, alice)
    press("approve", case, omar)
    assert (case.task().state, kinds(case).count("record_corrected")) == ("resolved", 1)


def test_what_is_resolved_is_corrected_only_after_it_was_opened_again(opened: Opener, omar: Person) -> None:
    case = vouched_and_over(opened, omar)
    with pytest.raises(Refused, match="the task is resolved"):
        press("attest", case, omar, outcome="absent", reference="x")


def test_a_run_that_ended_without_a_sent_write_asks_nothing_again(opened: Opener, omar: Person, looks: Looks) -> None:
    case = opened(requires_approval=True)
    propose(case)
    press("reject", case, omar, reason="Not owed.")
    finish(case)
    assert standing(case)[0] == "failed"
    with pytest.raises(Refused, match="no write of this task was sent"):
        press("reopen", case, omar)
