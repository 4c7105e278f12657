"""SIGKILL at each of the 27 points of a call: one effect or none, the record says which, and the case ends well.

The processes are real and the ledger is the sandbox's own. A test goes on only once somebody has died where it asked
for it. `make test` kills once at each point, `make test-long` 20 times.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.test import Client
from steadyhand import Boundary, Run, SteadyhandError, Suspended, Unavailable, Unrecorded

from runs import wall
from runs.models import Evidence
from tests.crash.case import ROUND_SECONDS, CreditCase, carefully, final, taken_back
from tests.stack import BASE, Stack, wait_for
from tests.stories.billing import Agent
from tests.stories.telling import action_state, alice, credits, open_tasks, press_check, script, settled

pytestmark = pytest.mark.usefixtures("time", "disarmed")
VERB_EVENT = "verb_reconcile"
FROM_OUTSIDE = {"C23"}


def test_there_is_a_kill_at_each_point() -> None:
    named = set(re.findall(r'"(C\d\d)"', Path(__file__).read_text()))
    assert named | FROM_OUTSIDE == {f"C{number:02}" for number in range(27)}


# --- the agent ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "sent", "tried"),
    [("C06", 0, [1, 2]), ("C08", 0, [1, 2]), ("C11", 1, [1]), ("C12", 1, [1])],
)
def test_F004_F005_F006_F008_an_agent_killed_around_its_call_leaves_one_effect(
    case: CreditCase, point: str, sent: int, tried: list[int]
) -> None:
    assert case.process(point).wait(timeout=60) == -signal.SIGKILL
    assert len(credits(case.stack, case.agent)) == sent
    case.go_on()
    case.holds()
    assert [one.number for one in case.tries()] == tried
    assert a_look_came_first(case)


@pytest.mark.parametrize(
    ("point", "entry"),
    [("C09", {"do": "delay", "seconds": 1}), ("C10", {"do": "hang", "seconds": 60, "commit": True})],
)
def test_F007_an_agent_killed_while_the_provider_works_is_replaced_without_a_second_arrival(
    case: CreditCase, point: str, entry: dict[str, Any]
) -> None:
    script(case.stack, case.agent, entry)
    agent = case.process(point)
    wait_for(lambda: bool(arrived(case)), "the call at the provider")
    if point == "C10":
        wait_for(lambda: bool(credits(case.stack, case.agent)), "the credit in the world")
    agent.kill()
    assert agent.wait(timeout=10) == -signal.SIGKILL
    assert len(credits(case.stack, case.agent)) == (1 if point == "C10" else 0)
    wait_for(lambda: bool(credits(case.stack, case.agent)), "the credit in the world")
    case.go_on()
    case.holds()
    assert [one.number for one in case.tries()] == [1]
    assert len(arrived(case)) == 1


def arrived(case: CreditCase) -> list[dict[str, Any]]:
    came = case.stack.sandbox.arrivals(service="payments", operation="credits", method="POST")
    ours = {call.action_id for call in case.calls()}
    return [one for one in came if one["action_id"] in ours]


def a_look_came_first(case: CreditCase) -> bool:
    """Whether every second permit of a write stands behind a look."""
    kinds = [event.kind for event in case.history() if event.data.get("step") == "apply_credit"]
    permits = [place for place, kind in enumerate(kinds) if kind == "permitted"]
    return all("look_started" in kinds[before:after] for before, after in pairwise(permits))


# --- the web server -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "made"),
    [("C00", dict), ("C01", dict), ("C02", dict), ("C03", dict), ("C03", carefully), ("C04", carefully)],
)
def test_F001_F002_a_server_killed_before_the_intent_is_committed_leaves_nothing(
    stack: Stack, agent: Agent, point: str, made: Callable[..., Any]
) -> None:
    case = CreditCase(stack, agent, changes={"made": made})
    with stack.boundary() as boundary:
        run = case.open(boundary)
        stack.arm(point)
        with pytest.raises(Unavailable):
            agent.credit(run)
        stack.wait_died(point)
        assert case.counted() == (0, 0, 0)
        assert credits(stack, agent) == []
        agent.credit(run)
        assert case.counted() == (1, 1, 1)
        agent.reply(run)
        run.finish("Done.")
    case.holds()


def test_F003_a_server_killed_after_the_intent_counts_as_sent_until_a_look_says_otherwise(case: CreditCase) -> None:
    killed(case, "C05", Unavailable)
    assert case.counted() == (1, 1, 1)
    assert credits(case.stack, case.agent) == []
    case.go_on()
    case.holds()
    assert [one.number for one in case.tries()] == [1, 2]
    assert a_look_came_first(case)


def killed(case: CreditCase, point: str, lost: type[SteadyhandError]) -> None:
    """The server dies at a point of the credit's request; the agent that asked ends with what it does not know."""
    with case.stack.boundary() as boundary:
        run = case.open(boundary)
        case.stack.arm(point)
        with pytest.raises(lost):
            case.agent.credit(run)
        case.stack.wait_died(point)


