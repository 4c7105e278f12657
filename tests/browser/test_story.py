"""The whole thread in a browser: a lost response becomes a task that a person settles."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from steadyhand import Suspended

from recovery.models import Decision, HumanTask
from runs import wall
from runs.models import Attempt, Run
from tests.browser.conftest import SignIn
from tests.stack import Stack, wait_for
from tests.stories.billing import Agent
from tests.stories.telling import credits, record, script

pytestmark = pytest.mark.browser


def lose_the_reply(stack: Stack, agent: Agent, fault: dict[str, object] | None = None) -> str:
    script(stack, agent, fault or {"do": "commit_then_drop"})
    with stack.boundary() as boundary:
        run = boundary.run(workflow=stack.register(), intent="Refund the double charge of February")
        run.turn()
        with pytest.raises(Suspended):
            agent.credit(run)
    return run.run_id


def task_of(stack: Stack, run_id: str) -> HumanTask:
    with wall.within(stack.tenant.pk):
        return HumanTask.objects.get(run_id=run_id)


def open_task(page: Page, stack: Stack, run_id: str) -> None:
    page.goto(f"{stack.url}/tasks/{task_of(stack, run_id).pk}/")
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def open_sheet(page: Page) -> None:
    page.locator('[data-verb="reconcile"][data-recommended]').first.click()
    expect(page.locator("#sheet")).to_be_visible()


def send_sheet(page: Page) -> None:
    page.locator("#sheet textarea[name=reason]").fill("The reply was lost.")
    page.locator("#sheet footer button.fill").click()


def check_what_happened(page: Page) -> None:
    open_sheet(page)
    send_sheet(page)


def finish_the_case(stack: Stack, agent: Agent, run_id: str) -> Run:
    with stack.boundary() as boundary:
        agent.work(boundary.resume(run_id))
    return record(stack, run_id)


def looks(stack: Stack, run_id: str) -> list[Decision]:
    with wall.within(stack.tenant.pk):
        return list(Decision.objects.filter(run_id=run_id, verb="reconcile"))


def test_a_support_person_proves_the_credit_and_the_run_goes_on(stack: Stack, agent: Agent, sign_in: SignIn) -> None:
    run_id = lose_the_reply(stack, agent)
    page = sign_in("alice")
    page.get_by_role("link", name="Outcome unknown after dispatch").first.click()
    open_task(page, stack, run_id)
    expect(page.get_by_text("Outcome unknown").first).to_be_visible()
    expect(page.get_by_text("Success")).to_have_count(0)
    check_what_happened(page)
    expect(page.get_by_text("Requested").first).to_be_visible()
    expect(page.locator("#task").get_by_text("Proven").first).to_be_visible(timeout=15_000)
    done = finish_the_case(stack, agent, run_id)
    assert (done.state, done.reason_code) == ("completed", "completed_reconciled")
    assert len(credits(stack, agent)) == 1
    page.goto(f"{stack.url}/runs/{run_id}/")
    expect(page.get_by_text("Completed").first).to_be_visible()


def test_the_same_works_without_javascript(stack: Stack, agent: Agent, sign_in: SignIn) -> None:
    run_id = lose_the_reply(stack, agent)
    page = sign_in("alice", script=False)  # type: ignore[call-arg]
    open_task(page, stack, run_id)
    page.locator('[data-verb="reconcile"]').first.click()
    send_sheet(page)
    wait_for(lambda: record(stack, run_id).state == "executing", "the proof")
    page.reload()
    expect(page.locator("#task").get_by_text("Proven").first).to_be_visible()
    assert len(credits(stack, agent)) == 1


def test_a_worker_killed_between_look_and_verdict_changes_nothing_for_the_person(
    stack: Stack, agent: Agent, sign_in: SignIn
) -> None:
    run_id = lose_the_reply(stack, agent)
    stack.arm("C21")
    page = sign_in("alice")
    open_task(page, stack, run_id)
    check_what_happened(page)
    stack.wait_died("C21")
    stack.later(40)
    stack.sweep_until(lambda: record(stack, run_id).state == "executing", "a later worker")
    page.reload()
    expect(page.locator("#task").get_by_text("Proven").first).to_be_visible()
    assert finish_the_case(stack, agent, run_id).outcome == "ok"
    assert len(credits(stack, agent)) == 1


def test_a_click_while_the_broker_is_down_is_taken_and_carried_out_later(
    stack: Stack, agent: Agent, sign_in: SignIn
) -> None:
    run_id = lose_the_reply(stack, agent)
    page = sign_in("alice")
    open_task(page, stack, run_id)
    open_sheet(page)
    stack.kill("broker")
    send_sheet(page)
    expect(page.get_by_text("Requested").first).to_be_visible(timeout=10_000)
    stack.start_broker()
    stack.later(10)
    stack.sweep_until(lambda: record(stack, run_id).state == "executing", "the sweep to ring again")
    expect(page.locator("#task").get_by_text("Proven").first).to_be_visible(timeout=15_000)
    assert len(credits(stack, agent)) == 1


def test_two_people_click_at_once_and_there_is_one_look(stack: Stack, agent: Agent, sign_in: SignIn) -> None:
    run_id = lose_the_reply(stack, agent)
    stack.kill("worker")
    pages = [sign_in("alice"), sign_in("omar")]
    for page in pages:
        open_task(page, stack, run_id)
        open_sheet(page)
    for page in pages:
        send_sheet(page)
    expect(pages[0].get_by_text("Requested").first).to_be_visible()
    expect(pages[1].get_by_text("Alice chose “Check what happened”").first).to_be_visible()
    assert [decision.by.name for decision in looks(stack, run_id) if decision.by] == ["Alice"]
    stack.start_worker()
    stack.later(10)
    stack.sweep_until(lambda: record(stack, run_id).state == "executing", "the verdict")
    assert len(credits(stack, agent)) == 1
    sent = stack.sandbox.arrivals(service="payments", operation="credits", method="POST")
    assert (
        len([one for one in sent if one["action_id"] in {effect["action_id"] for effect in credits(stack, agent)}])
        == 1
    )


def test_a_credit_that_commits_three_seconds_late_is_waited_for(stack: Stack, agent: Agent, sign_in: SignIn) -> None:
    run_id = lose_the_reply(stack, agent, {"do": "late_commit", "seconds": 3})
    page = sign_in("omar")
    open_task(page, stack, run_id)
    check_what_happened(page)
    wait_for(lambda: all(decision.state == "done" for decision in looks(stack, run_id)), "the first look")
    page.reload()
    expect(page.get_by_text("counts as final from").first).to_be_visible()
    expect(page.get_by_text("Blocked: it could happen twice").first).to_be_visible()
    with wall.within(stack.tenant.pk):
        assert Attempt.objects.filter(run_id=run_id, action__tool="apply_credit").count() == 1
    stack.sandbox.wait_for_late_commits()
    stack.later(30)
    stack.sweep_until(lambda: record(stack, run_id).state == "executing", "the final look")
    page.reload()
    expect(page.locator("#task").get_by_text("Proven").first).to_be_visible()
    assert finish_the_case(stack, agent, run_id).reason_code == "completed_reconciled"
    assert len(credits(stack, agent)) == 1


def test_the_real_agent_works_its_cases_and_goes_on_after_the_check(
    stack: Stack, agent: Agent, sign_in: SignIn
) -> None:
    """The demo itself: the OpenAI Agents SDK as a process, beat, and a person who presses one button."""
    stack.start_beat()
    stack.start_agent()

    def run_of(account: str) -> Run | None:
        with wall.within(stack.tenant.pk):
            return Run.objects.filter(customer_ref=account).first()

    def is_in(account: str, *states: str) -> bool:
        run = run_of(account)
        return run is not None and run.state in states

    expected = {
        "acct_8801": "completed", "acct_8841": "verifying", "acct_8862": "recovering", "acct_8874": "failed",
        "acct_8889": "escalated",
    }  # fmt: skip
    for account, state in expected.items():
        wait_for(lambda account=account, state=state: is_in(account, state), f"{account} to be {state}")  # type: ignore[misc]
    unknown = run_of("acct_8841")
    assert unknown is not None
    page = sign_in("alice")
    open_task(page, stack, str(unknown.pk))
    check_what_happened(page)
    wait_for(lambda: is_in("acct_8841", "completed"), "the agent to go on by itself")
    made = [e for e in stack.sandbox.effects(service="payments") if e["fields"].get("account") == "acct_8841"]
    assert len(made) == 1
    drafts = [e for e in stack.sandbox.effects(service="mail") if "acct_8841" in e["fields"].get("to", "")]
    assert len(drafts) == 1
    stack.kill("agent")
    stack.kill("beat")
