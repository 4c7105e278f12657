"""The required tests of the fault list, end to end: SDK, HTTP, PostgreSQL, worker and the sandbox's own ledger."""

from __future__ import annotations

import subprocess
import sys
import uuid

import pytest
from steadyhand import Refused, Stopped, Suspended

from recovery.models import HumanTask
from runs import wall
from runs.models import Event
from tests.stack import BASE, Stack, wait_for
from tests.stories.billing import Agent
from tests.stories.telling import (
    action_id,
    action_state,
    attempts,
    by_reference,
    credits,
    letters,
    open_tasks,
    press_check,
    record,
    script,
    settled,
    verdict_of,
)

pytestmark = pytest.mark.failures


def test_T1_F081_a_tool_validation_error_ends_the_run_without_a_call(stack: Stack, agent: Agent) -> None:
    with stack.boundary() as boundary, boundary.run(workflow=stack.register(), intent="Credit") as run:
        with pytest.raises(Refused) as refused:
            agent.credit(run, amount_minor=-5)
        assert refused.value.error.code == "invalid_arguments"
        assert refused.value.error.field == "amount_minor"
        outcome = run.finish("The credit has been applied.")
    assert (outcome.state, outcome.reason_code, outcome.failed_step) == (
        "failed",
        "invalid_arguments",
        "apply_credit",
    )
    assert credits(stack, agent) == []
    assert attempts(stack, run.run_id, "apply_credit") == []


def test_T2_F031_two_rate_limits_then_success_are_one_action_in_three_attempts(stack: Stack, agent: Agent) -> None:
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


def test_T4_F090_the_turn_ceiling_stops_the_run_before_another_call(stack: Stack, agent: Agent) -> None:
    workflow = stack.register(budgets={"max_turns": 2, "max_tool_calls": 12, "max_attempts_per_step": 3})
    with stack.boundary() as boundary:
        run = boundary.run(workflow=workflow, intent="Credit")
        run.turn()
        agent.load(run)
        run.turn()
        with pytest.raises(Stopped) as stopped:
            run.turn()
        assert stopped.value.error.code == "turn_budget_exhausted"
        with pytest.raises((Stopped, Suspended)):
            agent.credit(run)
    assert credits(stack, agent) == []
    stored = record(stack, run.run_id)
    assert (stored.state, stored.outcome, stored.turns) == ("escalated", "needs_human", 2)
    assert open_tasks(stack, run.run_id) == [("decide_next", "turn_budget_exhausted")]


def test_T5_F105_the_retry_ceiling_leaves_one_owned_dead_letter(stack: Stack, agent: Agent) -> None:
    script(stack, agent, *[{"do": "status", "status": 429, "headers": {"Retry-After": "1"}}] * 9)
    with stack.boundary(max_wait=60, sleep=stack.later) as boundary:
        run = boundary.run(workflow=stack.register(), intent="Credit")
        with pytest.raises(Suspended):
            agent.credit(run)
    assert len(attempts(stack, run.run_id, "apply_credit")) == 3
    (letter,) = letters(stack, run.run_id)
    assert (letter.failure_class, letter.generation) == ("provider_rate_limited", 1)
    assert letter.owner_team
    assert [one["number"] for one in letter.attempts] == [1, 2, 3]
    assert open_tasks(stack, run.run_id) == [("dead_letter", "retry_exhausted")]
    assert credits(stack, agent) == []


def test_T7_F135_a_cancel_during_a_call_sends_nothing_more_and_shows_what_was_done(
    stack: Stack, agent: Agent
) -> None:
    with stack.boundary() as boundary:
        run = boundary.run(workflow=stack.register(), intent="Credit")
        agent.credit(run, then=lambda: run.cancel("The customer withdrew."))
        with pytest.raises(Stopped):
            agent.reply(run)
        assert run.outcome().completed_effects == ["apply_credit"]
    assert len(credits(stack, agent)) == 1
    stored = record(stack, run.run_id)
    assert (stored.state, stored.outcome, stored.reason_code) == ("cancelled", "cancelled", "cancelled_with_effects")
    assert open_tasks(stack, run.run_id) == [("effect_after_cancel", "cancelled_with_effects")]


