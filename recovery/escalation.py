"""Open a task for a person, once per run and cause, with an owner and a clock (I2, I7)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import F, Q
from steadyhand.contract import OUTCOME_OF

from recovery import crashpoints, sla
from recovery.models import HumanTask
from recovery.rules import messages, priority, scope
from recovery.rules.priority import Stake
from runs import definitions, gathering, record, redact
from runs.models import Action, Run
from runs.querysets import TenantQuerySet, read_clock
from runs.record import Actor
from runs.states import TASK_OPEN, advance

KIND_OF = {
    "external_outcome_unknown": "reconcile_write",
    "postcondition_unproven": "reconcile_write",
    "partial_effect": "reconcile_write",
    "duplicate_effect": "duplicate_effect",
    "idempotency_key_conflict": "decide_next",
    "user_input_required": "input",
    "approval_required": "approval",
    "effect_after_cancel": "effect_after_cancel",
    "not_compensable": "compensation",
    "compensation_failed": "compensation",
    "compensation_required": "compensation",
    "residual_unsigned": "compensation",
    "permission_denied": "access_request",
    "credentials_invalid": "access_request",
    "credentials_revoked": "access_request",
    "retry_exhausted": "dead_letter",
    "unadmitted_effect": "gap",
    "effects_unlisted": "gap",
}


CONTRADICTED = ("conflicting_evidence", "duplicate_effect")
UNCONFIRMED = "postcondition_unproven"
"""What is asked of a settled call whose later count nobody answered (F042)."""
_COUNT_TASKS = "UPDATE runs_tenant SET tasks_opened = tasks_opened + %s WHERE id = %s RETURNING tasks_opened"


def open_task(
    run: Run, reason: str, *, action: Action | None, actor: Actor, kind: str | None = None, page: str | None = None
) -> HumanTask:
    """The open task of this call, or of the run itself; made if there is none, else it takes the newer question.

    Evidence that contradicts what a task was resolved on reopens that task: its decisions stand in it (DECISIONS 1).
    `page`: why it may not wait for somebody to open the queue.
    """
    kind = kind or KIND_OF.get(reason, "decide_next")
    existing = _existing(run, action, kind)
    if existing is not None and existing.action_id != (action.pk if action else None):
        return existing
    if existing is not None:
        task = _update(existing, reason, kind, actor)
    else:
        task = _contradicted(run, action, reason, kind, actor) or _create(run, reason, action, kind, actor)
    sla.follow(task, action, actor)
    crashpoints.point("C17")
    if page is not None and task.paged_at is None:
        _page(task, page, actor)
    return task


def ask_about_kept(run: Run, action: Action, actor: Actor, *, page: str | None = None) -> None:
    """Ask about an effect that stands in a cancelled run and could be taken back (7b)."""
    reason, kind = "cancelled_with_effects", "effect_after_cancel"
    open_task(run, reason, action=action, actor=actor, kind=kind, page=page)


def resolve_tasks(run: Run, *, action: Action | None, actor: Actor, resolution: str) -> int:
    """Close what the evidence has answered: the tasks of this action (or all of the run's); returns how many."""
    tasks = [task for task in _open_tasks(run) if action is None or task.action_id == action.pk]
    for task in tasks:
        close(task, actor=actor, resolution=resolution)
    return len(tasks)


def open_about(run: Run, action: Action | None) -> HumanTask | None:
    """The open task of this call, or of the run itself."""
    about = action.pk if action else None
    return next((task for task in _open_tasks(run) if task.action_id == about), None)


def unconfirmed(run: Run, action: Action) -> HumanTask | None:
    """The open question of a later count that nobody answered."""
    task = open_about(run, action)
    return task if task is not None and task.reason_code == UNCONFIRMED else None


def close(task: HumanTask, *, actor: Actor, resolution: str) -> None:
    before, kept = task.state, redact.clean_text(resolution)
    advance(
        task, machine="task", to="resolved", resolved_at=read_clock(), resolution=kept, claimed_until=None,
        snoozed_until=None, remind_at=None, **sla.stopped_for_good(task),
    )  # fmt: skip
    record.write_event(
        task.run, "task_resolved", actor, action=task.action, from_state=before, to_state="resolved",
        reason=resolution, data={"task": str(task.pk)},
    )  # fmt: skip


def holder(run: Run) -> HumanTask | None:
    """The task of this run that a person holds, if any: from the claim on, nothing is sent by itself (ruling 14).

    What waits for a second person is held as well.
    """
    return next((task for task in _open_tasks(run) if task.state in ("claimed", "awaiting_approval")), None)


def contradiction(run: Run) -> HumanTask | None:
    """The open question of contradicting records, if there is one; until it is answered the run did not end well."""
    return _open(run).filter(reason_code__in=CONTRADICTED).select_related("action").first()


def has_run_task(run: Run) -> bool:
    """Whether a question about the run itself is open: about no call, or that nobody approved one in time."""
    return _open(run).filter(Q(action=None) | Q(reason_code="approval_expired")).exists()


def _open_tasks(run: Run) -> list[HumanTask]:
    found = gathering.rows(HumanTask, "run_id", run.pk, lambda found: found.filter(state__in=TASK_OPEN))
    return [task for task in found if task.state in TASK_OPEN]


def _open(run: Run) -> TenantQuerySet[HumanTask]:
    return HumanTask.objects.filter(run=run, state__in=TASK_OPEN)


def _existing(run: Run, action: Action | None, kind: str) -> HumanTask | None:
    """A refused credential is one question to its owner, however many calls it stops."""
    own = open_about(run, action)
    if own is not None or action is None or kind != "access_request":
        return own
    return _open(run).filter(kind=kind, owner_team=_owner(run, action, kind)).first()


def reopen(task: HumanTask, reason: str, kind: str, actor: Actor, words: str) -> None:
    """A resolved task is asked again, with a new clock; what it was resolved with stands in the history."""
    said, now, service = task.resolution, read_clock(), sla.service_of(task.run)
    ranked = _ranked(task.run, reason, task.action, now)
    advance(
        task, machine="task", to="reopened", resolved_at=None, resolution="", reason_code=reason, kind=kind,
        claimed_by=None, claimed_until=None, breached_at=None, **ranked, **sla.start(task.run, service, now),
    )  # fmt: skip
    record.write_event(
        task.run, "task_reopened", actor, action=task.action, from_state="resolved", to_state="reopened",
        reason=words, data={"task": str(task.pk), "kind": kind, "reason_code": reason, "resolved_with": said},
    )  # fmt: skip


def _contradicted(run: Run, action: Action | None, reason: str, kind: str, actor: Actor) -> HumanTask | None:
    """The last task of this call, if it was resolved on what is contradicted now."""
    if reason not in CONTRADICTED or action is None:
        return None
    closed = HumanTask.objects.filter(run=run, action=action, state="resolved").order_by("-id").first()
    if closed is not None:
        reopen(closed, reason, kind, actor, "What was learned since contradicts what it was resolved on.")
    return closed


def _update(task: HumanTask, reason: str, kind: str, actor: Actor) -> HumanTask:
    """A newer question takes the place of the old one, and wakes a task that was snoozed over that."""
    if (task.reason_code, task.kind) != (reason, kind):
        now = read_clock()
        remind_at = sla.reminder(task.action, sla.service_of(task.run), now)
        changed = {"reason_code": reason, "kind": kind, "snoozed_until": None, "remind_at": remind_at}
        ranked = _ranked(task.run, reason, task.action, now)
        HumanTask.objects.filter(pk=task.pk).update(**changed, **ranked, version=F("version") + 1)
        task.refresh_from_db()
        record.write_event(
            task.run, "task_updated", actor, action=task.action, to_state=task.state, reason=messages.title(reason),
            data={"task": str(task.pk), "kind": kind, "reason_code": reason},
        )  # fmt: skip
    return task


def _page(task: HumanTask, why: str, actor: Actor) -> None:
    """Once for each task: the same question does not wake anybody twice."""
    gathering.change(task, {}, {"paged_at": read_clock()})
    data = {"task": str(task.pk), "kind": task.kind, "reason_code": task.reason_code}
    record.write_event(task.run, "paged", actor, action=task.action, reason=why, data=data)


def _create(run: Run, reason: str, action: Action | None, kind: str, actor: Actor) -> HumanTask:
    definition, now, service = definitions.of_run(run), read_clock(), sla.service_of(run)
    task = HumanTask(
        tenant_id=run.tenant_id,
        run=run,
        action=action,
        kind=kind,
        cause=action.action_id if action else "run",
        reason_code=reason,
        workflow_name=definition.name,
        tool=action.tool if action else "",
        owner_team=_owner(run, action, kind),
        value_minor=action.value_minor if action else None,
        currency=action.currency if action else "",
        remind_at=sla.reminder(action, service, now),
        **_ranked(run, reason, action, now),
        **sla.start(run, service, now),
    )
    gathering.insert(task, prepare=_number)
    record.write_event(
        run, "task_opened", actor, action=action, to_state="open", reason=messages.title(reason),
        data={"task": str(task.pk), "kind": kind, "reason_code": reason, "priority": task.priority_reason},
    )  # fmt: skip
    return task


def _owner(run: Run, action: Action | None, kind: str) -> str:
    """The team of the workflow; who may renew a connection is named by the tool."""
    definition = definitions.of_run(run)
    tool = definition.tools.get(action.tool) if action is not None else None
    named = tool.access_owner if tool is not None and kind == "access_request" else None
    return named[:80] if named else definition.manifest.owner_team


def _number(tasks: Sequence[HumanTask]) -> None:
    """The tenant's own counter: a shared sequence would tell one tenant how busy the others are (SEC-30)."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_TASKS, [len(tasks), tasks[0].tenant_id])
        first = cursor.fetchone()[0] - len(tasks) + 1
    for number, task in enumerate(tasks, first):
        task.number = number


def _ranked(run: Run, reason: str, action: Action | None, now: datetime) -> dict[str, Any]:
    """The priority of a question asked now, and when the customer's deadline will raise it."""
    found = priority.of(_stake(run, reason, action))
    near_at = priority.near_from(run.opened_at, run.deadline_at)
    if near_at is not None and near_at <= now:
        found, near_at = priority.raised(found), None
    return {"consequence": found.rank, "priority_reason": found.words, "near_at": near_at}


def _stake(run: Run, reason: str, action: Action | None) -> Stake:
    definition = definitions.of_run(run)
    tool = definition.tools.get(action.tool) if action is not None else None
    threshold = definition.manifest.value_threshold_minor
    return Stake(
        asks_requester=reason in OUTCOME_OF and OUTCOME_OF[reason].value == "needs_input",
        effect=action.effect if action else "",
        over_threshold=scope.over(threshold, action.value_minor if action else None),
        irreversible=tool is not None and tool.irreversible,
    )
