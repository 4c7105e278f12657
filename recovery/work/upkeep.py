"""What the sweep does about tasks: each step finds its rows by an index, and does nothing a second time."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.db.models import Q
from django.db.models.expressions import Combinable

from recovery import totals
from recovery.models import Handover, HumanTask
from recovery.work import handing, nudges, offering, overdue, snoozing, together
from runs import wall
from runs.models import Run
from runs.querysets import database_now
from runs.record import TIMER
from runs.states import TASK_OPEN


def mark_late(tenant_id: uuid.UUID, ring: nudges.Ring) -> int:
    """Tasks past their time, and tasks whose customer's deadline has come near."""
    with wall.within(tenant_id, by="timer"):
        return overdue.breach() + overdue.draw_near()


def asleep() -> Iterable[uuid.UUID]:
    return _runs(Q(snoozed_until__isnull=False), snoozing.DUE)


def wake(run: Run, ring: nudges.Ring) -> int:
    return snoozing.wake(run)


def unapproved() -> Iterable[uuid.UUID]:
    return _runs(Q(remind_at__lte=database_now()))


def remind(run: Run, ring: nudges.Ring) -> int:
    return overdue.remind(run)


def left_behind() -> Iterable[uuid.UUID]:
    return _runs(handing.LEFT_BEHIND, Q(state__in=handing.RETURNABLE))


def take_back(run: Run, ring: nudges.Ring) -> int:
    return handing.take_back(run, TIMER)


def unanswered() -> Iterable[uuid.UUID]:
    offers = Handover.objects.filter(state="offered", expires_at__lte=database_now())
    return offers.order_by().values_list("run_id", flat=True).distinct()[: together.BATCH]


def expire_offers(run: Run, ring: nudges.Ring) -> int:
    return offering.expire(run)


def fold_totals(tenant_id: uuid.UUID) -> int:
    """Put the differences in the totals of the queue together, once enough of them wait."""
    with wall.within(tenant_id, by="timer"):
        return totals.fold()


def _runs(*which: Q | Combinable) -> Iterable[uuid.UUID]:
    tasks = HumanTask.objects.filter(*which, state__in=TASK_OPEN)
    return tasks.order_by().values_list("run_id", flat=True).distinct()[: together.BATCH]
