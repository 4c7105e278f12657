"""A heartbeat keeps an attempt up to the end of its run and says when to stop (F060, F103, F135)."""

from datetime import timedelta
from typing import Any

import pytest
from steadyhand.contract import Cancel, Heartbeat, Leased, Permit

from recovery import intake
from recovery.work import stops
from runs.models import Person
from tests.factories import Case, advance_clock, make_person, propose, reply, report
from tests.failures.conftest import Opener
from tests.recovery.stories import evidence, open_tasks, standing, tick, tries


def beat(case: Case, permit: Permit) -> Leased:
    told = Heartbeat(attempt_id=permit.attempt_id or "", fence=permit.fence or 0)
    return intake.heartbeat(case.agent.who, case.run_id, told, request_id="t")


def cancel(case: Case) -> None:
    intake.cancel(case.agent.who, case.run_id, Cancel(reason="No longer wanted."), request_id="t")


@pytest.mark.parametrize("limit", ["budgets", "deadline"])
def test_F103_a_write_in_flight_is_kept_up_to_the_runs_end_and_unknown_beyond(opened: Opener, limit: str) -> None:
    promises: Any = {"budgets": {"max_elapsed_seconds": 60}} if limit == "budgets" else {"deadline_seconds": 60}
    case = opened(**promises)
    permit = propose(case)
    advance_clock(seconds=40)
    end = case.run.elapses_at if limit == "budgets" else case.run.deadline_at
    assert beat(case, permit).lease_until == end
    advance_clock(seconds=20)
    with pytest.raises(intake.Conflict):
        beat(case, permit)
    tick()
    assert standing(case) == ("verifying", "needs_human", "external_outcome_unknown")
    assert open_tasks(case) == [("reconcile_write", "external_outcome_unknown")]


def test_F103_a_beat_never_takes_away_what_the_permit_gave(opened: Opener) -> None:
    case = opened(budgets={"max_elapsed_seconds": 20})
    permit = propose(case)
    given = tries(case)[0].lease_until
    assert given > case.run.elapses_at
    assert beat(case, permit).lease_until == given


def test_a_beat_of_an_untroubled_run_says_go_on(opened: Opener) -> None:
    case = opened()
    permit = propose(case)
    before = tries(case)[0].lease_until
    advance_clock(seconds=10)
    said = beat(case, permit)
    assert said.lease_until >= before + timedelta(seconds=10)
    assert not said.stop


def test_F135_a_read_in_flight_is_asked_to_stop(opened: Opener) -> None:
    case = opened()
    permit = propose(case, "load_invoice")
    cancel(case)
    assert beat(case, permit).stop
    advance_clock(minutes=2)
    with pytest.raises(intake.Conflict):
        beat(case, permit)


def test_F135_a_write_in_flight_hears_of_the_cancel_and_keeps_its_lease(opened: Opener) -> None:
    case = opened()
    permit = propose(case)
    cancel(case)
    advance_clock(seconds=10)
    said = beat(case, permit)
    assert said.stop
    assert report(case, permit, reply({"credit_id": "cr_1"})).outcome == "ok"
    assert standing(case)[2] == "cancelled_with_effects"


@pytest.fixture
def ada(tenant: Any) -> Person:
    return make_person("ada", tenant, "admin")


def test_a_stop_switch_reaches_a_call_in_flight(opened: Opener, ada: Person) -> None:
    case = opened()
    permit = propose(case, "load_invoice")
    stops.set_stop(ada, case.tenant.pk, scope="everything", mode="halt", reason="A bad release.")
    assert beat(case, permit).stop
    report(case, permit, reply({"invoice_id": "INV-20931"}))
    assert evidence(case) == []