@pytest.mark.parametrize("point", ["C12", "C13", "C14"])
def test_F009_a_server_killed_before_the_outcome_is_committed_records_no_half_of_it(
    case: CreditCase, point: str
) -> None:
    stack, agent = case.stack, case.agent
    if point == "C14":
        script(stack, agent, {"do": "commit_then_drop"})
    with stack.boundary() as boundary:
        run = case.open(boundary)
        stack.arm(point)
        with pytest.raises(Unrecorded):
            agent.credit(run)
        stack.wait_died(point)
        assert (case.run.state, action_state(stack, case.reference)) == ("waiting_for_tool", "permitted")
        assert len(credits(stack, agent)) == 1
        if point != "C14":
            agent.credit(run)  # hands in the kept report first, and is then answered from the record
            assert case.run.state == "executing"
    case.go_on()
    case.holds()
    assert [one.number for one in case.tries()] == [1]


def test_F010_an_outcome_committed_before_the_server_died_is_told_once(case: CreditCase) -> None:
    killed(case, "C15", Unrecorded)
    case.go_on()
    case.holds()
    assert len([one for one in case.history("succeeded") if one.data.get("step") == "apply_credit"]) == 1
    with case.stack.boundary() as boundary:
        fed = [item for item in feed(boundary) if item.run_id == str(case.run.pk)]
    assert [item.kind for item in fed if item.step == "apply_credit"].count("succeeded") == 1
    assert len(credits(case.stack, case.agent)) == 1


def feed(boundary: Boundary) -> list[Any]:
    """Every event of the client, page by page."""
    items, page = [], boundary.events(limit=500)
    while page.items:
        items += page.items
        page = boundary.events(after=page.next, limit=500)
    return items


def test_F011_a_consumer_killed_before_it_kept_its_place_tells_the_same_events_by_their_ids(
    case: CreditCase, tmp_path: Path
) -> None:
    assert case.worked()
    command = [sys.executable, "-m", "tests.crash.consumer", case.stack.url, str(tmp_path)]
    died = subprocess.run([*command, "C16"], cwd=BASE, env=case.stack.agent_env(), timeout=60, check=False)
    assert died.returncode == -signal.SIGKILL
    subprocess.run(command, cwd=BASE, env=case.stack.agent_env(), timeout=60, check=True)
    acted = {path.name: path.read_text() for path in (tmp_path / "inbox").iterdir()}
    again = (tmp_path / "again").read_text().split()
    ours = {str(event.pk): f"{case.run.pk} {event.kind}" for event in case.history()}
    assert {name: told for name, told in acted.items() if told.startswith(str(case.run.pk))} == ours
    assert set(again) <= set(acted)
    assert again, "nothing was passed on a second time"
    case.holds()


def test_F012_a_server_killed_between_a_task_and_its_page_leaves_one_of_each(stack: Stack, agent: Agent) -> None:
    """The page is a mark in the transaction of the task: a look that cannot settle it makes it once."""
    case = CreditCase(stack, agent, changes={"made": final})
    script(stack, agent, {"do": "commit_then_drop"})
    killed(case, "C17", Unrecorded)
    assert open_tasks(stack, str(case.run.pk)) == []
    assert case.history("task_opened", "paged") == []
    case.go_on()
    case.holds()
    assert [event.kind for event in case.history("task_opened", "paged")] == ["task_opened", "paged"]


def test_F019_a_server_killed_after_the_end_tells_the_same_end_again(case: CreditCase) -> None:
    """Nothing is anchored outside yet: what is shown here is that the end stands, and is one."""
    with case.stack.boundary() as boundary:
        run = case.open(boundary)
        case.agent.credit(run)
        case.agent.reply(run)
        case.stack.arm("C26")
        with pytest.raises(Unavailable):
            run.finish("Done.")
        case.stack.wait_died("C26")
        assert run.finish("Done.").state == "completed"
    case.holds()
    assert len(case.history("completed")) == 1


# --- a person -----------------------------------------------------------------------------------------------


def test_F013_a_server_killed_in_a_click_has_recorded_nothing_and_the_button_works_again(case: CreditCase) -> None:
    stack = case.stack
    lose_the_reply(case)
    page = Page(stack, open_task_of(case))
    before = len(case.history())
    stack.arm("C18")
    with pytest.raises(httpx.HTTPError):
        page.press()
    stack.wait_died("C18")
    assert len(case.history()) == before
    assert page.press().status_code in (302, 303)
    assert [event.kind for event in case.history(VERB_EVENT)] == [VERB_EVENT]
    case.go_on()
    case.holds()


