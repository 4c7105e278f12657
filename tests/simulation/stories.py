"""From a seed to an episode: who takes part, what the provider promises, what the weather is, what goes wrong."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.simulation.agents import Plan, Temper
from tests.simulation.episode import CREDIT, PLAIN, READ, SHIP, Setup
from tests.simulation.fates import CALM, GOOD, Weather, lost
from tests.simulation.faults import FAULTS
from tests.simulation.shop import Flavour
from tests.simulation.world import Crash

FLAVOURS = (
    Flavour(),
    Flavour(keyed=True),
    Flavour(bounded=False),
    Flavour(keyed=True, retention=900.0),
    Flavour(proof="look"),
    Flavour(keyed=True, proof="look_final"),
    Flavour(keyed=True, looks=False),
    Flavour(looks=False),
    Flavour(max_attempts=2, max_looks=3),
    Flavour(keyed=True, threshold=True),
)
EXPORT = (("export", {"report": "r1"}),)
NOTIFY = (("notify", {"to": "customer"}),)
PLANS: tuple[Plan, ...] = (
    PLAIN,
    (READ, CREDIT),
    (READ, SHIP, CREDIT),
    (READ, (*CREDIT, *SHIP)),
    (READ, EXPORT, CREDIT),
    (READ, NOTIFY, SHIP),
)
ROUGH = Weather(
    timeout=0.15, late=0.5, lagging=0.15, partial=0.03, redelivered=0.03, limited=0.1, refused=0.03, error=0.08
)
TEMPERS = (
    Temper(),
    Temper(),
    Temper(dies=0.15),
    Temper(pauses=0.2),
    Temper(pauses_before=0.2),
    Temper(changes=True),
    Temper(loops=2),
    Temper(hurries=True),
    Temper(liar=True),
    Temper(leaves=True),
    Temper(cancels=2),
    Temper(rolls_back=2),
    Temper(cancels_at=0.3),
    Temper(rolls_back_at=20.0),
)


def story(seed: int, crash: Crash | None = None, faults: tuple[str, ...] = ()) -> Setup:
    """The episode of a seed; a crash or named faults make it one in which they can happen."""
    rng = random.Random(f"story {seed}")
    setup = Setup(
        seed,
        crash,
        flavour=rng.choice(FLAVOURS),
        plan=rng.choice(PLANS),
        weather=rng.choice((CALM, ROUGH, ROUGH)),
        temper=rng.choice(TEMPERS),
        people={} if rng.random() < 0.5 else None,
        looks_fail=rng.choice((0.0, 0.0, 0.2)),
        server={"loses": rng.choice((0.0, 0.0, 0.03))},
    )
    if rng.random() < 0.15:
        setup.tempers = (rng.choice(TEMPERS),)
    if crash is not None:
        _reach(setup, crash, rng)
    for fault in faults:
        FAULTS[fault].apply(setup, rng)
    setup.faults = faults
    return setup


def _reach(setup: Setup, crash: Crash, rng: random.Random) -> None:
    """Lead the episode to the point at which somebody is to die."""
    if crash.point in _LOOKED:
        setup.flavour = rng.choice([one for one in FLAVOURS if one.looks])
        setup.plan = rng.choice((PLAIN, (READ, CREDIT)))
        setup.told = {"credit": [lost(GOOD if rng.random() < 0.7 else replace(GOOD, commits=None))]}
        setup.temper = rng.choice(TEMPERS[:6])
    if crash.point == "C18":
        setup.people = {"every": (5.0, 60.0)}
        setup.flavour = rng.choice((Flavour(looks=False), Flavour(bounded=False, max_looks=2)))
    if crash.point in ("C23", "C24"):
        setup.plan, setup.weather = (READ, CREDIT, SHIP, READ), rng.choice((CALM, CALM, replace(ROUGH, refused=0.0)))
        setup.flavour = rng.choice(FLAVOURS[:7])
        setup.temper = Temper(rolls_back=3)
    if crash.point in _ON_THE_WAY:
        setup.plan = rng.choice((PLAIN, (READ, CREDIT)))
        setup.temper = rng.choice((Temper(), Temper(rolls_back=2), Temper(cancels=2)))


_LOOKED = ("C16", "C17", "C18", "C19", "C20", "C21", "C22", "C25")
_ON_THE_WAY = ("C06", "C07", "C08", "C09", "C10", "C11", "C12", "C13")
