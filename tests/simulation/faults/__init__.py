"""The faults of docs/faults.md that a simulation can play: what each does to an episode, and what must come of it.

`apply` bends a set-up; two faults may be applied to the same one, and then only the invariants are held against it.
`expects` is what must have happened where the fault comes alone, into an otherwise calm episode.
"""

from __future__ import annotations

import random
from importlib import import_module

from tests.simulation.agents import Temper
from tests.simulation.episode import PLAIN, Setup
from tests.simulation.faults.rows import DEAR, EXPORT, FAULTS, NOTIFY
from tests.simulation.shop import Flavour

__all__ = ["DEAR", "EXPORT", "FAULTS", "NOTIFY", "SIMULATED", "WAITING", "calm"]

PARTS = ("crash", "network", "delivery", "callbacks", "models", "budgets", "people", "history")
for part in PARTS:  # their order is the order of the faults, and with it the seed of every pair
    import_module(f"tests.simulation.faults.{part}")

_NUMBERS = (
    "3 15 16 18 19 20 22 25 26 27 28 29 31 33 34 35 36 37 38 41 42 43 45 46 47 48 49 50 51 52 53 54 "
    "56 58 59 60 69 71 72 73 79 81 82 84 85 86 88 90 91 92 93 94 98 99 100 101 103 104 105 108 109 "
    "112 113 114 115 120 125 126 127 129 134 135 137 138 139 140 141 142 144 145 146 147 148 157 158 "
    "160"
)
SIMULATED = frozenset(f"F{int(number):03}" for number in _NUMBERS.split())
"""The faults of docs/faults.md whose proof is an episode: what one process and a virtual clock can show."""
WAITING = dict.fromkeys(("F145", "F146", "F147", "F148"), "alerts are sent to nobody yet: only tasks are marked")
"""Those of them that no episode can play yet, and why."""


def calm(name: str, seed: int) -> Setup:
    """An episode in which nothing goes wrong but this fault."""
    rng = random.Random(f"{name} {seed}")
    flavour = rng.choice(
        (Flavour(), Flavour(keyed=True), Flavour(proof="look"), Flavour(keyed=True, retention=900.0))
    )
    setup = Setup(
        seed, flavour=flavour, plan=PLAIN, temper=Temper(), broker={"loses": 0.0, "doubles": 0.0, "delays": 0.0}
    )
    FAULTS[name].apply(setup, rng)
    setup.faults, setup.calm = (name,), True
    return setup
