"""One write at a provider that fails by chance and keeps a ledger: what stands there is what happened.

The simulator's provider (tests/simulation) plays any fault of any number of calls; this one knows a single write and
is small, because millions of episodes go through it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

CLIENT_TIMEOUT = 10.0
REPLIES_AFTER = 0.5
IN_FLIGHT = 60.0
"""The bound within which a request may land after its caller gave it up, where it is kept."""
LAG = 10.0
"""The bound within which a look sees what landed."""

Answer = Literal["ok", "timeout", "conflict", "error"]
Verdict = Literal["present", "absent", "partial", "conflict"]


class Level(NamedTuple):
    """How often, as shares. timeout: a reply is lost, and half of those requests were carried out; delayed: what
    landed is not seen at once; partial: a part of it lands and the reply is lost; conflict: the object belongs to
    somebody else by now, whose record carries our reference, and nothing is done."""

    name: str
    timeout: float
    delayed: float
    partial: float
    conflict: float


class Faults(NamedTuple):
    """Beside the level's. late: a request without a reply lands late; tail: of those, beyond the bound; redelivered:
    a request that was carried out arrives a second time."""

    name: str
    late: float = 0.0
    tail: float = 0.0
    redelivered: float = 0.0


LEVELS = (
    Level("low", 0.05, 0.05, 0.03, 0.02),
    Level("medium", 0.20, 0.15, 0.10, 0.05),
    Level("high", 0.35, 0.25, 0.15, 0.10),
)
FAULTS = (
    Faults("paper"),
    Faults("late, bounded", late=0.5),
    Faults("late, heavy tail", late=0.5, tail=0.3),
    Faults("redelivery 20 %", redelivered=0.2),
)
CALM = Level("none", 0.0, 0.0, 0.0, 0.0)
NO_FAULTS = Faults("none")


class Effect(NamedTuple):
    """A line of the ledger: of which request, whole or a part, and whether the network brought it a second time."""

    at: float
    visible_at: float
    request: int
    whole: bool
    again: bool


@dataclass
class Remote:
    """`keyed`: every request carries the same key, and the provider makes one of all that arrive under it."""

    rng: random.Random
    level: Level
    faults: Faults
    keyed: bool
    ledger: list[Effect] = field(default_factory=list)
    coming: list[Effect] = field(default_factory=list)
    requests: int = 0
    looks: int = 0

    def __post_init__(self) -> None:
        self.taken = self.rng.random() < self.level.conflict

    def send(self, now: float) -> tuple[Answer, float]:
        """One request; what the caller gets, and when."""
        self._land(now)
        self.requests += 1
        if self.taken:
            return "conflict", now + REPLIES_AFTER
        if self.keyed and any(not one.whole for one in self.ledger):
            return "error", now + REPLIES_AFTER  # the key's first answer again
        if self._happens(self.level.partial):
            self._put(now, whole=False)
            return "timeout", now + CLIENT_TIMEOUT
        if self._happens(self.level.timeout):
            if self._happens(0.5):
                self._put(now + self._delay(), whole=True)
            return "timeout", now + CLIENT_TIMEOUT
        self._put(now, whole=True)
        return "ok", now + REPLIES_AFTER

    def look(self, now: float) -> tuple[Verdict, int]:
        """What is listed under our reference, its fields compared, and how many whole ones there are."""
        self._land(now)
        self.looks += 1
        seen = [one for one in self.ledger if one.visible_at <= now]
        whole = sum(one.whole for one in seen)
        if self.taken or len(seen) > 1:
            return "conflict", max(1, whole)
        if not seen:
            return "absent", 0
        return ("present", 1) if whole else ("partial", 1)

    def settle(self) -> list[Effect]:
        """The ledger once everything has landed that was ever sent."""
        self._land(float("inf"))
        return self.ledger

    def _happens(self, share: float) -> bool:
        return self.rng.random() < share

    def _delay(self) -> float:
        """How much later than its sending a request without a reply lands."""
        if not self._happens(self.faults.late):
            return 0.0
        if self._happens(self.faults.tail):
            return CLIENT_TIMEOUT + IN_FLIGHT * self.rng.uniform(1.2, 6.0)
        return CLIENT_TIMEOUT + IN_FLIGHT * self.rng.uniform(0.02, 0.98)

    def _put(self, at: float, *, whole: bool) -> None:
        lag = self.rng.uniform(0.0, 0.95 * LAG) if self._happens(self.level.delayed) else 0.0
        self.coming.append(Effect(at, at + lag, self.requests, whole, again=False))
        if whole and self._happens(self.faults.redelivered):
            again = at + IN_FLIGHT * self.rng.uniform(0.0, 0.9)
            self.coming.append(Effect(again, again, self.requests, whole, again=True))

    def _land(self, now: float) -> None:
        if not self.coming:
            return
        for one in sorted(one for one in self.coming if one.at <= now):
            if not (self.keyed and self.ledger):
                self.ledger.append(one)
        self.coming = [one for one in self.coming if one.at > now]
