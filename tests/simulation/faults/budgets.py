"""Budgets, retries, circuits: the faults of this part of docs/faults.md, in its order."""

from __future__ import annotations

import random
from dataclasses import replace

from recovery.models import DeadLetter, HumanTask
from runs.models import Action, Attempt, Event
from runs.states import TASK_OPEN
from tests.simulation.agents import Temper
from tests.simulation.episode import CREDIT, READ, Setup, Stage
from tests.simulation.fates import late, refusal
from tests.simulation.faults.rows import asked, bounded, every, fault, must, not_ok, tell
from tests.simulation.remote import Outage

HERD = 9


@fault("F100", "a budget is used up", every(not_ok))
def _(setup: Setup, rng: random.Random) -> None:
    setup.flavour = replace(setup.flavour, max_calls=2)


@fault("F101", "two budgets are used up at once", every(not_ok))
def _(setup: Setup, rng: random.Random) -> None:
    setup.flavour = replace(setup.flavour, max_calls=2, max_turns=2)


@fault("F103", "the deadline passes while a write is under way", lambda stage: None)
def _(setup: Setup, rng: random.Random) -> None:
    setup.flavour = replace(setup.flavour, deadline=8.0, bounded=True)
    tell(setup, "credit", late(9.0))


@fault("F104", "what the model used is not known", every(not_ok, asked("token_budget_exhausted")))
def _(setup: Setup, rng: random.Random) -> None:
    setup.temper, setup.flavour = replace(setup.temper, unmeasured=True), replace(setup.flavour, tokens=4000)


def _one_letter(stage: Stage) -> None:
    letters = stage.rows(DeadLetter)
    must(len(letters) == 1, f"{len(letters)} dead letters")
    must(len(letters[0].attempts) == stage.setup.flavour.max_attempts, "the history is not whole")
    must(bool(letters[0].owner_team), "nobody owns it")


@fault("F105", "the last try fails too", every(not_ok, _one_letter))
def _(setup: Setup, rng: random.Random) -> None:
    setup.flavour = replace(setup.flavour, max_attempts=3)
    tell(setup, "credit", *(refusal("limited", asks=1.0) for _ in range(12)))


@fault("F109", "the provider is away for a long time", lambda stage: must(stage.effects("credit") <= 1, "twice"))
def _(setup: Setup, rng: random.Random) -> None:
    setup.outages.append(Outage(0.1, rng.uniform(60.0, 900.0), rng.choice(("refuse", "unavailable", "hang"))))


@fault("F112", "the provider comes and goes", lambda stage: must(stage.effects("credit") <= 1, "twice"))
def _(setup: Setup, rng: random.Random) -> None:
    for number in range(8):
        setup.outages.append(Outage(number * 20.0 + 0.1, number * 20.0 + 12.0, rng.choice(("refuse", "unavailable"))))


def _herd(setup: Setup) -> None:
    """Many runs of one tenant at once, all at the same provider."""
    setup.tempers = (Temper(),) * HERD


def _opened(stage: Stage) -> None:
    must(stage.rows(Event, kind="circuit_opened") != [], "its circuit never opened")


def _peak(stage: Stage) -> None:
    """Whatever waited, it does not all come at once: the trials have slots, and what follows has a budget."""
    ends = stage.setup.outages[-1].ends
    times = [one.arrived_at for one in stage.remote.arrivals if one.call.tool == "credit" and one.arrived_at >= ends]
    must(bool(times), "nobody came back")
    most = max((sum(at <= one < at + 1.0 for one in times) for at in times), default=0)
    must(most <= HERD // 2, f"{most} calls arrived within a second after the outage")


def _outage(setup: Setup, *, until: float) -> None:
    _herd(setup)
    bounded(setup)
    setup.outages.append(Outage(1.0, until, "unavailable"))


@fault("F108", "everybody comes back after an outage", every(_opened, _peak))
def _(setup: Setup, rng: random.Random) -> None:
    _outage(setup, until=rng.uniform(60.0, 120.0))


def _never_open(stage: Stage) -> None:
    must(stage.rows(Event, kind="circuit_opened") == [], "refusals opened a circuit")
    must(stage.arrivals("credit") == HERD + 1, f"{stage.arrivals('credit')} calls arrived")


@fault("F113", "one after the other is refused", _never_open)
def _(setup: Setup, rng: random.Random) -> None:
    _herd(setup)
    setup.plan = (READ, CREDIT)
    tell(setup, "credit", *(refusal("refused") for _ in range(HERD + 1)))


def _no_write_tries(stage: Stage) -> None:
    tried = {one.action.tool for one in stage.rows(Attempt, trial=True) if one.action.effect == "write"}
    must(not tried, f"{tried} went out as a trial, and no key protects it")


@fault("F114", "only writes without a key wait for an open circuit", every(_opened, _no_write_tries))
def _(setup: Setup, rng: random.Random) -> None:
    _outage(setup, until=rng.uniform(60.0, 120.0))
    setup.flavour = replace(setup.flavour, keyed=False)


def _looks_wait(stage: Stage) -> None:
    _opened(stage)
    open_ones = [one for one in stage.rows(Action, effect="write") if one.settled_at is None]
    held = {one.action_id for one in stage.rows(HumanTask, state__in=TASK_OPEN)}
    must(all(one.pk in held or one.due_at for one in open_ones), "a look-up that waited was forgotten")


@fault("F115", "look-ups meet an open circuit", _looks_wait)
def _(setup: Setup, rng: random.Random) -> None:
    _outage(setup, until=rng.uniform(200.0, 600.0))
    setup.outages[-1] = replace(setup.outages[-1], how="hang")
    setup.flavour = replace(setup.flavour, keyed=False)
