"""A person's place at a task: taking it, giving it back, leaving a note. Nothing here touches a run."""

from __future__ import annotations

from datetime import timedelta

from recovery import sla
from recovery.models import Comment
from recovery.panel import Panel
from recovery.work import offering
from recovery.work.wishes import CLAIM_MINUTES, Done, Order
from runs import gathering, redact
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import advance


def claim(seen: Panel, order: Order, actor: Actor) -> Done:
    until = read_clock() + timedelta(minutes=CLAIM_MINUTES)
    offering.taken(seen, order.by, actor)
    advance(seen.task, machine="task", to="claimed", claimed_by=order.by, claimed_until=until, snoozed_until=None)
    sla.follow(seen.task, seen.task.action, actor)
    return Done(f"Yours until {until:%H:%M:%S} UTC.")


def release(seen: Panel, order: Order, actor: Actor) -> Done:
    offering.given_back(seen, order.by, actor)
    advance(seen.task, machine="task", to="open", claimed_by=None, claimed_until=None)
    return Done("Back in the queue.")


def extend(seen: Panel, order: Order, actor: Actor) -> Done:
    """Acting extends a claim (UX: claims decay)."""
    if seen.situation.mine:
        claim(seen, order, actor)
    return Done("Requested.")


def comment(seen: Panel, order: Order, actor: Actor) -> Done:
    text = redact.clean_text(order.reason)
    gathering.insert(Comment(tenant_id=seen.run.tenant_id, task=seen.task, by=order.by, text=text))
    return Done("Noted.")
