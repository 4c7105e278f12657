"""What the clock does to open tasks: past their time, near the customer's deadline, or asked for and not approved."""

from __future__ import annotations

from django.db.models import F, QuerySet, Value
from django.db.models.functions import Concat

from recovery import permissions, policies, post, sla
from recovery.models import HumanTask
from recovery.rules import priority
from recovery.work import together
from runs import record
from runs.models import Person, Run
from runs.querysets import database_now, read_clock
from runs.record import TIMER
from runs.states import TASK_OPEN

MOST_MAILED = 20


def breach() -> int:
    """Mark every task of the open tenant that is past its time and whose clock runs; returns how many."""
    late = _open().filter(breached_at__isnull=True, paused_at__isnull=True, due_at__lte=database_now())
    found = _locked(late.order_by("due_at"))
    HumanTask.objects.filter(pk__in=[task.pk for task in found]).update(breached_at=database_now())
    _tell(found, "sla_breached", "Its time is over.")
    return len(found)


def draw_near() -> int:
    """Raise every task of the open tenant by one whose customer's deadline has come near (issue: priority)."""
    found = _locked(_open().filter(near_at__lte=database_now()).order_by("near_at"))
    HumanTask.objects.filter(pk__in=[task.pk for task in found]).update(
        consequence=F("consequence") + 1,
        priority_reason=Concat("priority_reason", Value(f"; {priority.NEAR_WORDS}")),
        near_at=None,
    )
    _tell(found, "priority_raised", f"{priority.NEAR_WORDS.capitalize()}.")
    return len(found)


def remind(run: Run) -> int:
    """Ask again for the approvals of this run whose reminder is due; with the last one somebody else too (F127)."""
    due = _open().filter(run=run, remind_at__lte=database_now()).select_related("run", "action", "owner")
    tasks = list(due)
    for task in tasks:
        _remind(task)
    return len(tasks)


def _remind(task: HumanTask) -> None:
    sent, now, service = task.reminders + 1, read_clock(), sla.service_of(task.run)
    remind_at = sla.reminder(task.action, service, task.opened_at, sent)
    if task.action is None or task.action.state != "awaiting_approval":
        HumanTask.objects.filter(pk=task.pk).update(remind_at=None)
        return
    owner = task.owner if remind_at is not None else _next_owner(task)
    HumanTask.objects.filter(pk=task.pk).update(
        reminders=sent, reminded_at=now, remind_at=remind_at, owner=owner, version=F("version") + 1
    )
    words = f"Nobody has approved it yet; it is void at {task.action.due_at:%Y-%m-%d %H:%M} UTC."
    data = {"task": str(task.pk), "reminder": sent}
    record.write_event(task.run, "reminded", TIMER, action=task.action, reason=words, data=data)
    if owner is not None and owner != task.owner:
        told = f"It goes to {owner}, for the last reminder brought no answer."
        record.write_event(task.run, "escalated_further", TIMER, action=task.action, reason=told, data=data)
    subject = f"T-{task.number} waits for an approval"
    body = f"{task.tool} of {task.workflow_name} waits. {words}\n\n{post.link_to_task(task.pk)}"
    post.after_commit(_asked(task, owner), subject, body)


def _next_owner(task: HumanTask) -> Person | None:
    return policies.next_approver(task.tenant_id, task.owner_team) or task.owner


def _asked(task: HumanTask, owner: Person | None) -> list[str]:
    """Whose answer it is: the owner's, else that of everybody who may approve here."""
    people = [owner] if owner is not None else permissions.people(task.tenant_id, "approve")[:MOST_MAILED]
    return [person.email for person in people]


def _open() -> QuerySet[HumanTask]:
    return HumanTask.objects.filter(state__in=TASK_OPEN)


def _locked(tasks: QuerySet[HumanTask]) -> list[HumanTask]:
    """The next of them; what another sweep or a person has at hand is found again a few seconds later."""
    held = tasks.select_for_update(skip_locked=True, of=("self",)).select_related("run", "action")
    return list(held[: together.BATCH])


def _tell(tasks: list[HumanTask], kind: str, words: str) -> None:
    for task in tasks:
        data = {"task": str(task.pk)}
        record.write_event(task.run, kind, TIMER, action=task.action, reason=words, data=data)
