"""A call's lease: how a heartbeat carries it, and what is lost when it ends (F058, F060)."""

import uuid
from typing import Any

import pytest
from steadyhand.contract import Heartbeat, Permit

from recovery import intake
from runs import wall
from tests.factories import Case, advance_clock, make_client, open_run, propose, reply, report
from tests.failures.conftest import Opener
from tests.recovery.stories import open_tasks, standing, tick, tries

DONE = reply({"credit_id": "cr_1"})


def beat(case: Case, permit: Permit, **changes: Any) -> Any:
    told = {"attempt_id": permit.attempt_id, "fence": permit.fence} | changes
    return intake.heartbeat(case.agent.who, case.run_id, Heartbeat(**told), request_id="t")


def test_F060_a_long_call_keeps_its_lease_by_beating(opened: Opener) -> None:
    case = opened()
    permit = propose(case)
    for _ in range(4):
        advance_clock(seconds=40)
        beat(case, permit)
    tick()
    assert report(case, permit, DONE).answer == "result"


def test_a_beat_carries_no_further_than_a_permit_did(opened: Opener) -> None:
    case = opened()
    permit = propose(case)
    for _ in range(20):
        beat(case, permit)
    advance_clock(seconds=46)
    tick()
    assert standing(case)[0] == "verifying"


def test_F060_a_lost_lease_stays_lost(opened: Opener) -> None:
    case = opened()
    permit = propose(case)
    advance_clock(seconds=46)
    with pytest.raises(intake.Conflict):
        beat(case, permit)
    assert tries(case)[0].observed is None
    tick()
    with pytest.raises(intake.Conflict):
        beat(case, permit)
    assert open_tasks(case) == [("reconcile_write", "external_outcome_unknown")]


@pytest.mark.parametrize("change", [{"fence": 2}, {"attempt_id": str(uuid.uuid4())}])
def test_a_beat_for_something_else_extends_nothing(opened: Opener, change: dict[str, Any]) -> None:
    case = opened()
    permit = propose(case)
    before = tries(case)[0].lease_until
    with pytest.raises(intake.Conflict):
        beat(case, permit, **change)
    assert tries(case)[0].lease_until == before


@pytest.mark.parametrize("text", ["", "x", "1", "00000000-0000-0000-0000-00000000000g"])
def test_a_malformed_attempt_is_a_missing_one(opened: Opener, text: str) -> None:
    case = opened()
    permit = propose(case).model_copy(update={"attempt_id": text})
    with pytest.raises(intake.NotFound):
        beat(case, permit)
    with pytest.raises(intake.NotFound):
        report(case, permit, DONE)


def test_another_agents_attempt_is_a_missing_one(opened: Opener) -> None:
    case = opened()
    permit = propose(case)
    theirs = open_run(make_client(case.tenant, "other"))
    with pytest.raises(intake.Conflict):
        beat(theirs, permit)


def test_a_client_reaches_the_workflows_of_its_scope_only(opened: Opener) -> None:
    case = opened()
    with_scope = make_client(case.tenant, "narrow")
    with wall.within(case.tenant.pk):
        type(with_scope.client).objects.filter(pk=with_scope.client.pk).update(workflows=["other-case"])
    with pytest.raises(intake.NotFound):
        open_run(with_scope)
