"""A task is put off, and wakes: at its time, by something new, or by a newer question (DECISIONS 1)."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from recovery.work.decisions import ReasonMissing, Refused, Unusable
from recovery.work.sweep import sweep
from runs import wall
from runs.models import Event, Person
from runs.querysets import read_clock
from tests.factories import Case, advance_clock, lose_the_reply, make_person, propose, turn
from tests.failures.conftest import Opener
from tests.recovery.stories import ABSENT, Looks, kinds, look, panel, press


@pytest.fixture
def lost(opened: Opener, looks: Looks) -> Case:
    case = opened(deadline_seconds=86400, budgets={"max_elapsed_seconds": 86400})
    turn(case)
    lose_the_reply(case)
    return case


def later(**ahead: float) -> datetime:
    return read_clock() + timedelta(**ahead)


def why_woken(case: Case) -> list[str]:
    with wall.within(case.tenant.pk):
        woken = Event.objects.filter(run_id=case.run_id, kind="woken")
        return list(woken.values_list("reason", flat=True))


def test_a_task_sleeps_until_its_time_and_wakes_once(lost: Case, alice: Person) -> None:
    press("claim", lost, alice)
    press("snooze", lost, alice, until=later(hours=1))
    task = lost.task()
    assert (task.state, task.claimed_by_id) == ("open", None)
    sweep(ring=lambda decision_id: None)
    assert lost.task().snoozed_until is not None
    advance_clock(minutes=61)
    for _ in range(2):
        sweep(ring=lambda decision_id: None)
    assert lost.task().snoozed_until is None
    assert why_woken(lost) == ["Its time is over."]


def test_something_new_about_its_call_wakes_it_before(lost: Case, looks: Looks, alice: Person) -> None:
    looks.say(ABSENT)
    press("snooze", lost, alice, until=later(hours=5))
    advance_clock(seconds=6)
    look(lost)
    sweep(ring=lambda decision_id: None)
    assert lost.task().snoozed_until is None
    assert why_woken(lost) == ["Something new was learned about its call."]


def test_what_goes_on_by_itself_goes_on_while_it_sleeps(lost: Case, looks: Looks, alice: Person) -> None:
    press("snooze", lost, alice, until=later(hours=5))
    advance_clock(seconds=6)
    look(lost)
    assert "look_started" in kinds(lost)


def test_a_snoozed_task_can_be_claimed_and_snoozed_again(lost: Case, alice: Person) -> None:
    press("snooze", lost, alice, until=later(hours=1))
    until = later(hours=2)
    press("snooze", lost, alice, until=until)
    assert lost.task().snoozed_until == until
    press("claim", lost, alice)
    assert (lost.task().state, lost.task().snoozed_until) == ("claimed", None)


@pytest.mark.parametrize("ahead", [{"seconds": -1}, {"seconds": 30}, {"days": 31}])
def test_a_time_that_is_past_or_too_far_is_no_time(lost: Case, alice: Person, ahead: dict[str, float]) -> None:
    with pytest.raises(Unusable, match="within 30 days"):
        press("snooze", lost, alice, until=later(**ahead))


def test_it_takes_the_right_a_reason_and_a_free_task(lost: Case, alice: Person, omar: Person) -> None:
    with pytest.raises(ReasonMissing):
        press("snooze", lost, alice, until=later(hours=1), reason="")
    with pytest.raises(Refused, match="your role"):
        press("snooze", lost, make_person("bob", lost.tenant, "viewer"), until=later(hours=1))
    press("claim", lost, omar)
    with pytest.raises(Refused, match="Omar holds this task"):
        press("snooze", lost, alice, until=later(hours=1))


def test_F127_an_approval_cannot_be_slept_through(opened: Opener, omar: Person) -> None:
    case = opened(requires_approval=True)
    propose(case)
    assert "ends with it" in panel(case, omar).verb("snooze").sentence
    with pytest.raises(Refused):
        press("snooze", case, omar, until=later(hours=1))
