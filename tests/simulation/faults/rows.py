"""One row of the matrix, what a fault may bend, and what may be expected of an episode in which it came alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from recovery.models import HumanTask
from runs.models import Action, Run
from tests.simulation.episode import Setup, Stage
from tests.simulation.fates import Fate
from tests.simulation.shop import THRESHOLD

Apply = Callable[[Setup, random.Random], None]
Expects = Callable[[Stage], None]
NOTIFY = (("notify", {"to": "customer"}),)
DEAR = (("credit", {"account": "acct_1", "amount": THRESHOLD + 1}),)
EXPORT = (("export", {"report": "r1"}),)


@dataclass(frozen=True)
class Fault:
    """One row of the matrix."""

    id: str
    what: str
    apply: Apply
    expects: Expects


FAULTS: dict[str, Fault] = {}


def fault(name: str, what: str, expects: Expects | None = None) -> Callable[[Apply], Apply]:
    def keep(apply: Apply) -> Apply:
        FAULTS[name] = Fault(name, what, apply, expects or (lambda stage: None))
        return apply

    return keep


def must(true: bool, what: str) -> None:
    if not true:
        raise AssertionError(what)


def run_of(stage: Stage) -> Run:
    return stage.rows(Run)[0]


def call_of(stage: Stage, tool: str) -> Action:
    return stage.rows(Action, tool=tool, role="call")[0]


def once(tool: str) -> Expects:
    """One whole effect at the provider, known to the record, and the run came to its end."""

    def check(stage: Stage) -> None:
        must(stage.effects(tool) == 1, f"{stage.effects(tool)} effects of {tool}")
        must(call_of(stage, tool).state == "succeeded", f"{tool} is {call_of(stage, tool).state}")

    return check


def ends(*states: str) -> Expects:
    return lambda stage: must(run_of(stage).state in states, f"the run is {run_of(stage).state}")


def reason(*codes: str) -> Expects:
    return lambda stage: must(run_of(stage).reason_code in codes, f"the reason is {run_of(stage).reason_code}")


def asked(*codes: str) -> Expects:
    """A person has, or had, a question of this kind."""

    def check(stage: Stage) -> None:
        found = {task.reason_code for task in stage.rows(HumanTask)}
        must(bool(found & set(codes)), f"nobody was asked about {codes}, only about {found}")

    return check


def arrivals(tool: str, most: int, least: int = 0) -> Expects:
    return lambda stage: must(least <= stage.arrivals(tool) <= most, f"{stage.arrivals(tool)} arrivals of {tool}")


def every(*checks: Expects) -> Expects:
    def check(stage: Stage) -> None:
        for one in checks:
            one(stage)

    return check


def not_ok(stage: Stage) -> None:
    must(run_of(stage).outcome != "ok", "the run ended ok")


def tell(setup: Setup, tool: str, *fates: Fate) -> None:
    setup.told.setdefault(tool, []).extend(fates)


def bounded(setup: Setup) -> None:
    """Only a provider that promises bounds can be held to them."""
    setup.flavour = replace(setup.flavour, bounded=True, looks=True)
