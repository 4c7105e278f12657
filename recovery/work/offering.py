"""Handing over with a yes: a task is offered to a colleague, and is theirs once they accept (UX: handing over).

Until then it stays where it is. An offer ends by its receiver's answer, by its giver, by somebody who takes the task
otherwise, by either of them leaving, or by its time.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Q

from recovery import sla
from recovery.models import Handover
from recovery.panel import Panel
from recovery.work import summary
from recovery.work.wishes import CLAIM_MINUTES, Done, Order
from runs import record, redact
from runs.models import Person, Run
from runs.querysets import database_now, read_clock
from runs.record import TIMER, Actor
from runs.states import advance

OFFER_MINUTES = CLAIM_MINUTES
"""A claim that its holder offers is extended to the same moment, so that both end together."""


def offer(seen: Panel, order: Order, to: Person) -> Done:
    """Ask a colleague to take the task; what is known now goes along."""
    until = read_clock() + timedelta(minutes=OFFER_MINUTES)
    facts, reason = summary.of(seen), redact.clean_text(order.reason)
    made = Handover.objects.create(
        tenant_id=seen.run.tenant_id, run=seen.run, task=seen.task, by=order.by, to=to, reason=reason, facts=facts,
        expires_at=until,
    )  # fmt: skip
    claim: dict[str, Any] = {"claimed_until": until} if seen.situation.mine else {}
    advance(seen.task, machine="task", to=seen.task.state, **claim)
    words = f"Offered to {to} until {until:%H:%M:%S} UTC; it stays where it is until they accept."
    return Done(words, {"known": facts, "to": str(to), "offer": str(made.pk)})


def accept(seen: Panel, order: Order, actor: Actor) -> Done:
    """The receiver's yes: the task and its claim are theirs."""
    offered = _pending(seen)
    until = read_clock() + timedelta(minutes=CLAIM_MINUTES)
    _end(offered, "accepted")
    advance(
        seen.task, machine="task", to="claimed", owner=order.by, claimed_by=order.by, claimed_until=until,
        snoozed_until=None,
    )  # fmt: skip
    sla.follow(seen.task, seen.task.action, actor)
    return Done(f"Yours until {until:%H:%M:%S} UTC.", {"from": str(offered.by), "offer": str(offered.pk)})


def decline(seen: Panel, order: Order, actor: Actor) -> Done:
    """The receiver's no: nothing of the task changes, and its giver reads why."""
    offered = _pending(seen)
    _end(offered, "declined")
    advance(seen.task, machine="task", to=seen.task.state)
    return Done(f"{offered.by} is told; the task stays where it is.", {"offer": str(offered.pk)})


def withdraw(seen: Panel, order: Order, actor: Actor) -> Done:
    """The giver takes the offer back."""
    offered = _pending(seen)
    _end(offered, "withdrawn")
    advance(seen.task, machine="task", to=seen.task.state)
    return Done(f"No longer offered to {offered.to}.", {"to": str(offered.to), "offer": str(offered.pk)})


def taken(seen: Panel, by: Person, actor: Actor) -> None:
    """Somebody takes the task or gives it back without an answer to its offer: that ends the offer."""
    if seen.offer is None or (seen.offer.by_id == by.pk and seen.situation.mine):
        return
    _withdrawn(seen.run, seen.offer, actor, f"{by} took the task before {seen.offer.to} answered.")


def given_back(seen: Panel, by: Person, actor: Actor) -> None:
    if seen.offer is not None:
        _withdrawn(seen.run, seen.offer, actor, f"{by} gave the task back before {seen.offer.to} answered.")


def left(run: Run, person: Person, actor: Actor) -> int:
    """End what this person offers or is offered in a run, for they may not sign in any more (F129)."""
    found = Handover.objects.filter(Q(by=person) | Q(to=person), run=run, state="offered").select_related(
        "task", "to"
    )
    ended = list(found)
    for one in ended:
        _withdrawn(run, one, actor, f"{person} was deactivated.")
    return len(ended)


def expire(run: Run) -> int:
    """End the offers of this run whose time is over; the task stays where it is."""
    due = Handover.objects.filter(run=run, state="offered", expires_at__lte=database_now())
    ended = list(due.select_related("task", "by", "to"))
    for one in ended:
        _end(one, "expired")
        words = f"{one.to} did not accept it in time; {one.by} had offered it."
        _write(run, "offer_expired", one, TIMER, words)
    return len(ended)


def _pending(seen: Panel) -> Handover:
    assert seen.offer is not None  # noqa: S101  (the rules of these verbs ask for one)
    return seen.offer


def _end(offered: Handover, state: str) -> None:
    advance(offered, machine="handover", to=state, ended_at=read_clock())


def _withdrawn(run: Run, offered: Handover, actor: Actor, words: str) -> None:
    _end(offered, "withdrawn")
    _write(run, "offer_withdrawn", offered, actor, words)


def _write(run: Run, kind: str, offered: Handover, actor: Actor, words: str) -> None:
    data = {"task": str(offered.task_id), "offer": str(offered.pk)}
    record.write_event(run, kind, actor, action=offered.task.action, reason=words, data=data)
