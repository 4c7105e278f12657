"""Trials, faults and waiting work on many connections at once: the fleet keeps to one circuit (F108, F110, I19)."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.db import connection, connections
from steadyhand import observe

from runs import wall
from runs.models import Circuit, Event
from tests.factories import RESULTS, Agent, Case, billing_manifest, open_run, propose, register, reply, report
from tests.races.together import answers, at_once

pytestmark = pytest.mark.races
Later = Callable[[float], None]
DOWN = observe.from_exception(ConnectionRefusedError("nobody listens"), left=False)
KEY = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"}


def registered(agent: Agent, **circuit: Any) -> Agent:
    made = billing_manifest(idempotency=KEY, budgets={"max_elapsed_seconds": 86400})
    made["connectors"]["payments"]["circuit"] = {"min_calls": 3, **circuit}
    register(agent, made)
    return agent


def fail(case: Case) -> Any:
    return report(case, propose(case), DOWN, tool="apply_credit")


def opened(agent: Agent) -> None:
    for _ in range(3):
        case = open_run(agent)
        fail(case)
        with wall.within(agent.tenant.pk):
            case.run.actions.update(due_at=None)


def circuit(agent: Agent) -> Circuit:
    with wall.within(agent.tenant.pk):
        return Circuit.objects.get()


def times_opened(agent: Agent) -> int:
    with wall.within(agent.tenant.pk):
        return Event.objects.filter(kind="circuit_opened").count()


def test_F110_of_many_who_ask_at_once_one_gets_the_trial(agent: Agent, later: Later) -> None:
    registered(agent)
    opened(agent)
    later(16)
    cases = [open_run(agent) for _ in range(8)]
    given = at_once(*[partial(propose, case) for case in cases])
    assert answers(given) == ["execute"] + ["wait"] * 7
    assert circuit(agent).state == "half_open"


def test_F110_two_slots_are_two_trials_and_three_needed_are_no_more(agent: Agent, later: Later) -> None:
    registered(agent, slots=2, successes=3)
    opened(agent)
    later(16)
    cases = [open_run(agent) for _ in range(6)]
    given = at_once(*[partial(propose, case) for case in cases])
    assert answers(given).count("execute") == 2


def test_faults_at_the_same_moment_open_it_once(agent: Agent) -> None:
    registered(agent, min_calls=6)
    cases = [open_run(agent) for _ in range(6)]
    given = at_once(*[partial(fail, case) for case in cases])
    assert [one for one in given if isinstance(one, Exception)] == []
    assert (circuit(agent).state, len(circuit(agent).faults), times_opened(agent)) == ("open", 6, 1)


def test_two_trials_that_end_at_the_same_moment_one_well_one_not_leave_it_open(agent: Agent, later: Later) -> None:
    registered(agent, slots=2, successes=2)
    opened(agent)
    later(16)
    well, ill = open_run(agent), open_run(agent)
    permits = [propose(well), propose(ill)]
    given = at_once(
        lambda: report(well, permits[0], reply(RESULTS["apply_credit"]), tool="apply_credit"),
        lambda: report(ill, permits[1], DOWN, tool="apply_credit"),
    )
    assert [one for one in given if isinstance(one, Exception)] == []
    assert (circuit(agent).state, times_opened(agent)) == ("open", 2)


# --- the herd -----------------------------------------------------------------------------------------------


class Dependency:
    """What is called: down until it is said to be well; how many arrived by the second, and how many at a time."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.is_well = False
        self.most_at_once = self.trials = 0
        self.by_second: Counter[int] = Counter()
        self._clock, self._inside, self._lock = clock, 0, threading.Lock()

    def call(self, half_open: bool) -> Any:
        with self._lock:
            self._inside += 1
            self.trials += half_open
            if half_open:
                self.most_at_once = max(self.most_at_once, self._inside)
            self.by_second[self._clock()] += 1
        time.sleep(0.002 if half_open else 0)
        with self._lock:
            self._inside -= 1
        return reply(RESULTS["apply_credit"]) if self.is_well else DOWN


def database_second() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM app_now())::bigint")
        return int(cursor.fetchone()[0])


def ask(case: Case, there: Dependency) -> str:
    """One worker's visit: ask for the call, make it if it may leave, and say what came back."""
    permit = propose(case)
    if permit.answer == "execute":
        half_open = circuit(case.agent).state == "half_open"
        report(case, permit, there.call(half_open), tool="apply_credit")
    return permit.answer


def visit(cases: list[Case], there: Dependency, workers: int) -> list[str]:
    """Every waiting run asks once, spread over so many connections."""

    def share(number: int) -> list[str]:
        try:
            return [ask(case, there) for case in cases[number::workers]]
        finally:
            connections.close_all()

    with ThreadPoolExecutor(workers) as pool:
        return [answer for part in pool.map(share, range(workers)) for answer in part]


def due(cases: list[Case]) -> list[Case]:
    """Those whose time to ask has come."""
    with wall.within(cases[0].tenant.pk), connection.cursor() as cursor:
        cursor.execute("SELECT run_id FROM runs_action WHERE due_at <= app_now() AND settled_at IS NULL")
        ready = {row[0] for row in cursor.fetchall()}
    return [case for case in cases if case.run_id in ready]


def unsettled(cases: list[Case]) -> int:
    with wall.within(cases[0].tenant.pk), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM runs_action WHERE settled_at IS NULL AND run_id = ANY(%s)",
            [[case.run_id for case in cases]],
        )
        return int(cursor.fetchone()[0])


def herd(agent: Agent, later: Later, *, runs: int, workers: int, rate: int) -> None:
    # Long pauses: however slow this machine is, none of them ends by itself.
    registered(agent, retries_per_second=rate, cooldown_seconds=900, max_cooldown_seconds=7200)
    there = Dependency(database_second)
    opened(agent)
    cases = [open_run(agent) for _ in range(runs)]
    assert set(visit(cases, there, workers)) == {"wait"}
    assert there.by_second == Counter(), "nothing arrives while it is open"
    later(961)
    visit(due(cases), there, workers)
    assert (circuit(agent).state, there.trials) == ("open", 1), "one trial met the same trouble"
    there.is_well = True
    later(1861)
    waited = 0
    while unsettled(cases):
        visit(due(cases), there, workers)
        later(1)
        waited += 1
        assert waited < 40 * runs / rate + 200, "the work goes on"
    assert circuit(agent).state == "closed"
    assert there.trials <= 3
    assert there.most_at_once == 1
    # Permitted late in one second and made early in the next: two shares may arrive together, never more.
    assert max(there.by_second.values()) <= 2 * rate
    assert sum(there.by_second.values()) == runs + 1


def test_F108_F110_a_small_herd(agent: Agent, later: Later) -> None:
    herd(agent, later, runs=60, workers=8, rate=10)


@pytest.mark.long
def test_F108_F110_a_herd_of_a_thousand(agent: Agent, later: Later) -> None:
    herd(agent, later, runs=1000, workers=32, rate=50)
