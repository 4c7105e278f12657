"""The twenty-seven points at which a process may die, each tied to its place in the real code or in the world around.

`before` dies as the step is about to be made, `after` once it is made; `exception` lets the step fail and its process
go on. Points that the code names itself (recovery/crashpoints.py) are used as they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from recovery import crashpoints, escalation, intake, permits, refusals, reports, undos
from recovery.work import decisions, sending, worker
from runs import states
from runs.models import Run
from runs.states import RUN_OPEN
from tests.simulation.patches import Patches
from tests.simulation.world import World

POINTS = tuple(f"C{number:02}" for number in range(27))
MODES = ("exception", "before", "after")

# What the code's own points mean here: the step before them is made, the one after them is not.
_OWN = {
    "C00": [("C00", "after")],
    "C02": [("C02", "before")],
    "C04": [("C04", "before")],
    "C05": [("C04", "after"), ("C05", "before")],
    "C12": [],
    "C14": [("C14", "before")],
    "C15": [("C14", "after"), ("C15", "before")],
    "C19": [("C19", "before")],
    "C20": [("C20", "before")],
    "C21": [("C21", "after")],
    "C22": [("C22", "before")],
    "C25": [("C22", "after"), ("C25", "before")],
}


def tie(patches: Patches, world: Callable[[], World]) -> None:
    """Put the points into the code."""

    def own(name: str) -> None:
        for point, side in _OWN.get(name, []):
            world().point(point, side)

    patches.attribute(crashpoints, "point", own)
    around = _around(patches, world)
    around(intake, "prepare", "C01")
    around(refusals, "count_call", "C03")
    around(sending, "permit", "C06")
    around(reports, "read_as", "C13")
    around(escalation, "open_task", "C17")
    around(decisions, "_write", "C18")
    around(undos, "close", "C24")
    _entering(patches, world, permits, "under_lock", ("C02", "after"))
    _entering(patches, world, worker, "_take", ("C19", "after"))
    _ending(patches, world)


def _around(patches: Patches, world: Callable[[], World]) -> Callable[[Any, str, str], None]:
    def around(module: Any, name: str, point: str) -> None:
        step = getattr(module, name)

        @wraps(step)
        def stepped(*args: Any, **named: Any) -> Any:
            world().point(point)
            made = step(*args, **named)
            world().point(point, "after")
            return made

        patches.attribute(module, name, stepped)

    return around


def _entering(patches: Patches, world: Callable[[], World], module: Any, name: str, at: tuple[str, str]) -> None:
    step = getattr(module, name)

    @wraps(step)
    def stepped(*args: Any, **named: Any) -> Any:
        world().point(*at)
        return step(*args, **named)

    patches.attribute(module, name, stepped)


def _ending(patches: Patches, world: Callable[[], World]) -> None:
    """C26: a run is closed; `after` is the moment after its commit."""
    advance = states.advance_run

    def ended(run: Run, to: str, **changes: Any) -> None:
        advance(run, to, **changes)
        if to not in RUN_OPEN:
            world().point("C26")
            world().memory.on_commit(lambda: world().point("C26", "after"))

    patches.attribute(states, "advance_run", ended)
