"""A person asks for what a run did to be undone; an undo is approved, refused or never answered (F138, F143)."""

from __future__ import annotations

import pytest

from recovery.work import decisions
from recovery.work.decisions import ReasonMissing, Refused
from runs.models import Person
from tests.factories import Agent, Case, advance_clock, finish, open_run, propose, register, reply, report, timed_out
from tests.failures.outside import Sends, script_sends, stand_manifest
from tests.recovery.stories import actions, look, open_tasks, order, panel, press, standing

ARGUMENTS = {"reserve": {"stand": "A7"}, "pay": {"amount_minor": 5000}}
RESULTS = {"reserve": {"reservation_id": "rs_1"}, "pay": {"payment_id": "p_50"}}
UNDONE = reply({"undo_id": "un_1"})


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> Sends:
    return script_sends(monkeypatch)


@pytest.fixture
def booked(agent: Agent, sends: Sends) -> Case:
    """A stand is reserved and paid for, and the run ended without the furniture that it needed."""
    register(agent, stand_manifest(refund={"requires_approval": True}, required_effects=["furnish"]))
    case = open_run(agent, scope={})
    for tool in ("reserve", "pay"):
        report(case, propose(case, tool, ARGUMENTS[tool]), reply(RESULTS[tool], status=201), tool=tool)
    finish(case)
    assert standing(case)[2] == "required_effect_missing"
    return case


def states(case: Case) -> dict[str, str]:
    return {action.step: action.state for action in actions(case)}


def test_an_undo_that_needs_an_approval_is_sent_once_it_has_one(booked: Case, sends: Sends, omar: Person) -> None:
    sends.say(UNDONE)
    press("compensate", booked, omar, reason="The fair was called off.")
    look(booked)
    assert (sends.sent, states(booked)["pay:undo"]) == ([], "awaiting_approval")
    assert open_tasks(booked) == [("approval", "approval_required")]
    press("approve", booked, omar)
    for _ in range(4):
        look(booked)
    assert sends.tools == ["refund", "release"]
    assert (states(booked)["pay"], states(booked)["reserve"]) == ("compensated", "compensated")
    assert (standing(booked)[0], open_tasks(booked)) == ("failed", [])


def test_a_rejected_undo_stops_the_rollback_with_its_remainder(booked: Case, sends: Sends, omar: Person) -> None:
    press("compensate", booked, omar)
    press("reject", booked, omar)
    look(booked)
    assert (sends.sent, states(booked)["reserve"]) == ([], "succeeded")
    assert standing(booked) == ("escalated", "needs_human", "compensation_failed")
    assert [kind for kind, _ in open_tasks(booked)] == ["compensation"]
    assert "cancel" in {verb.name for verb in panel(booked, omar).verbs if verb.allowed}


def test_F127_an_undo_that_nobody_approves_in_time_stops_the_rollback(
    agent: Agent, sends: Sends, omar: Person
) -> None:
    register(
        agent, stand_manifest(refund={"requires_approval": True}, approval_seconds=60, required_effects=["furnish"])
    )
    case = open_run(agent, scope={})
    report(case, propose(case, "pay", ARGUMENTS["pay"]), reply(RESULTS["pay"], status=201), tool="pay")
    finish(case)
    press("compensate", case, omar)
    advance_clock(seconds=61)
    look(case)
    assert (sends.sent, states(case)["pay:undo"]) == ([], "void")
    assert standing(case) == ("escalated", "needs_human", "compensation_failed")
    assert [kind for kind, _ in open_tasks(case)] == ["compensation"]


def test_nothing_is_undone_beside_an_unknown_write(booked: Case, omar: Person) -> None:
    case = booked
    press("resume", case, omar)
    report(case, propose(case, "furnish", {"stand": "A7"}), timed_out(), tool="furnish")
    with pytest.raises(Refused, match="a write may have happened; it is settled first"):
        press("compensate", case, omar)
    assert states(case)["pay"] == "succeeded"


def test_an_undo_wants_a_reason_and_is_asked_for_once(booked: Case, omar: Person) -> None:
    with pytest.raises(ReasonMissing):
        press("compensate", booked, omar, reason="")
    form = order(booked, omar)
    assert decisions.compensate(form).pk == decisions.compensate(form).pk
    with pytest.raises(Refused, match="undoing was ordered already"):
        press("compensate", booked, omar)
    with pytest.raises(Refused, match="it does not go on forward"):
        press("resume", booked, omar)
