"""Crash and restart: the faults of this part of docs/faults.md, in its order."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.simulation.episode import Setup
from tests.simulation.fates import lost
from tests.simulation.faults.rows import asked, bounded, ends, every, fault, not_ok, once, reason, tell
from tests.simulation.world import Crash


@fault("F003", "no message ever reaches a worker at once", once("ship"))
def _(setup: Setup, rng: random.Random) -> None:
    setup.broker = {"loses": 0.7, "doubles": 0.0, "delays": 0.0}


@fault("F015", "a worker dies around a look", once("credit"))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    tell(setup, "credit", lost())
    setup.crash = Crash(rng.choice(("C20", "C21")), rng.choice(("before", "after")))


@fault("F016", "a worker dies with a verdict in its hands", once("credit"))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    tell(setup, "credit", lost())
    setup.crash = Crash("C22", rng.choice(("before", "after")))


@fault("F018", "a worker dies after an undo was recorded", ends("failed", "cancelled"))
def _(setup: Setup, rng: random.Random) -> None:
    setup.temper, setup.crash = replace(setup.temper, rolls_back=2), Crash("C24", rng.choice(("before", "after")))


@fault("F019", "a process dies as its run ends", ends("completed"))
def _(setup: Setup, rng: random.Random) -> None:
    setup.crash = Crash("C26", rng.choice(("before", "after")))


@fault("F020", "every worker dies, again and again", asked("external_outcome_unknown"))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    setup.workers_die = 1.0
    setup.flavour = replace(setup.flavour, keyed=False)
    tell(setup, "credit", lost())


@fault("F022", "the agent comes back with another version", every(not_ok, reason("definition_changed")))
def _(setup: Setup, rng: random.Random) -> None:
    setup.temper = replace(setup.temper, other_version=True)
