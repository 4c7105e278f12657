"""A task that is offered to a colleague and waits for the answer."""

from __future__ import annotations

from datetime import datetime

from django.db.models import OuterRef, QuerySet

from recovery.models import Handover, HumanTask
from runs.models import Person
from runs.states import TASK_OPEN


def pending(task: HumanTask) -> Handover | None:
    """The offer of an open task that nobody has answered; None where none waits."""
    if task.state not in TASK_OPEN:
        return None
    return Handover.objects.filter(task=task, state="offered").select_related("by", "to").first()


def to(person: Person, now: datetime) -> QuerySet[Handover]:
    """For a filter of tasks: the offers of each to this person that can still be accepted."""
    mine = Handover.objects.filter(tenant=OuterRef("tenant"), task=OuterRef("pk"), to=person)
    return mine.filter(state="offered", expires_at__gt=now)
