"""One of two sweeps over many runs is killed, in a transaction or between two: nothing is lost, nothing is twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
from django.db import connections

from recovery import leases
from recovery.models import Decision
from recovery.work import sweep as sweeping
from recovery.work import together
from recovery.work.sweep import sweep
from runs import wall
from runs.models import Run
from tests.factories import Agent, Case, open_run, propose, register
from tests.recovery.stories import kinds, standing

pytestmark = pytest.mark.races
Later = Callable[[float], None]
RUNS, BATCH = 200, 40


def nobody(decision_id: object) -> None:
    """A ring that nobody hears."""


@contextmanager
def another(owner: Any, name: str, number: int) -> Iterator[None]:
    """A pass in a process of its own that has come so far, and is killed there when the block ends."""
    connections.close_all()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _stops_at(owner, name, number, lambda: os.write(writing, b"."))
        try:
            sweep(ring=nobody)
        finally:
            os._exit(0)
    os.close(writing)
    try:
        assert os.read(reading, 1) == b".", "the other sweep came to its end"
        yield
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _stops_at(owner: Any, name: str, number: int, tell: Callable[[], object]) -> None:
    goes_on, times = getattr(owner, name), count(1)

    def one(*given: Any) -> Any:
        if next(times) == number:
            tell()
            signal.pause()
        return goes_on(*given)

    setattr(owner, name, one)


@pytest.fixture
def cases(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    """Calls whose agents are gone; each is due for its lease, and after it for its look."""
    monkeypatch.setattr(together, "BATCH", BATCH)
    register(agent)
    opened = [open_run(agent) for _ in range(RUNS)]
    for case in opened:
        propose(case)
    return opened


def orders(agent: Agent) -> list[Any]:
    with wall.within(agent.tenant.pk):
        return list(Decision.objects.values_list("run_id", flat=True))


@pytest.mark.parametrize(
    ("owner", "name", "number", "held"),
    [(leases, "expire_of_run", BATCH + 7, BATCH), (together, "_batch", 3, 0)],
    ids=["in a transaction", "between two"],
)
def test_F070_a_sweep_that_is_killed_leaves_each_lease_to_end_once(
    cases: list[Case], later: Later, owner: Any, name: str, number: int, held: int
) -> None:
    later(46)
    with another(owner, name, number):
        sweep(ring=nobody)
        assert sum(ended(case) for case in cases) == RUNS - held, "what the other one has locked is passed by"
    let_go(cases[0].agent)
    sweep(ring=nobody)
    assert {ended(case) for case in cases} == {1}
    assert {standing(case)[0] for case in cases} == {"verifying"}


@pytest.mark.parametrize(
    ("owner", "name", "number", "held"),
    [(sweeping, "act_on_due", BATCH + 7, BATCH), (together, "_batch", 3, 0)],
    ids=["in a transaction", "between two"],
)
def test_F070_a_sweep_that_is_killed_leaves_each_look_to_be_ordered_once(
    agent: Agent, cases: list[Case], later: Later, owner: Any, name: str, number: int, held: int
) -> None:
    later(46)
    sweep(ring=nobody)
    later(600)
    with another(owner, name, number):
        sweep(ring=nobody)
        assert len(orders(agent)) == RUNS - held
    let_go(agent)
    sweep(ring=nobody)
    assert sorted(orders(agent)) == sorted(case.run_id for case in cases)


def let_go(agent: Agent) -> None:
    """Wait until the database has noticed that the other sweep is gone, and gives its locks back."""
    with wall.within(agent.tenant.pk):
        list(Run.objects.select_for_update())


def ended(case: Case) -> int:
    return kinds(case).count("lease_expired")