def test_T9_F145_the_same_failure_in_two_tenants_is_two_questions_that_share_nothing(
    stack: Stack, agent: Agent
) -> None:
    neighbour, told = stack.another_tenant("harbor"), {}
    for tenant, token in ((stack.tenant, stack.token), neighbour):
        script(stack, agent, {"do": "commit_then_drop"})
        with stack.boundary(token=token) as boundary:
            run = boundary.run(workflow=stack.register(token=token), intent=f"A secret of {tenant.slug}")
            with pytest.raises(Suspended):
                agent.credit(run)
            feed = boundary.events(limit=500)
        with wall.within(tenant.pk):
            tasks = list(HumanTask.objects.filter(reason_code="external_outcome_unknown"))
            pages = [event.data for event in Event.objects.filter(kind__in=("paged", "task_opened"))]
        told[tenant.slug] = (run.run_id, tasks, feed)
        assert {task.tenant_id for task in tasks} == {tenant.pk}
        assert run.run_id in {str(task.run_id) for task in tasks}
        assert all(agent.invoice not in str(page) and "secret" not in str(page) for page in pages)
    (ours, _, our_feed), (theirs, _, their_feed) = told["nordlicht"], told["harbor"]
    assert theirs not in our_feed.model_dump_json()
    assert ours not in their_feed.model_dump_json()


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
    assert len([one for one in sent if one["action_id"] == action_id(stack, run.run_id)]) == 1


def test_T8_F007_a_crash_after_dispatch_is_recovered_without_a_second_arrival(stack: Stack, agent: Agent) -> None:
    script(stack, agent, {"do": "hang", "seconds": 60, "commit": True})
    workflow, reference = stack.register(), uuid.uuid4().hex
    program = [sys.executable, "-m", "tests.stories.process", stack.url, stack.sandbox_url, workflow, reference]
    process = subprocess.Popen([*program, agent.invoice], cwd=BASE, env=stack.agent_env())
    wait_for(lambda: len(credits(stack, agent)) == 1, "the credit in the world")
    process.kill()
    process.wait()
    stack.later(60)
    stack.sweep_until(lambda: action_state(stack, reference) == "succeeded", "the look-up's proof")
    done = subprocess.run([*program, agent.invoice], cwd=BASE, env=stack.agent_env(), timeout=30, check=True)
    assert done.returncode == 0
    assert len(credits(stack, agent)) == 1
    run = by_reference(stack, reference)
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


def test_F027_a_credit_that_lands_three_seconds_late_is_found_and_not_sent_again(stack: Stack, agent: Agent) -> None:
    script(stack, agent, {"do": "late_commit", "seconds": 3})
    with stack.boundary() as boundary:
        run = boundary.run(workflow=stack.register(), intent="Credit")
        with pytest.raises(Suspended):
            agent.credit(run)
        decision = press_check(stack, run.run_id)
        wait_for(lambda: settled(stack, decision), "the first look")
        assert verdict_of(stack, run.run_id) == "absent"
        assert record(stack, run.run_id).state == "verifying"
        with pytest.raises(Suspended):
            agent.credit(run)
        stack.sandbox.wait_for_late_commits()
        stack.later(30)
        stack.sweep_until(lambda: verdict_of(stack, run.run_id) == "present_final", "the final look")
        outcome = agent.work(boundary.resume(run.run_id))
    assert (outcome.state, outcome.reason_code) == ("completed", "completed_reconciled")
    assert len(credits(stack, agent)) == 1


def test_a_contract_may_ask_for_its_first_look_at_once(stack: Stack, agent: Agent) -> None:
    script(stack, agent, {"do": "late_commit", "seconds": 3})
    with stack.boundary() as boundary:
        run = boundary.run(workflow=stack.register(first_look=0), intent="Credit")
        with pytest.raises(Suspended):
            agent.credit(run)
    wait_for(lambda: verdict_of(stack, run.run_id) == "absent", "a look that no sweep ordered")
    assert credits(stack, agent) == [], "the look was made before the credit landed"
