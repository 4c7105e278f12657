"""An orderly stop, as a new version is rolled out: what was begun is finished, and nothing unsent becomes unknown."""

from __future__ import annotations

import signal

import pytest
from steadyhand import Suspended, Unavailable

from runs import wall
from runs.models import Attempt, Evidence
from tests.crash.case import CreditCase, taken_back
from tests.crash.test_every_point import credit_only, lose_the_reply, take_back, taken_back_once, voids
from tests.stack import Stack, wait_for
from tests.stories.billing import Agent
from tests.stories.telling import press_check, settled


def stop(stack: Stack, name: str) -> None:
    """SIGTERM, as a supervisor sends it, and the end of the process."""
    process = stack.processes.pop(name)
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: process.poll() is not None, f"{name} to stop")


def test_F021_a_web_server_that_is_asked_to_stop_finishes_what_it_began(case: CreditCase) -> None:
    stack = case.stack
    with stack.boundary() as boundary:
        run = case.open(boundary)
        case.agent.load(run)
        stop(stack, "web")
        with pytest.raises(Unavailable):
            case.agent.credit(run)
        stack.start_web()
        case.agent.credit(run)
        assert not isinstance(run.halted, Suspended)
    with wall.within(stack.tenant.pk):
        assert not Attempt.objects.filter(run=case.run, observed="unknown").exists()
    case.go_on()
    case.holds()


def test_F021_a_worker_that_is_asked_to_stop_finishes_its_look(case: CreditCase) -> None:
    stack = case.stack
    lose_the_reply(case)
    slow = {"do": "delay", "seconds": 1}
    stack.sandbox.fault("payments", "credits", [slow], kind="read", field={"action_id": case.calls()[0].action_id})
    decision = press_check(stack, str(case.run.pk))
    wait_for(lambda: bool(looks_arrived(case)), "the look at the provider")
    stop(stack, "worker")
    assert settled(stack, decision)
    stack.start_worker()
    case.go_on()
    case.holds()
    with wall.within(stack.tenant.pk):
        assert Evidence.objects.filter(run=case.run, kind="probe").count() == 1


def looks_arrived(case: CreditCase) -> list[object]:
    """What has come so far of looks for this case's credit."""
    found = case.stack.sandbox.arrivals(operation="credits", kind="read")
    return [one for one in found if case.calls()[0].action_id in str(one)]


def test_F021_a_worker_that_is_asked_to_stop_finishes_its_own_send(stack: Stack, agent: Agent) -> None:
    """The undo is at the provider when the stop comes: its answer is still heard, so nothing is unknown."""
    case = CreditCase(stack, agent, changes={"made": taken_back})
    credited = credit_only(case)
    slow = {"do": "delay", "seconds": 1}
    stack.sandbox.fault("payments", "voids", [slow], field={"credit": credited})
    before = len(stack.sandbox.arrivals(operation="voids", method="POST"))
    take_back(case)
    stack.sweep_until(
        lambda: len(stack.sandbox.arrivals(operation="voids", method="POST")) > before, "the void at the provider"
    )
    stop(stack, "worker")
    assert len(voids(stack, credited)) == 1
    assert [one.observed for one in case.tries("void_credit")] == ["ok_valid"]
    stack.start_worker()
    taken_back_once(case, credited, 1)
