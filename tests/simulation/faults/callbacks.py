"""Callbacks: the faults of this part of docs/faults.md, in its order."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from runs.models import Action
from tests.simulation.episode import CREDIT, READ, Setup, Stage
from tests.simulation.fates import GOOD
from tests.simulation.faults.rows import NOTIFY, ends, fault, must, tell


def _called_back(setup: Setup) -> None:
    setup.plan = (READ, NOTIFY, CREDIT)


@fault("F072", "a message comes after the call was closed, and says otherwise", lambda stage: None)
def _(setup: Setup, rng: random.Random) -> None:
    _called_back(setup)
    tell(setup, "notify", replace(GOOD, answer="accepted", commits=5.0))
    # Late is what comes after the call was closed; before that it would be the provider's only word.
    setup.later.append((400.0, _posted("failed")))


def _posted(state: str) -> Callable[[Stage], None]:
    def post(stage: Stage) -> None:
        for action in stage.rows(Action, tool="notify", role="call")[:1]:
            if action.settled_at is None:
                continue
            stage.postman.post({"state": state, "reference": action.action_id, "id": "ef_other"}, after=0.1)

    return post


@fault("F073", "a message comes before the reply", lambda stage: must(stage.arrivals("notify") == 1, "sent again"))
def _(setup: Setup, rng: random.Random) -> None:
    _called_back(setup)
    setup.postman = {"delays": 0.0}
    tell(setup, "notify", replace(GOOD, answer="accepted", commits=0.2, replies=3.0))


@fault("F079", "a message comes after the run was cancelled", ends("cancelled"))
def _(setup: Setup, rng: random.Random) -> None:
    _called_back(setup)
    setup.temper = replace(setup.temper, cancels_at=30.0, rolls_back_at=None)
    tell(setup, "notify", replace(GOOD, answer="accepted", commits=200.0))
