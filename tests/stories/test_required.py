"""The required tests of the fault list, end to end: SDK, HTTP, PostgreSQL, worker and the sandbox's own ledger."""

from __future__ import annotations

import subprocess
import sys
import uuid

import pytest
from steadyhand import Refused, Suspended

from recovery import permissions
from recovery.models import Decision, HumanTask
from recovery.tasks import ring
from recovery.work import decisions
from recovery.work.decisions import Order
from runs import wall
from runs.models import Action, Attempt, Person, Run
from tests.stack import BASE, Stack, wait_for
from tests.stories.billing import Agent

pytestmark = pytest.mark.failures


def invoice() -> str:
    return f"INV-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def agent(stack: Stack) -> Agent:
    return Agent(stack.sandbox_url, invoice())


def record(stack: Stack, run_id: str) -> Run:
    with wall.within(stack.tenant.pk):
        return Run.objects.get(pk=run_id)


def attempts(stack: Stack, run_id: str, tool: str) -> list[Attempt]:
    with wall.within(stack.tenant.pk):
        return list(Attempt.objects.filter(run_id=run_id, action__tool=tool).order_by("number"))


def credits(stack: Stack, agent: Agent) -> list[dict[str, object]]:
    made = stack.sandbox.effects(service="payments", operation="credits")
    return [effect for effect in made if effect["fields"]["invoice"] == agent.invoice]


def script(stack: Stack, agent: Agent, *entries: dict[str, object], operation: str = "credits") -> None:
    stack.sandbox.fault("payments", operation, list(entries), field={"invoice": agent.invoice})


def alice(stack: Stack) -> Person:
    person = Person.objects.filter(email="alice@steadyhand.example").first()
    if person is None:
        person = Person.objects.create_user(email="alice@steadyhand.example", name="Alice")
        permissions.grant_role(person, stack.tenant, "support")
    return person


def press_check(stack: Stack, run_id: str) -> Decision:
    """Alice presses "Check what happened" on the run's task."""
    from recovery import panel

    person = alice(stack)
    with wall.within(stack.tenant.pk):
        task = HumanTask.objects.select_related("run", "action", "claimed_by").get(run_id=run_id, state="open")
        seen = panel.read(task, person)
        order = Order(task.pk, person, "The reply was lost.", seen.evidence_hash, task.version, uuid.uuid4().hex)
    return decisions.reconcile(order, ring=ring)


def settled(stack: Stack, decision: Decision) -> bool:
    with wall.within(stack.tenant.pk):
        return Decision.objects.get(pk=decision.pk).state == "done"


def test_T1_F081_a_tool_validation_error_ends_the_run_without_a_call(stack: Stack, agent: Agent) -> None:
    with stack.boundary() as boundary, boundary.run(workflow=stack.register(), intent="Credit") as run:
        with pytest.raises(Refused) as refused:
            agent.credit(run, amount_minor=-5)
        assert refused.value.error.code == "invalid_arguments"
        assert refused.value.error.field == "amount_minor"
        outcome = run.finish("The credit has been applied.")
    assert (outcome.state, outcome.reason_code, outcome.failed_step) == ("failed", "invalid_arguments", "apply_credit")
    assert credits(stack, agent) == []
    assert attempts(stack, run.run_id, "apply_credit") == []


def test_T2_F031_two_rate_limits_and_a_success_are_one_action_in_three_attempts(stack: Stack, agent: Agent) -> None:
    busy = {"do": "status", "status": 429, "headers": {"Retry-After": "1"}}
    script(stack, agent, busy, busy)
    pauses: list[float] = []

    def pass_the_time(seconds: float) -> None:
        pauses.append(seconds)
        stack.later(seconds)

    with (
        stack.boundary(max_wait=30, sleep=pass_the_time) as boundary,
        boundary.run(workflow=stack.register(), intent="Credit") as run,
    ):
        result = agent.credit(run)
        agent.reply(run)
    made = attempts(stack, run.run_id, "apply_credit")
    assert [one.observed for one in made] == ["transient_reject", "transient_reject", "ok_valid"]
    assert len({one.action_id for one in made}) == 1
    assert all(pause > 0.5 for pause in pauses[:2])
    (effect,) = credits(stack, agent)
    assert result["credit_id"] == effect["effect_id"]
    assert record(stack, run.run_id).outcome == "ok"


def test_T3_F085_an_error_object_in_a_200_is_a_failure(stack: Stack, agent: Agent) -> None:
    script(stack, agent, {"do": "error_in_200", "body": {"error": {"code": "limit_reached"}}})
    with stack.boundary() as boundary, boundary.run(workflow=stack.register(), intent="Credit") as run:
        with pytest.raises(Refused) as refused:
            agent.credit(run)
        outcome = run.finish("The credit has been applied.")
    assert refused.value.error.code == "business_rule_violation"
    assert outcome.state == "failed"
    assert credits(stack, agent) == []


