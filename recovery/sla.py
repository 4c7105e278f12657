"""The clock of a task: when it is due in working hours, when it stands still, when an approval is asked for again.

The database's clock throughout; what counts as working time is recovery/rules/hours.py.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from recovery import policies
from recovery.models import HumanTask
from recovery.policies import Service
from recovery.rules import hours, pauses
from recovery.rules.pauses import Waiting
from runs import budgets, definitions, gathering, record
from runs.models import Action, Run
from runs.querysets import read_clock
from runs.record import Actor

SOON_SHARE = 0.75
"""After this share of its working time a task is due soon."""


def start(run: Run, service: Service, now: datetime) -> dict[str, Any]:
    """The clock of a question that is asked now: `due_at`, not after the run's deadline, and `soon_at`."""
    return _due(run, service, now, definitions.of_run(run).manifest.sla_seconds)


def service_of(run: Run) -> Service:
    return policies.service(definitions.of_run(run).manifest, run.tenant_id)


def follow(task: HumanTask, action: Action | None, actor: Actor) -> None:
    """Stop or go on, as what the task waits for says now; asks nothing where nothing can have changed."""
    waiting = Waiting(task.reason_code, action.state if action else "", task.snoozed_until is not None)
    if not task.pause and not pauses.of(waiting, pauses.PAUSES):
        return
    service, now = service_of(task.run), read_clock()
    name = pauses.of(waiting, service.pauses)
    if name == task.pause:
        return
    if not task.pause:
        _stop(task, service, now, name, actor)
    elif not name:
        _go_on(task, service, now, actor)
    else:
        _write(task, actor, "sla_paused", pauses.WORDS[name].capitalize(), pause=name)


def follow_call(run: Run, action: Action, actor: Actor) -> None:
    """The same for the open tasks of a call whose state has changed."""
    for task in gathering.rows(HumanTask, "run_id", run.pk, lambda found: found.filter(resolved_at=None)):
        if task.action_id == action.pk and task.resolved_at is None:
            follow(task, action, actor)


def stopped_for_good(task: HumanTask) -> dict[str, Any]:
    """What ends the clock of a task that is resolved: one that stood still was in time by what was left."""
    if not task.pause:
        return {}
    due = _due(task.run, service_of(task.run), read_clock(), task.left_seconds or 0)
    return {**_RUNNING, "due_at": due["due_at"]}


def reminder(action: Action | None, service: Service, asked_at: datetime, sent: int = 0) -> datetime | None:
    """When an approval is asked for again; None for what waits for none."""
    if action is None or action.state != "awaiting_approval" or action.due_at is None:
        return None
    return pauses.remind_at(asked_at, action.due_at, service.reminders, sent)


def answer_by(run: Run, now: datetime) -> datetime:
    """How long an approval or a requester's answer may take, at most to the run's end; a later one is none (F127)."""
    seconds = definitions.of_run(run).manifest.approval_seconds
    ends_at = budgets.ends_at(run)
    return ends_at if seconds is None else min(ends_at, now + timedelta(seconds=seconds))


_RUNNING: dict[str, Any] = {"pause": "", "paused_at": None, "left_seconds": None}


def _stop(task: HumanTask, service: Service, now: datetime, name: str, actor: Actor) -> None:
    """What is overdue already stays so: a pause takes no breach back."""
    if task.due_at <= now:
        return
    left = hours.between(service.hours, now, task.due_at)
    _write(task, actor, "sla_paused", pauses.WORDS[name].capitalize(), pause=name, paused_at=now, left_seconds=left)


def _go_on(task: HumanTask, service: Service, now: datetime, actor: Actor) -> None:
    words = f"No longer: {pauses.WORDS[task.pause]}"
    _write(task, actor, "sla_resumed", words, **_RUNNING, **_due(task.run, service, now, task.left_seconds or 0))


def _due(run: Run, service: Service, now: datetime, seconds: float) -> dict[str, Any]:
    due_at = min(filter(None, (hours.add(service.hours, now, seconds), run.deadline_at)))
    left = hours.between(service.hours, now, due_at)
    return {"due_at": due_at, "soon_at": hours.add(service.hours, now, left * SOON_SHARE)}


def _write(task: HumanTask, actor: Actor, kind: str, words: str, **changes: Any) -> None:
    gathering.change(task, {}, changes)
    record.write_event(task.run, kind, actor, action=task.action, reason=f"{words}.", data={"task": str(task.pk)})
