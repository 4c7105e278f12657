"""People, cancel and undo: the faults of this part of docs/faults.md, in its order."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from runs.models import Effect, Person
from runs.states import RUN_OPEN
from tests.simulation.episode import CREDIT, PLAIN, READ, Setup, Stage
from tests.simulation.fates import GOOD, late, lost, refusal
from tests.simulation.faults.rows import (
    DEAR,
    arrivals,
    asked,
    bounded,
    ends,
    every,
    fault,
    must,
    not_ok,
    run_of,
    tell,
)
from tests.simulation.shop import IN_FLIGHT


@fault("F120", "a right is taken away between the click and the work", lambda stage: None)
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    setup.people = {"every": (2.0, 20.0), "verbs": ("claim", "reconcile")}
    tell(setup, "credit", lost())
    setup.later.append((20.0, _gone("Omar")))


def _gone(name: str) -> Callable[[Stage], None]:
    return lambda stage: must(Person.objects.filter(name=name).update(is_active=False) <= 1, "one person")


@fault("F125", "the amount changes after the approval", lambda stage: must(stage.effects("credit") <= 1, "twice"))
def _(setup: Setup, rng: random.Random) -> None:
    setup.plan, setup.flavour = (READ, DEAR), replace(setup.flavour, threshold=True, approval=1800)
    setup.people = {"every": (5.0, 40.0), "verbs": ("approve",)}
    setup.temper = replace(setup.temper, changes=True)


@fault("F126", "an approval is used by a retry", lambda stage: must(stage.effects("credit") <= 1, "twice"))
def _(setup: Setup, rng: random.Random) -> None:
    setup.plan, setup.flavour = (READ, DEAR), replace(setup.flavour, threshold=True, approval=1800)
    setup.people = {"every": (5.0, 40.0), "verbs": ("approve",)}
    tell(setup, "credit", refusal("limited", asks=1.0))


@fault("F127", "nobody ever approves", every(not_ok, arrivals("credit", 0), asked("approval_expired")))
def _(setup: Setup, rng: random.Random) -> None:
    setup.plan, setup.flavour = (READ, DEAR), replace(setup.flavour, threshold=True, approval=600)
    setup.people = None


@fault("F129", "whoever holds the task leaves", lambda stage: None)
def _(setup: Setup, rng: random.Random) -> None:
    setup.people = {"every": (2.0, 20.0), "verbs": ("claim",)}
    setup.flavour = replace(setup.flavour, looks=False, keyed=False)
    tell(setup, "credit", lost())
    setup.later.append((60.0, _gone("Omar")))


@fault("F134", "cancelled before anything was sent", every(ends("cancelled"), arrivals("credit", 0)))
def _(setup: Setup, rng: random.Random) -> None:
    setup.temper = replace(setup.temper, cancels=1)


@fault("F135", "cancelled while a call is out", every(ends("cancelled"), arrivals("credit", 1), arrivals("ship", 0)))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    setup.temper = replace(setup.temper, cancels_at=2.0)
    tell(setup, "credit", replace(GOOD, replies=rng.choice((6.0, None))))


@fault("F137", "the provider does not know of a cancel", every(ends("cancelled"), arrivals("credit", 1)))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    setup.temper = replace(setup.temper, cancels_at=2.0)
    tell(setup, "credit", late(rng.uniform(8.0, IN_FLIGHT * 0.9)))


def _stops_short(stage: Stage) -> None:
    must(stage.arrivals("void") == 0, "the next undo began although the last had failed")
    asked("compensation_failed")(stage)


@fault("F138", "an undo is refused in the middle of a rollback", every(not_ok, _stops_short))
def _(setup: Setup, rng: random.Random) -> None:
    setup.plan, setup.temper = (*PLAIN, READ), replace(setup.temper, rolls_back=3)
    tell(setup, "recall", refusal("refused"))


@fault(
    "F139",
    "nobody knows whether an undo happened",
    every(not_ok, arrivals("recall", 1), asked("compensation_failed")),
)
def _(setup: Setup, rng: random.Random) -> None:
    setup.plan, setup.temper = (*PLAIN, READ), replace(setup.temper, rolls_back=3)
    setup.flavour = replace(setup.flavour, looks=False, keyed=False, proof="reply")
    tell(setup, "recall", lost())


@fault("F140", "a rollback is asked for while the outcome is not known", arrivals("void", 3))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    setup.temper = replace(setup.temper, rolls_back_at=15.0)
    tell(setup, "credit", late(rng.uniform(12.0, IN_FLIGHT * 0.9)))


@fault("F141", "somebody took the effect back by hand", arrivals("void", 3))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    setup.temper = replace(setup.temper, rolls_back_at=100.0)
    setup.later.append((50.0, _undone_outside))


def _undone_outside(stage: Stage) -> None:
    for line in [one for one in stage.remote.ledger if one.call.tool == "credit" and not one.undone_by][:1]:
        stage.remote.undo_outside(line)


def _rest_is_shown(stage: Stage) -> None:
    rests = [one for one in stage.rows(Effect) if one.residual]
    must([one.residual_minor for one in rests] == [250], "what the provider kept is not recorded")
    must(
        run_of(stage).state in RUN_OPEN and run_of(stage).outcome == "needs_human",
        "nobody signed for it, and it ended",
    )


@fault("F142", "the provider keeps a fee of what it takes back", every(asked("residual_unsigned"), _rest_is_shown))
def _(setup: Setup, rng: random.Random) -> None:
    setup.plan, setup.flavour = (READ, CREDIT, READ), replace(setup.flavour, fee=250)
    setup.temper = replace(setup.temper, rolls_back=2)


@fault("F144", "it lands while it is being given up", lambda stage: None)
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    setup.temper = replace(setup.temper, rolls_back_at=12.0)
    tell(setup, "credit", late(IN_FLIGHT * rng.uniform(1.5, 3.0)))
