"""The agent or the web server killed at each point of a call: one effect or none, and the record says which."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from steadyhand import Run, Suspended, Unavailable, Unrecorded

from runs import wall
from runs.models import Action, Attempt, Event
from runs.models import Run as RunRow
from tests.stack import BASE, Stack, wait_for
from tests.stories.billing import Agent
from tests.stories.telling import action_state, attempts, by_reference, credits, record, script


def killed_agent(stack: Stack, agent: Agent, point: str) -> str:
    """An agent process that died at a point of its credit; the reference of its run."""
    reference = uuid.uuid4().hex
    command = [sys.executable, "-m", "tests.crash.dying_agent", stack.url, stack.sandbox_url]
    command += [stack.register(first_look=1), reference, agent.invoice, point]
    died = subprocess.run(command, cwd=BASE, env=stack.agent_env(), timeout=60, check=False)
    assert died.returncode == -signal.SIGKILL
    return reference


def finish_with_another(stack: Stack, agent: Agent, reference: str) -> None:
    """The lease ends, a look is made when it counts, and a new agent goes on where the record stands."""
    stack.later(50)
    wanted = ("succeeded", "absent_final")
    stack.sweep_until(lambda: action_state(stack, reference) not in ("permitted", "unknown", "probing"), "a look")
    if action_state(stack, reference) not in wanted:
        stack.later(60)
        stack.sweep_until(lambda: action_state(stack, reference) in wanted, "a look that counts")
    with stack.boundary(max_wait=5) as boundary:
        run = boundary.resume(str(by_reference(stack, reference).pk))
        agent.credit(run)


@pytest.mark.parametrize(("point", "sent"), [("C06", 0), ("C08", 0), ("C12", 1)])
def test_F004_F005_F006_F008_an_agent_killed_around_its_call_leaves_one_effect(
    stack: Stack, agent: Agent, point: str, sent: int
) -> None:
    reference = killed_agent(stack, agent, point)
    assert len(credits(stack, agent)) == sent
    finish_with_another(stack, agent, reference)
    assert len(credits(stack, agent)) == 1
    run = by_reference(stack, reference)
    tries = attempts(stack, str(run.pk), "apply_credit")
    assert [one.number for one in tries] == ([1] if sent else [1, 2])
    kinds = [event.kind for event in history(stack, run)]
    if not sent:
        assert kinds.index("look_started") < len(kinds) - 1 - kinds[::-1].index("permitted")


def history(stack: Stack, run: RunRow) -> list[Event]:
    with wall.within(stack.tenant.pk):
        return list(Event.objects.filter(run=run).order_by("id"))


# --- the web server -----------------------------------------------------------------------------------------


@contextmanager
def web_dies_at(stack: Stack, run: Run, point: str) -> Iterator[None]:
    """A server that dies at this point of a request; afterwards one that lives. It must have died there."""
    before = deaths(stack)
    stack.kill("web")
    stack.start_web(STEADYHAND_DIE_AT=point)
    try:
        reconnect(run)
        yield
        wait_for(lambda: deaths(stack) > before, f"the server's death at {point}")
    finally:
        stack.kill("web")
        stack.start_web()
        reconnect(run)


def deaths(stack: Stack) -> int:
    """How often a process of the web server was killed from within, as its master tells it."""
    return (stack.folder / "web.log").read_text().count("SIGKILL")


def reconnect(run: Run) -> None:
    """The client keeps its connection to the server that is gone: its next request finds that out."""
    try:
        run.outcome()
    except Unavailable:
        run.outcome()


@pytest.fixture
def run(stack: Stack) -> Iterator[Run]:
    """A run in the hands of an agent that outlives the server."""
    with stack.boundary() as boundary:
        yield boundary.run(workflow=stack.register(first_look=1), intent="Credit")


def calls_of(stack: Stack, run: Run) -> tuple[int, int, int]:
    """(actions, attempts, tool calls counted) of a run."""
    with wall.within(stack.tenant.pk):
        actions = Action.objects.filter(run_id=run.run_id).count()
        tries = Attempt.objects.filter(run_id=run.run_id).count()
        return actions, tries, RunRow.objects.get(pk=run.run_id).tool_calls


@pytest.mark.parametrize("point", ["C00", "C02", "C03"])
def test_F001_F002_a_server_killed_before_the_intent_is_committed_leaves_nothing(
    stack: Stack, agent: Agent, run: Run, point: str
) -> None:
    with web_dies_at(stack, run, point):
        with pytest.raises(Unavailable):
            agent.credit(run)
        assert calls_of(stack, run) == (0, 0, 0)
        assert credits(stack, agent) == []
    agent.credit(run)
    assert calls_of(stack, run) == (1, 1, 1)
    assert len(credits(stack, agent)) == 1


def test_F003_a_server_killed_after_the_intent_counts_as_sent_until_a_look_says_otherwise(
    stack: Stack, agent: Agent, run: Run
) -> None:
    with web_dies_at(stack, run, "C05"):
        with pytest.raises(Unavailable):
            agent.credit(run)
        assert calls_of(stack, run) == (1, 1, 1)
        assert credits(stack, agent) == []
    finish_with_another(stack, agent, record(stack, run.run_id).client_ref)
    assert len(credits(stack, agent)) == 1


@pytest.mark.parametrize("point", ["C12", "C13", "C14"])
def test_F009_a_server_killed_before_the_outcome_is_committed_records_no_half_of_it(
    stack: Stack, agent: Agent, run: Run, point: str
) -> None:
    script(stack, agent, {"do": "commit_then_drop"}) if point == "C14" else None
    with web_dies_at(stack, run, point):
        with pytest.raises(Unrecorded):
            agent.credit(run)
        assert record(stack, run.run_id).state == "waiting_for_tool"
        assert action_state(stack, record(stack, run.run_id).client_ref) == "permitted"
    assert len(credits(stack, agent)) == 1
    if point != "C14":
        agent.credit(run)  # hands in the kept report first, and is then answered from the record
        assert record(stack, run.run_id).state == "executing"
    else:
        finish_with_another(stack, agent, record(stack, run.run_id).client_ref)
    assert len(credits(stack, agent)) == 1


def test_F010_an_outcome_committed_before_the_server_died_is_told_once(stack: Stack, agent: Agent, run: Run) -> None:
    with web_dies_at(stack, run, "C15"), pytest.raises(Unrecorded):
        agent.credit(run)
    agent.credit(run)
    settled = [event for event in history(stack, record(stack, run.run_id)) if event.kind == "succeeded"]
    assert len(settled) == 1
    with stack.boundary() as boundary:
        fed = [item for item in boundary.events(limit=500).items if item.run_id == run.run_id]
    assert [item.kind for item in fed].count("succeeded") == 1
    assert len(credits(stack, agent)) == 1


def test_F021_a_web_server_that_is_asked_to_stop_finishes_what_it_began(stack: Stack, agent: Agent, run: Run) -> None:
    """An orderly stop between two calls of a run makes nothing unknown."""
    agent.load(run)
    web = stack.processes.pop("web")
    web.send_signal(signal.SIGTERM)
    wait_for(lambda: web.poll() is not None, "the web server to stop")
    with pytest.raises(Unavailable):
        agent.credit(run)
    stack.start_web()
    agent.credit(run)
    assert len(credits(stack, agent)) == 1
    with wall.within(stack.tenant.pk):
        assert not Attempt.objects.filter(run_id=run.run_id, observed="unknown").exists()
    assert not isinstance(run.halted, Suspended)