class Page:
    """The sheet of "Check what happened" in the hands of somebody who is signed in."""

    def __init__(self, stack: Stack, task_id: str) -> None:
        door = Client()
        door.force_login(alice(stack), backend="allauth.account.auth_backends.AuthenticationBackend")
        cookies = {name: morsel.value for name, morsel in door.cookies.items()}
        self.client = httpx.Client(base_url=stack.url, cookies=cookies, timeout=20, trust_env=False)
        self.path = f"/tasks/{task_id}/reconcile/"
        html = self.client.get(self.path).raise_for_status().text
        marks = re.findall(r'name="(csrfmiddlewaretoken|evidence_hash|version|key)" value="([^"]*)"', html)
        self.form = {**dict(marks), "reason_code": "confirm_state", "reason": ""}

    def press(self) -> httpx.Response:
        """The very form that was filled in, as often as it is pressed."""
        return self.client.post(self.path, data=self.form, headers={"Origin": str(self.client.base_url).rstrip("/")})


def lose_the_reply(case: CreditCase) -> None:
    script(case.stack, case.agent, {"do": "commit_then_drop"})
    with case.stack.boundary() as boundary, pytest.raises(Suspended):
        case.agent.credit(case.open(boundary))


def open_task_of(case: CreditCase) -> str:
    with wall.within(case.stack.tenant.pk):
        return str(case.run.tasks.get(state="open").pk)


# --- the worker ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["C19", "C20", "C21", "C22", "C25"])
def test_F014_F015_F016_F018_a_worker_killed_during_a_look_leaves_one_verdict(case: CreditCase, point: str) -> None:
    stack = case.stack
    lose_the_reply(case)
    stack.arm(point)
    decision = press_check(stack, str(case.run.pk))
    stack.wait_died(point)
    case.go_on()
    case.holds()
    assert settled(stack, decision)
    assert [event.kind for event in case.history("completed")] == ["completed"]
    with wall.within(stack.tenant.pk):
        looks = Evidence.objects.filter(run=case.run, kind="probe")
        assert {look.verdict for look in looks} <= {"present", "present_final"}
    assert [one.number for one in case.tries()] == [1]


@pytest.mark.parametrize(("point", "tried"), [("C06", 1), ("C07", 2), ("C12", 1), ("C14", 1), ("C24", 1)])
def test_F007_F017_a_worker_killed_around_an_undo_leaves_one_effect_and_one_undo(
    stack: Stack, agent: Agent, point: str, tried: int
) -> None:
    case = CreditCase(stack, agent, changes={"made": taken_back})
    credited = credit_only(case)
    stack.arm(point)
    take_back(case)
    stack.sweep_until(lambda: stack.died(point), f"a death at {point}")
    taken_back_once(case, credited, tried)


def test_F017_a_worker_killed_while_its_undo_is_at_the_provider_undoes_once(stack: Stack, agent: Agent) -> None:
    """C23, from outside: worker and all of its processes at once, as a machine goes down."""
    case = CreditCase(stack, agent, changes={"made": taken_back})
    credited = credit_only(case)
    stack.sandbox.fault(
        "payments", "voids", [{"do": "hang", "seconds": 60, "commit": True}], field={"credit": credited}
    )
    take_back(case)
    stack.sweep_until(lambda: bool(voids(stack, credited)), "the void in the world")
    stack.kill("worker")
    stack.start_worker()
    taken_back_once(case, credited, 1)


def credit_only(case: CreditCase) -> str:
    with case.stack.boundary() as boundary:
        case.agent.credit(case.open(boundary))
    (effect,) = credits(case.stack, case.agent)
    return str(effect["effect_id"])


def take_back(case: CreditCase) -> None:
    with case.stack.boundary() as boundary:
        run: Run = case.open(boundary)
        run.rollback("The customer withdrew.")
    case.stack.later(ROUND_SECONDS)


def voids(stack: Stack, credited: str) -> list[dict[str, Any]]:
    return [one for one in stack.sandbox.effects(operation="voids") if one["fields"]["credit"] == credited]


def taken_back_once(case: CreditCase, credited: str, tried: int) -> None:
    case.go_on(lambda: case.run.ended_at is not None)
    case.holds()
    assert len(voids(case.stack, credited)) == 1
    assert [one.number for one in case.tries("void_credit")] == [*range(1, tried + 1)]
    assert case.run.state in ("failed", "cancelled")
