"""Many episodes on every core: cells of seeds that play by themselves and come back as plain values."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from tests.simulation.crashes import MODES, POINTS
from tests.simulation.episode import Setup, play, replay_line, theatre
from tests.simulation.stories import story
from tests.simulation.world import Crash

WORKERS = min(4, os.cpu_count() or 1)
SHOWN = 5


@dataclass(frozen=True)
class Cell:
    """Episodes of one kind: from a seed on, so many of them."""

    name: str
    first: int
    count: int
    crash: Crash | None = None
    faults: tuple[str, ...] = ()


@dataclass
class Played:
    """What came of a cell: how often its crash happened, and the episodes that broke something."""

    name: str
    episodes: int = 0
    crashed: int = 0
    broken: list[str] = field(default_factory=list)


def play_cell(cell: Cell) -> Played:
    """Every episode of a cell. What breaks is told as a sentence and the command that plays it again."""
    played = Played(cell.name)
    with theatre():
        for seed in range(cell.first, cell.first + cell.count):
            setup = story(seed, cell.crash, cell.faults)
            played.episodes += 1
            wrong = failure(setup)
            if wrong is None:
                played.crashed += 1
            elif wrong:
                played.broken.append(wrong)
    return played


def failure(setup: Setup) -> str | None:
    """Empty for an episode in which all held; None if, beside that, its crash happened; else what broke."""
    try:
        stage = play(setup)
    except Exception as wrong:
        where = traceback.extract_tb(wrong.__traceback__)[-1]
        return f"{type(wrong).__name__}: {wrong} ({where.name})\n    {replay_line(setup)}"
    return None if stage.world.crashed else ""


def matrix(seeds: int, *, first: int = 0) -> list[Cell]:
    """Every point at which a process may die, in each of the three ways."""
    return [
        Cell(f"{point}-{mode}", first, seeds, Crash(point, mode, 1)) for point in POINTS for mode in MODES
    ]  # fmt: skip


def together(cells: Iterable[Cell], play_one: Callable[[Cell], Played] = play_cell) -> Iterator[Played]:
    """The cells on every core, as they are done. Nothing is shared: each process has a stage of its own."""
    with multiprocessing.get_context("fork").Pool(WORKERS, maxtasksperchild=None) as pool:
        yield from pool.imap_unordered(play_one, list(cells))


def told(broken: list[str]) -> str:
    """What to show of what broke."""
    more = f"\n… and {len(broken) - SHOWN} more" if len(broken) > SHOWN else ""
    return "\n".join(broken[:SHOWN]) + more
