"""A resolved task is asked again: by a person, or by evidence that contradicts what it was resolved on (F131)."""

from __future__ import annotations

import pytest

from recovery.work.decisions import ReasonMissing, Refused
from runs import wall
from runs.models import Event, Person
from tests.factories import (
    Case,
    advance_clock,
    finish,
    lose_the_reply,
    make_person,
    propose,
    turn,
)
from tests.failures.conftest import Opener
from tests.recovery.stories import TWICE, Looks, look, panel, present, press, standing, tasks


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
    assert (task.state, task.number, task.reason_code) == ("reopened", number, "conflicting_evidence")
    assert reopened(lost).data["resolved_with"] == "The effect is proven."
    assert lost.action().state == "succeeded", "a settled call is not unsettled"


def test_a_run_that_ended_without_a_sent_write_asks_nothing_again(opened: Opener, omar: Person, looks: Looks) -> None:
    case = opened(requires_approval=True)
    propose(case)
    press("reject", case, omar, reason="Not owed.")
    finish(case)
    assert standing(case)[0] == "failed"
    with pytest.raises(Refused, match="no write of this task was sent"):
        press("reopen", case, omar)
