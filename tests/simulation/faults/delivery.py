"""Delivery, leases, clocks: the faults of this part of docs/faults.md, in its order."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.simulation.episode import Setup
from tests.simulation.fates import GOOD, lost
from tests.simulation.faults.rows import arrivals, bounded, every, fault, must, once, tell


@fault("F052", "every message comes twice", every(once("ship"), arrivals("ship", 1)))
def _(setup: Setup, rng: random.Random) -> None:
    setup.broker = {"loses": 0.0, "doubles": 1.0, "delays": 0.0}


@fault("F053", "every message comes hours late", every(once("ship"), arrivals("ship", 1)))
def _(setup: Setup, rng: random.Random) -> None:
    setup.broker = {"loses": 0.0, "doubles": 0.3, "delays": 1.0}


@fault("F054", "messages overtake each other", once("ship"))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    setup.broker = {"loses": 0.1, "doubles": 0.5, "delays": 0.5}
    tell(setup, "ship", lost())


@fault("F056", "a message is given to a second worker while the first is at it", arrivals("ship", 1, 1))
def _(setup: Setup, rng: random.Random) -> None:
    setup.broker = {"loses": 0.0, "doubles": 1.0, "delays": 0.0}
    tell(setup, "ship", replace(GOOD, replies=5.0))


@fault(
    "F058",
    "the agent stands still and reports after its lease",
    lambda stage: must(stage.effects("credit") <= 1, "twice"),
)
def _(setup: Setup, rng: random.Random) -> None:
    setup.temper = replace(setup.temper, pauses=1.0)


@fault("F059", "the agent stands still before it sends", lambda stage: must(stage.effects("credit") <= 1, "twice"))
def _(setup: Setup, rng: random.Random) -> None:
    setup.temper = replace(setup.temper, pauses_before=1.0)


@fault("F060", "the agent's lease is lost while it waits for its machine", arrivals("credit", 3))
def _(setup: Setup, rng: random.Random) -> None:
    setup.temper = replace(setup.temper, pauses_before=0.7, pauses=0.3)


@fault("F069", "a worker's own clock is a day off", once("ship"))
def _(setup: Setup, rng: random.Random) -> None:
    setup.skew = rng.choice((-86_400.0, 86_400.0, 3_600.0))


@fault("F071", "nobody sweeps and nobody listens for a long time", lambda stage: None)
def _(setup: Setup, rng: random.Random) -> None:
    setup.sweeps_off = (1.0, 5000.0)
    setup.broker = {"gone": (1.0, 4000.0)}
