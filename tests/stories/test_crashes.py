"""A worker killed at every point of a look-up, a broker that is down: one verdict, one effect, nothing lost."""

from __future__ import annotations

import pytest
from steadyhand import Suspended

from recovery.models import Decision
from runs import wall
from runs.models import Evidence
from tests.stack import Stack, wait_for
from tests.stories.billing import Agent
from tests.stories.telling import credits, press_check, record, script, settled, verdict_of

pytestmark = pytest.mark.crash


def lose_the_reply(stack: Stack, agent: Agent) -> str:
    script(stack, agent, {"do": "commit_then_drop"})
    with stack.boundary() as boundary:
        run = boundary.run(workflow=stack.register(), intent="Credit")
        with pytest.raises(Suspended):
            agent.credit(run)
    return run.run_id


@pytest.mark.parametrize("point", ["C19", "C20", "C21", "C22", "C25"])
def test_F014_F015_F016_a_worker_killed_during_a_look_leaves_one_verdict(
    stack: Stack, agent: Agent, point: str
) -> None:
    run_id = lose_the_reply(stack, agent)
    stack.kill("worker")
    stack.start_worker(STEADYHAND_DIE_AT=point)
    decision = press_check(stack, run_id)
    stack.wait_dead("worker")
    stack.start_worker()
    stack.later(40)
    stack.sweep_until(lambda: settled(stack, decision), "a later worker to conclude")
    assert record(stack, run_id).state == "executing"
    assert len(credits(stack, agent)) == 1
    with wall.within(stack.tenant.pk):
        looks = Evidence.objects.filter(run_id=run_id, kind="probe")
        assert {look.verdict for look in looks} <= {"present", "present_final"}
        assert Decision.objects.filter(run_id=run_id, verb="reconcile", state="done").count() == 1


def test_F055_a_click_while_the_broker_is_down_is_carried_out_by_the_sweep(stack: Stack, agent: Agent) -> None:
    run_id = lose_the_reply(stack, agent)
    stack.kill("broker")
    decision = press_check(stack, run_id)
    assert decision.state == "requested"
    stack.start_broker()
    stack.later(10)
    stack.sweep_until(lambda: settled(stack, decision), "the sweep to ring again")
    assert verdict_of(stack, run_id) in ("present", "present_final")
    assert len(credits(stack, agent)) == 1


def test_F052_a_message_that_comes_three_times_is_one_look(stack: Stack, agent: Agent) -> None:
    from recovery.tasks import ring

    run_id = lose_the_reply(stack, agent)
    decision = press_check(stack, run_id)
    ring(decision.pk)
    ring(decision.pk)
    wait_for(lambda: settled(stack, decision), "the verdict")
    with wall.within(stack.tenant.pk):
        assert Evidence.objects.filter(run_id=run_id, kind="probe").count() == 1
