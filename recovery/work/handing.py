"""Who has a task: offered to a colleague or given back to the team, and what is left behind by who left (F129)."""

from __future__ import annotations

from typing import Any

from django.db.models import Q

from recovery import permissions, policies, statements
from recovery.models import HumanTask
from recovery.panel import Panel
from recovery.work import offering, summary
from recovery.work.wishes import Done, Order, Unusable
from runs import record
from runs.ids import parse_id
from runs.models import Person, Run
from runs.record import Actor
from runs.states import advance

RETURNABLE = ("open", "claimed", "awaiting_approval", "reopened")
LEFT_BEHIND = Q(claimed_by__is_active=False) | Q(owner__is_active=False)


def assign(seen: Panel, order: Order, actor: Actor) -> Done:
    """Offer the task to a colleague, or give it back to the team, which ends a claim. Raises Unusable for nobody.

    What is known at that moment is kept with the decision, so that the receiver need not look for it.
    """
    known: dict[str, object] = {"known": summary.of(seen)}
    if not order.to:
        advance(seen.task, machine="task", to=_unclaimed(seen.task), owner=None, **_NOBODY)
        return Done(f"Back with {seen.task.owner_team}.", {**known, "to": seen.task.owner_team})
    receiver = _colleague(seen.run, order.to)
    if receiver is None:
        raise Unusable("to", "Choose somebody of this tenant who may work on tasks.")
    if receiver.pk != order.by.pk:
        return offering.offer(seen, order, receiver)
    advance(seen.task, machine="task", to=seen.task.state, owner=receiver)
    return Done("It is yours.", {**known, "to": str(receiver)})


def take_back(run: Run, actor: Actor) -> int:
    """What people hold who may not sign in any more: claims to the queue, tasks to the team's lead or the team.

    A word of theirs that waits for a second person counts for nothing from then on.
    """
    left = HumanTask.objects.filter(LEFT_BEHIND, run=run, state__in=RETURNABLE)
    tasks = left.select_related("run", "claimed_by", "owner")
    for task in tasks:
        _take_back(task, actor)
    return len(tasks)


def _take_back(task: HumanTask, actor: Actor) -> None:
    gone = [person for person in (task.claimed_by, task.owner) if person is not None and not person.is_active]
    owner = policies.lead(task.tenant_id, task.owner_team) if task.owner in gone else task.owner
    before = task.state
    claim = _NOBODY if task.claimed_by in gone else {}
    if claim:
        _withdraw(task, actor)
    advance(task, machine="task", to=_unclaimed(task) if claim else before, owner=owner, **claim)
    record.write_event(
        task.run, "owner_left", actor, action=task.action, from_state=before, to_state=task.state,
        reason=f"{gone[0]} was deactivated; the task is {owner or task.owner_team}'s.", data={"task": str(task.pk)},
    )  # fmt: skip


def _withdraw(task: HumanTask, actor: Actor) -> None:
    """Nobody is left to answer for it, and what it was made about is another's to judge (F129, F130)."""
    said = statements.pending(task)
    if said is not None:
        record.write_event(
            task.run, "statement_withdrawn", actor, action=task.action, data={"task": str(task.pk)},
            reason=f"{said}. Nobody confirmed it before {said.by} was deactivated; it counts for nothing.",
        )  # fmt: skip


_NOBODY: dict[str, Any] = {"claimed_by": None, "claimed_until": None}


def _unclaimed(task: HumanTask) -> str:
    return "open" if task.state in ("claimed", "awaiting_approval") else task.state


def _colleague(run: Run, text: str) -> Person | None:
    person_id = parse_id(text)
    found = Person.objects.filter(pk=person_id, is_active=True).first() if person_id else None
    return found if found is not None and permissions.may(found, "claim", run.tenant_id) else None
