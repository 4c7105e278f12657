"""Eight processes at once, each with its own connection and runs: what is left when the processors are full."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from typing import Any

from django.db import connections

from benchmarks import calls, shapes
from benchmarks.scenery import Scenery

PROCESSES = 8
CALLS_PER_RUN = 60


def bare(dsn: str, seconds: float) -> float:
    """Calls a second of the bare two commits."""

    def prepare() -> Callable[[], None]:
        session = shapes.connect(dsn)
        return lambda: shapes.two(session)

    return _together(prepare, seconds)


def core(scenery: Scenery, seconds: float) -> float:
    """Guarded calls a second through the core."""

    def prepare() -> Callable[[], None]:
        return Agent(scenery).call

    return _together(prepare, seconds)


class Agent:
    """Opens a run, makes its calls, opens the next."""

    def __init__(self, scenery: Scenery) -> None:
        self.scenery = scenery
        self.run, self.left = scenery.open_run(), CALLS_PER_RUN

    def call(self) -> None:
        if not self.left:
            self.run, self.left = self.scenery.open_run(), CALLS_PER_RUN
        self.left -= 1
        calls.core(self.scenery, self.run)


def _together(prepare: Callable[[], Callable[[], None]], seconds: float) -> float:
    connections.close_all()  # a child must not inherit its parent's socket
    fork = multiprocessing.get_context("fork")
    barrier, counts = fork.Barrier(PROCESSES), fork.SimpleQueue()
    workers = [fork.Process(target=_work, args=(prepare, seconds, barrier, counts)) for _ in range(PROCESSES)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise RuntimeError("a process of the crowd broke down; its own lines say why")
    return sum(int(counts.get()) for _ in workers) / seconds


def _work(prepare: Callable[[], Callable[[], None]], seconds: float, barrier: Any, counts: Any) -> None:
    act = prepare()
    for _ in range(20):
        act()
    barrier.wait(timeout=60)
    end, count = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        act()
        count += 1
    counts.put(count)
