"""A wish that is too much for one person: recorded, it waits for a second one and is carried out by their word."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from recovery.models import HumanTask
from recovery.panel import Panel
from recovery.work.wishes import CLAIM_MINUTES, Done, Order
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import advance


def ask(seen: Panel, order: Order, about: str, bound: dict[str, Any]) -> Done:
    """Keep the wish and what it is made about; nothing is done and nothing is sent before a second word."""
    wait(seen.task, order)
    return Done("Asked for. A second person has to agree.", {"asked": {"about": about, "bound": bound}})


def wait(task: HumanTask, order: Order) -> None:
    """The task stays with whoever asked, and no claim on it decays: a second person is what it waits for."""
    if task.state != "claimed":
        advance(task, machine="task", to="claimed", claimed_by=order.by, claimed_until=None)
    advance(task, machine="task", to="awaiting_approval", claimed_by=order.by, claimed_until=None)


def give_back(task: HumanTask) -> None:
    """To the one who asked, as a claim that decays like any other."""
    advance(task, machine="task", to="claimed", claimed_until=read_clock() + timedelta(minutes=CLAIM_MINUTES))


def decline(seen: Panel, order: Order, actor: Actor) -> Done:
    """The second person does not agree: the task goes back to whoever asked, and nothing counts."""
    give_back(seen.task)
    return Done("Not confirmed; it counts for nothing.")
