"""Every question has somebody who can end it, also once its run has ended (DECISIONS 1, I2, I7)."""

from __future__ import annotations

import pytest
from steadyhand.contract import Cancel

from recovery import intake
from recovery.connectors.base import Finding
from recovery.work.decisions import Refused
from runs import wall
from runs.models import Event, Person
from tests.factories import Agent, Case, advance_clock, lose_the_reply, make_person, propose, reply, report, timed_out
from tests.failures.conftest import Opener
from tests.recovery.stories import TWICE, Looks, kinds, look, open_tasks, panel, press, standing, tries

PART = Finding("partial", "One record is ours, with half of the amount.", 1, "cr_1")


def cancel(case: Case) -> None:
    intake.cancel(case.agent.who, case.run_id, Cancel(reason="The customer changed their mind."), request_id="t")


def found(case: Case, looks: Looks, finding: Finding) -> Case:
    """Its reply was lost, its run is cancelled, and this is what the last look finds."""
    lose_the_reply(case)
    looks.say(finding)
    advance_clock(minutes=20)
    look(case)
    cancel(case)
    return case


@pytest.fixture
def ada(agent: Agent) -> Person:
    return make_person("ada", agent.tenant, "admin")


def test_a_part_that_stands_after_a_cancel_is_accepted_and_its_end_stays(
    opened: Opener, looks: Looks, omar: Person
) -> None:
    case = found(opened(), looks, PART)
    before = (standing(case), case.action().state)
    press("waive", case, omar, reason="The half is theirs.")
    assert (open_tasks(case), standing(case), case.action().state) == ([], *before)
    with wall.within(case.tenant.pk):
        event = Event.objects.get(run_id=case.run_id, kind="record_accepted")
    assert (event.reason, event.data["accepted"], event.data["outcome"]) == (
        "The half is theirs.",
        "part",
        "cancelled",
    )
    assert len(tries(case)) == 1


def test_a_part_above_the_threshold_takes_two(opened: Opener, looks: Looks, omar: Person, ada: Person) -> None:
    case = opened(value_threshold=11_999)
    propose(case)
    press("approve", case, ada)
    found(case, looks, PART)
    press("waive", case, omar)
    assert case.task().state == "awaiting_approval"
    with pytest.raises(Refused, match="you asked for it yourself"):
        press("approve", case, omar)
    press("approve", case, ada)
    assert (open_tasks(case), kinds(case).count("record_accepted")) == ([], 1)


def test_a_contradiction_after_a_cancel_is_left_by_two_and_stays_unknown(
    opened: Opener, looks: Looks, omar: Person, ada: Person
) -> None:
    case = found(opened(), looks, TWICE)
    assert not panel(case, omar).verb("attest").allowed
    press("waive", case, omar)
    assert open_tasks(case) == [("duplicate_effect", "duplicate_effect")]
    press("approve", case, ada)
    assert open_tasks(case) == []
    assert standing(case) == ("cancelled", "cancelled", "cancelled_effect_unknown")


def test_what_was_accepted_is_asked_again_when_more_is_learned(opened: Opener, looks: Looks, omar: Person) -> None:
    case = opened()
    permit = propose(case)
    report(case, permit, timed_out())
    looks.say(PART)
    advance_clock(minutes=20)
    look(case)
    cancel(case)
    press("waive", case, omar)
    assert open_tasks(case) == []
    report(case, permit, reply({"credit_id": "cr_2"}))
    assert open_tasks(case) == [("effect_after_cancel", "cancelled_with_effects")]


def test_an_effect_that_stands_after_a_cancel_is_accepted(opened: Opener, omar: Person) -> None:
    case = opened()
    permit = propose(case)
    cancel(case)
    report(case, permit, reply({"credit_id": "cr_1"}))
    assert open_tasks(case) == [("effect_after_cancel", "cancelled_with_effects")]
    press("waive", case, omar)
    assert open_tasks(case) == []
    assert standing(case) == ("cancelled", "cancelled", "cancelled_with_effects")


def test_what_may_still_be_found_out_is_not_accepted(opened: Opener, omar: Person) -> None:
    case = opened(reconcile=None)
    lose_the_reply(case)
    cancel(case)
    with pytest.raises(Refused, match="what happened is not known"):
        press("waive", case, omar)
    press("attest", case, omar, outcome="absent", reference="case 4711")
    assert open_tasks(case) == []


def test_a_cancel_closes_the_question_about_a_call_that_nobody_approved(opened: Opener) -> None:
    case = opened(requires_approval=True)
    propose(case)
    advance_clock(hours=5)
    look(case)
    assert open_tasks(case) == [("decide_next", "approval_expired")]
    cancel(case)
    assert open_tasks(case) == []
