"""Episodes of one cell, scored from the provider's ledger once everything has landed that was ever sent."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from benchmarks.evaluation import ours, ways
from benchmarks.evaluation.remote import CALM, FAULTS, LEVELS, NO_FAULTS, Effect, Faults, Level, Remote
from benchmarks.evaluation.ways import Told, Way

Z = 1.959964
KEYED = ("key only", "ours keyed")
WAYS = ("blind retry", "key only", "verify only", "verify-before-retry", "ours unkeyed", "ours keyed")
WRONG_BOUND = "ours unkeyed, bound too short"
"""A contract that promises a bound which the provider does not keep: what a wrong promise costs."""
NOTHING = "do nothing"


class Cell(NamedTuple):
    """One way of retrying under one kind of weather."""

    way: str
    level: Level
    faults: Faults

    @property
    def name(self) -> str:
        return f"{self.way} / {self.level.name} / {self.faults.name}"


class Score(NamedTuple):
    """Counts over episodes. duplicates: more than one effect; caused: of more than one of our requests; unseen: and
    no person was told. goal: done, said so, and exactly one whole effect; human: left to a person; false_ok: said to
    be done, without exactly one whole effect; false_failed: said to be not done, with an effect; calls: sends and
    looks, and squares of that."""

    episodes: int = 0
    duplicates: int = 0
    caused: int = 0
    unseen: int = 0
    goal: int = 0
    human: int = 0
    false_ok: int = 0
    false_failed: int = 0
    calls: int = 0
    calls_squared: int = 0

    def plus(self, other: Iterable[int]) -> Score:
        return Score(*(mine + more for mine, more in zip(self, other, strict=True)))


class Share(NamedTuple):
    """A share or a mean with its 95 % interval."""

    value: float
    low: float
    high: float


def cells() -> list[Cell]:
    """The whole table with its controls."""
    table = [Cell(way, level, faults) for level in LEVELS for faults in FAULTS for way in WAYS]
    broken = [Cell(WRONG_BOUND, level, faults) for level in LEVELS for faults in FAULTS if faults.tail]
    calm = [Cell(way, CALM, NO_FAULTS) for way in WAYS]
    return [*calm, *table, *broken, Cell(NOTHING, LEVELS[-1], FAULTS[0])]


def episodes(cell: Cell, count: int, seed: str) -> Score:
    """`count` episodes of one cell; the same seed gives the same score.

    What the provider does is drawn apart from the caller's own chance, and alike for every way: the n-th request of
    an episode meets the same fate whoever sends it.
    """
    weather, fates = random.Random(f"{seed}/{cell.level.name}/{cell.faults.name}"), random.Random()
    rng = random.Random(f"{seed}/{cell.name}")
    way, keyed = way_of(cell.way, bounded=cell.faults.tail == 0.0), cell.way in KEYED
    total = [0] * len(Score._fields)
    for _ in range(count):
        fates.seed(weather.getrandbits(64))
        remote = Remote(fates, cell.level, cell.faults, keyed)
        told = way(remote, rng)
        for index, one in enumerate(scored(told, remote.settle(), remote.requests + remote.looks)):
            total[index] += one
    return Score(*total)


@lru_cache(maxsize=32)
def way_of(name: str, *, bounded: bool) -> Way:
    """The way by its name. `bounded`: whether the provider keeps a bound that its contract may promise."""
    plain: dict[str, Way] = {
        "blind retry": ways.blind,
        "key only": ways.blind,
        "verify only": ways.verify_only,
        "verify-before-retry": ways.verify_before_retry,
        NOTHING: ways.do_nothing,
    }
    if name in plain:
        return plain[name]
    return ours.way(ours.contract(keyed=name in KEYED, bounded=bounded or name == WRONG_BOUND))


def scored(told: Told, ledger: list[Effect], calls: int) -> Score:
    """One episode, by what stands in the ledger and what the caller was left with."""
    exactly_one = len(ledger) == 1 and ledger[0].whole
    twice = len(ledger) > 1
    return Score(
        episodes=1,
        duplicates=twice,
        caused=len({one.request for one in ledger}) > 1,
        unseen=twice and told != "human",
        goal=told == "ok" and exactly_one,
        human=told == "human",
        false_ok=told == "ok" and not exactly_one,
        false_failed=told == "failed" and bool(ledger),
        calls=calls,
        calls_squared=calls * calls,
    )


def share(count: int, of: int) -> Share:
    """Wilson's interval."""
    if of == 0:
        return Share(0.0, 0.0, 1.0)
    p, z2 = count / of, Z * Z
    middle = (p + z2 / (2 * of)) / (1 + z2 / of)
    half = Z / (1 + z2 / of) * math.sqrt(p * (1 - p) / of + z2 / (4 * of * of))
    return Share(p, max(0.0, middle - half) if count else 0.0, min(1.0, middle + half) if count < of else 1.0)


def mean_calls(score: Score) -> Share:
    """Remote calls a run, with the interval of a mean."""
    mean = score.calls / score.episodes
    variance = max(0.0, score.calls_squared / score.episodes - mean * mean)
    half = Z * math.sqrt(variance / score.episodes)
    return Share(mean, mean - half, mean + half)
