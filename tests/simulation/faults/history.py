"""What every episode shows: the faults of this part of docs/faults.md, in its order."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.simulation.episode import Setup
from tests.simulation.fates import late, lost, refusal
from tests.simulation.faults.rows import bounded, fault, must, tell


@fault("F157", "standing checks find nothing", lambda stage: None)
def _(setup: Setup, rng: random.Random) -> None:
    tell(setup, "credit", rng.choice((lost(), refusal("refused"), refusal("limited"))))


@fault("F158", "a dead letter is replayed", lambda stage: must(stage.effects("credit") <= 1, "twice"))
def _(setup: Setup, rng: random.Random) -> None:
    setup.flavour = replace(setup.flavour, max_attempts=2)
    setup.people = {"every": (30.0, 200.0), "verbs": ("claim", "replay", "discard"), "forbidden": 0.0}
    tell(setup, "credit", *(refusal("limited", asks=1.0) for _ in range(2)))


@fault("F160", "what happened can be told from the events alone", lambda stage: None)
def _(setup: Setup, rng: random.Random) -> None:
    tell(setup, "credit", rng.choice((lost(), late(20.0), refusal("limited", asks=1.0))))
    bounded(setup)