def test_T6_F026_the_next_step_is_blocked_until_a_look_proves_the_credit(stack: Stack, agent: Agent) -> None:
    script(stack, agent, {"do": "commit_then_drop"})
    with stack.boundary() as boundary:
        run = boundary.run(workflow=stack.register(), intent="Credit")
        run.turn()
        with pytest.raises(Suspended):
            agent.credit(run)
        run.turn()
        with pytest.raises(Suspended):
            agent.reply(run)
        assert record(stack, run.run_id).state == "verifying"
        decision = press_check(stack, run.run_id)
        wait_for(lambda: settled(stack, decision), "the worker's verdict")
        outcome = agent.work(boundary.resume(run.run_id))
    assert (outcome.state, outcome.reason_code) == ("completed", "completed_reconciled")
    assert outcome.completed_effects == ["apply_credit", "draft_reply"]
    assert len(credits(stack, agent)) == 1
    sent = stack.sandbox.arrivals(service="payments", operation="credits", method="POST")
    assert len([one for one in sent if one["action_id"] == _action(stack, run.run_id)]) == 1


def test_T8_F007_a_crash_after_dispatch_is_recovered_without_a_second_arrival(stack: Stack, agent: Agent) -> None:
    script(stack, agent, {"do": "hang", "seconds": 60, "commit": True})
    workflow, reference = stack.register(), uuid.uuid4().hex
    program = [sys.executable, "-m", "tests.stories.process", stack.url, stack.sandbox_url, workflow, reference]
    process = subprocess.Popen([*program, agent.invoice], cwd=BASE, env=stack.agent_env())
    wait_for(lambda: len(credits(stack, agent)) == 1, "the credit in the world")
    process.kill()
    process.wait()
    stack.later(60)
    stack.sweep_until(lambda: _verdict(stack, reference) == "succeeded", "the look-up's proof")
    done = subprocess.run([*program, agent.invoice], cwd=BASE, env=stack.agent_env(), timeout=30, check=True)
    assert done.returncode == 0
    assert len(credits(stack, agent)) == 1
    run = _by_reference(stack, reference)
    assert (run.state, run.outcome, run.reason_code) == ("completed", "ok", "completed_reconciled")
    assert len(attempts(stack, str(run.pk), "apply_credit")) == 1


def test_T10_F086_ok_without_the_required_fields_is_never_a_success(stack: Stack, agent: Agent) -> None:
    script(stack, agent, {"do": "ok_without_fields", "commit": False})
    with stack.boundary() as boundary:
        run = boundary.run(workflow=stack.register(), intent="Credit")
        with pytest.raises(Suspended):
            agent.credit(run)
        assert run.finish("The credit has been applied.").outcome != "ok"
    stored = record(stack, run.run_id)
    assert (stored.state, stored.reason_code) == ("verifying", "external_outcome_unknown")
    assert [one.observed for one in attempts(stack, run.run_id, "apply_credit")] == ["ok_invalid"]


def test_F027_a_credit_that_lands_three_seconds_late_is_found_and_never_sent_again(stack: Stack, agent: Agent) -> None:
    script(stack, agent, {"do": "late_commit", "seconds": 3})
    with stack.boundary() as boundary:
        run = boundary.run(workflow=stack.register(), intent="Credit")
        with pytest.raises(Suspended):
            agent.credit(run)
        decision = press_check(stack, run.run_id)
        wait_for(lambda: settled(stack, decision), "the first look")
        assert _verdict_of(stack, run.run_id) == "absent"
        assert record(stack, run.run_id).state == "verifying"
        with pytest.raises(Suspended):
            agent.credit(run)
        stack.sandbox.wait_for_late_commits()
        stack.later(30)
        stack.sweep_until(lambda: _verdict_of(stack, run.run_id) == "present_final", "the final look")
        outcome = agent.work(boundary.resume(run.run_id))
    assert (outcome.state, outcome.reason_code) == ("completed", "completed_reconciled")
    assert len(credits(stack, agent)) == 1


def _action(stack: Stack, run_id: str) -> str:
    with wall.within(stack.tenant.pk):
        return Action.objects.get(run_id=run_id, tool="apply_credit").action_id


def _verdict_of(stack: Stack, run_id: str) -> str:
    with wall.within(stack.tenant.pk):
        return Action.objects.get(run_id=run_id, tool="apply_credit").verdict


def _by_reference(stack: Stack, reference: str) -> Run:
    with wall.within(stack.tenant.pk):
        return Run.objects.get(client_ref=reference)


def _verdict(stack: Stack, reference: str) -> str:
    with wall.within(stack.tenant.pk):
        return Action.objects.get(run__client_ref=reference, tool="apply_credit").state
