"""A virtual clock, processes that wait, and one record: the stage on which everything in an episode happens.

A process is a greenlet, so that the real code can be stopped in the middle of a request and go on later, or never.
Whose turn it is follows from the seed alone; the same seed plays the same episode again, event by event.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from greenlet import getcurrent, greenlet

from tests.simulation.tables import Memory

EPOCH = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
MOST_EVENTS = 4000


class Killed(BaseException):
    """SIGKILL: nothing of the process runs any more."""


class Fault(Exception):
    """Something went wrong in a process that goes on."""


class Broken(AssertionError):
    """An invariant does not hold. `name` is its id, such as I1."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        self.name = name


@dataclass(frozen=True)
class Crash:
    """Where a process dies: at which point, on which side of it, and at the how-manieth time."""

    point: str
    mode: str = "before"
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.point}:{self.mode}:{self.nth}" if self.nth != 1 else f"{self.point}:{self.mode}"


@dataclass
class World:
    """The stage of one episode."""

    seed: int
    crash: Crash | None = None
    tracing: bool = False
    now: float = 0.0
    horizon: float = 6 * 3600.0
    events: int = 0
    crashed: bool = False
    doomed: bool = False
    trace: list[str] = field(default_factory=list)
    after_event: Callable[[], None] = lambda: None
    timer: Callable[[], float | None] = lambda: None
    tick: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.memory = Memory(self.clock)
        self._agenda: list[tuple[float, int, greenlet]] = []
        self._order = count()
        self._hub = getcurrent()
        self._met: dict[tuple[str, str], int] = {}

    def clock(self) -> datetime:
        """The only clock there is, as the database tells it."""
        return EPOCH + timedelta(seconds=self.now)

    def seconds(self, at: datetime) -> float:
        return (at - EPOCH).total_seconds()

    # --- processes --------------------------------------------------------------------------------------------

    def spawn(self, name: str, play: Callable[[], Any], *, after: float = 0.0) -> None:
        """A process that begins after so many seconds; killed, it is simply gone."""

        def run() -> None:
            try:
                play()
            except Killed:
                self.note(f"{name} is dead")

        self._push(after, greenlet(run, self._hub))

    def sleep(self, seconds: float) -> None:
        """Wait; whoever is due meanwhile has its turn. Nobody may wait inside a transaction (I3)."""
        if self.memory.in_atomic_block:
            raise Broken("I3", "a process waits for the outside inside a transaction")
        self._push(seconds, getcurrent())
        self._hub.switch()

    def _push(self, seconds: float, process: greenlet) -> None:
        heapq.heappush(self._agenda, (self.now + max(0.0, seconds), next(self._order), process))

    def run(self) -> None:
        """Play until nothing is left to happen."""
        while True:
            due = self.timer()
            first = self._agenda[0][0] if self._agenda else None
            when = min((at for at in (due, first) if at is not None), default=None)
            if when is None or when > self.horizon:
                return
            self.now = max(self.now, when)
            if first is not None and first <= when:
                self._resume()
            else:
                self.tick()
            self.events += 1
            if self.events > MOST_EVENTS:
                raise Broken("I16", f"no end after {MOST_EVENTS} events")
            self.after_event()

    def _resume(self) -> None:
        _, _, process = heapq.heappop(self._agenda)
        process.switch()

    # --- dying ------------------------------------------------------------------------------------------------

    def point(self, name: str, side: str = "before") -> None:
        """A place where the episode's crash may happen; `side` tells whether its step is about to be made or is."""
        if self.crash is None or self.crashed or self.crash.point != name:
            return
        wanted = "before" if self.crash.mode == "exception" else self.crash.mode
        if wanted != side:
            return
        self._met[name, side] = self._met.get((name, side), 0) + 1
        if self._met[name, side] < self.crash.nth:
            return
        self.crashed = True
        self.note(f"{self.crash} happens")
        if self.crash.mode == "exception":
            raise Fault(f"planted at {name}")
        raise Killed(name)

    def waits_for(self, name: str) -> bool:
        return self.crash is not None and not self.crashed and self.crash.point == name

    def note(self, what: str) -> None:
        if self.tracing:
            self.trace.append(f"{self.now:9.2f}  {what}")
