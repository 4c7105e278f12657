"""Network and the other side: the faults of this part of docs/faults.md, in its order."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from runs.models import Action, Effect
from tests.simulation.episode import CREDIT, READ, SHIP, Setup, Stage
from tests.simulation.fates import GOOD, late, lost, refusal
from tests.simulation.faults.rows import (
    EXPORT,
    NOTIFY,
    arrivals,
    asked,
    bounded,
    ends,
    every,
    fault,
    must,
    not_ok,
    once,
    tell,
)
from tests.simulation.remote import Call
from tests.simulation.shop import IN_FLIGHT, LAG

SEVEN = (READ, CREDIT, EXPORT, SHIP, NOTIFY, (("find", {"invoice": "INV-2"}),), (("find", {"invoice": "INV-3"}),))
PAYEES = ("anna", "ben", "cleo", "dan", "eva")
PAYOUTS = (("pay", {"items": [{"payee": name, "amount": 5} for name in PAYEES]}),)


@fault("F025", "it lands late, within the bound", once("credit"))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    tell(setup, "credit", late(rng.uniform(12.0, IN_FLIGHT * 0.95)))


@fault("F026", "it landed and its reply is lost", every(once("credit"), ends("completed")))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    tell(setup, "credit", lost())


@fault("F027", "it lands after a look has found nothing", once("credit"))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    tell(setup, "credit", late(rng.uniform(25.0, IN_FLIGHT * 0.95), replace(GOOD, lag=rng.uniform(0, LAG * 0.9))))


@fault("F028", "it lands later than was promised")
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    tell(setup, "credit", late(IN_FLIGHT * rng.uniform(2.0, 5.0)))


def _twice_is_found(stage: Stage) -> None:
    if stage.setup.flavour.keyed:
        return once("credit")(stage)
    must(stage.effects("credit") == 2, "the network delivered it twice")
    return asked("conflicting_evidence", "duplicate_effect")(stage)


@fault("F029", "the network delivers it twice", _twice_is_found)
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    tell(setup, "credit", replace(GOOD, again=(rng.uniform(1.0, IN_FLIGHT * 0.9),)))


@fault("F031", "two rate limits, then it is taken", every(once("credit"), arrivals("credit", 3, 3)))
def _(setup: Setup, rng: random.Random) -> None:
    tell(setup, "credit", refusal("limited", asks=5.0), refusal("limited", asks=2.0))


@fault("F033", "500, whatever had happened", once("credit"))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    tell(setup, "credit", replace(GOOD, answer="error", commits=rng.choice((None, 0.05))))


@fault("F034", "502 after it landed", every(once("credit"), arrivals("credit", 2)))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    tell(setup, "credit", replace(GOOD, answer="gateway"))


@fault("F035", "503 before anything was done", once("credit"))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    tell(setup, "credit", refusal("unavailable"))


@fault("F036", "409: it was done already, as its first reply would have said")
def _(setup: Setup, rng: random.Random) -> None:
    tell(setup, "credit", replace(GOOD, answer="conflict_done"))


@fault("F037", "the credential is refused", every(not_ok, arrivals("credit", 1)))
def _(setup: Setup, rng: random.Random) -> None:
    tell(setup, "credit", refusal(rng.choice(("unauthorized", "forbidden"))))


@fault("F038", "a rule of the provider forbids it", every(not_ok, arrivals("credit", 1), ends("failed")))
def _(setup: Setup, rng: random.Random) -> None:
    tell(setup, "credit", refusal("refused"))


@fault("F041", "what was done shows late", every(once("credit"), arrivals("credit", 2)))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    tell(setup, "credit", lost(replace(GOOD, lag=rng.uniform(4.0, LAG * 0.95))))


@fault("F042", "no look-up ever answers", every(asked("external_outcome_unknown")))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    setup.flavour, setup.looks_fail = replace(setup.flavour, keyed=False), 1.0
    tell(setup, "credit", lost())


@fault("F043", "a look-up finds what the reply did not say", asked("conflicting_evidence", "duplicate_effect"))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    setup.flavour = replace(setup.flavour, keyed=False)
    tell(setup, "credit", lost())
    setup.later.append((2.0, _twin("credit")))


def _twin(tool: str) -> Callable[[Stage], None]:
    def plant(stage: Stage) -> None:
        for action in stage.rows(Action, tool=tool, role="call")[:1]:
            stage.remote.plant_twin(Call(tool, action.action_id, arguments={}), stage.world.now)

    return plant


@fault("F045", "only a part of it was done", every(not_ok, asked("partial_effect", "external_outcome_unknown")))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    setup.flavour = replace(setup.flavour, keyed=False)
    tell(setup, "credit", lost(replace(GOOD, whole=False)))


@fault("F046", "the provider keeps its keys for a short time only")
def _(setup: Setup, rng: random.Random) -> None:
    setup.flavour = replace(
        setup.flavour, keyed=True, retention=rng.choice((90.0, 150.0, 300.0)), looks=True, bounded=True
    )
    tell(setup, "credit", lost(replace(GOOD, commits=rng.choice((None, 0.05)))), lost())


@fault(
    "F047", "the provider knows the key with other data", asked("idempotency_key_conflict", "conflicting_evidence")
)
def _(setup: Setup, rng: random.Random) -> None:
    setup.flavour = replace(setup.flavour, keyed=True)
    tell(setup, "credit", replace(refusal("refused"), answer="mismatch"))


def _ours_only(stage: Stage) -> None:
    known = {line.id for line in stage.remote.ledger}
    must(
        all(one.external_id in known for one in stage.rows(Effect)), "an effect is recorded that is not in the ledger"
    )


@fault("F048", "the reply is about another call", _ours_only)
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    tell(setup, "credit", replace(GOOD, answer="foreign"))


def _each_item_once(stage: Stage) -> None:
    items = {one.step: one.state for one in stage.rows(Action, role="item")}
    done = [item for line in stage.remote.ledger for item in line.items]
    must(sorted(done) == sorted(PAYEES[:3]), f"the ledger has {done}")
    proven = sum(state == "succeeded" for state in items.values())
    must((len(items), proven) == (5, 3), f"of {len(items)} items {proven} are proven")


@fault("F049", "three of five items are done", every(not_ok, _each_item_once, asked("partial_effect")))
def _(setup: Setup, rng: random.Random) -> None:
    setup.plan, setup.flavour = (READ, PAYOUTS), replace(setup.flavour, batch=True)
    tell(setup, "pay", replace(GOOD, done=3))


def _third_fails(stage: Stage) -> None:
    must(stage.effects("credit") == 1, "the second step stands once")
    must(stage.arrivals("credit") == 1, "what was done is not done again")


@fault("F050", "the third of seven steps fails", every(not_ok, _third_fails))
def _(setup: Setup, rng: random.Random) -> None:
    setup.plan = SEVEN
    tell(setup, "export", refusal("refused"))


@fault("F051", "the look-up is limited, the credit's reply is lost, and the last step fails", arrivals("credit", 3))
def _(setup: Setup, rng: random.Random) -> None:
    bounded(setup)
    tell(setup, "find", refusal("limited", asks=2.0))
    tell(setup, "credit", lost())
    tell(setup, "ship", refusal("refused"))
