"""A task that is put off until a time, and what wakes it before: something new about its call."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Exists, F, OuterRef, Q

from recovery import escalation, sla
from recovery.models import HumanTask
from recovery.panel import Panel
from recovery.work.wishes import Done, Order, Unusable
from runs import record
from runs.models import Evidence, Run
from runs.querysets import database_now, read_clock
from runs.record import TIMER, Actor
from runs.states import TASK_OPEN, advance

LONGEST = timedelta(days=30)
SHORTEST = timedelta(minutes=1)
NEWER = Evidence.objects.filter(
    tenant=OuterRef("tenant"), action=OuterRef("action"), recorded_at__gt=OuterRef("snoozed_at")
)
DUE = Q(snoozed_until__lte=database_now()) | Exists(NEWER)


def snooze(seen: Panel, order: Order, actor: Actor) -> Done:
    """Out of sight until then; a claim ends, and what goes on by itself goes on. Raises Unusable for a wrong time."""
    now, until = read_clock(), order.until
    if until is None or not now + SHORTEST <= until <= now + LONGEST:
        raise Unusable("until", f"Choose a time within {LONGEST.days} days from now.")
    task = seen.task
    to = "open" if task.state == "claimed" else task.state
    advance(
        task, machine="task", to=to, claimed_by=None, claimed_until=None, snoozed_at=now, snoozed_until=until
    )  # fmt: skip
    sla.follow(task, task.action, actor)
    return Done(f"Snoozed until {until:%Y-%m-%d %H:%M} UTC, or until something new is learned.")


def wake(run: Run) -> int:
    """Every snoozed task of this run whose time is over, or whose call has new evidence."""
    due = HumanTask.objects.filter(DUE, run=run, state__in=TASK_OPEN, snoozed_until__isnull=False)
    tasks = list(due.select_related("run", "action"))
    for task in tasks:
        _wake(task)
    return len(tasks)


def _wake(task: HumanTask) -> None:
    over = task.snoozed_until is not None and task.snoozed_until <= read_clock()
    words = "Its time is over." if over else "Something new was learned about its call."
    HumanTask.objects.filter(pk=task.pk).update(snoozed_until=None, version=F("version") + 1)
    task.refresh_from_db()
    data = {"task": str(task.pk)}
    record.write_event(task.run, "woken", TIMER, action=task.action, to_state=task.state, reason=words, data=data)
    sla.follow(task, task.action, TIMER)


def reopen(seen: Panel, order: Order, actor: Actor) -> Done:
    """Ask a resolved question again: what it was resolved with turned out wrong, or not to be the end of it."""
    task = seen.task
    escalation.reopen(task, task.reason_code, task.kind, actor, order.reason)
    return Done("Reopened; what was decided before stands in its history.")
