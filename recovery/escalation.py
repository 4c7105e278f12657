"""Open a task for a person, once per run and cause, with an owner and a clock (I2, I7)."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F
from steadyhand.contract import OUTCOME_OF

from recovery.models import HumanTask
from recovery.rules import messages
from runs import definitions, record
from runs.models import Action, Run, Tenant
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
    "permission_denied": "access_request",
}


def open_task(run: Run, reason: str, *, action: Action | None, actor: Actor, kind: str | None = None) -> HumanTask:
    """The open task of this call, or of the run itself; made if there is none, else it takes the newer question."""
    kind = kind or KIND_OF.get(reason, "decide_next")
    cause = action.action_id if action else "run"
    existing = _open(run).filter(action=action).first()
    if existing is not None:
        return _update(existing, reason, kind)
    task = _create(run, reason, action, kind, cause)
    record.write_event(
        run, "task_opened", actor, action=action, to_state="open", reason=messages.title(reason),
        data={"task": str(task.pk), "kind": task.kind, "reason_code": reason},
    )  # fmt: skip
    return task


def resolve_tasks(run: Run, *, action: Action | None, actor: Actor, resolution: str) -> int:
    """Close what the evidence has answered: the tasks of this action (or all of the run's); returns how many."""
    tasks = _open(run).filter(action=action) if action is not None else _open(run)
    for task in tasks:
        close(task, actor=actor, resolution=resolution)
    return len(tasks)


def close(task: HumanTask, *, actor: Actor, resolution: str) -> None:
    before = task.state
    advance(task, machine="task", to="resolved", resolved_at=read_clock(), resolution=resolution, claimed_until=None)
    record.write_event(
        task.run, "task_resolved", actor, action=task.action, from_state=before, to_state="resolved",
        reason=resolution, data={"task": str(task.pk)},
    )  # fmt: skip


def holder(run: Run) -> HumanTask | None:
    """The task of this run that a person holds, if any: from the claim on, nothing is sent by itself (ruling 14)."""
    return _open(run).filter(state="claimed").first()


def contradiction(run: Run) -> HumanTask | None:
    """The open question of contradicting records, if there is one; until it is answered the run did not end well."""
    return _open(run).filter(reason_code="conflicting_evidence").select_related("action").first()


def has_run_task(run: Run) -> bool:
    """Whether a question about the run itself, not about one of its calls, is open."""
    return _open(run).filter(action=None).exists()


def _open(run: Run) -> TenantQuerySet[HumanTask]:
    return HumanTask.objects.filter(run=run, state__in=TASK_OPEN)


def _update(task: HumanTask, reason: str, kind: str) -> HumanTask:
    if (task.reason_code, task.kind) != (reason, kind):
        changed = {"reason_code": reason, "kind": kind, "version": F("version") + 1}
        HumanTask.objects.filter(pk=task.pk).update(**changed)
        task.refresh_from_db()
    return task


def _create(run: Run, reason: str, action: Action | None, kind: str, cause: str) -> HumanTask:
    definition, now = definitions.of_run(run), read_clock()
    return HumanTask.objects.create(
        tenant_id=run.tenant_id,
        run=run,
        action=action,
        number=_next_number(run),
        kind=kind,
        cause=cause,
        reason_code=reason,
        workflow_name=definition.name,
        tool=action.tool if action else "",
        owner_team=definition.manifest.owner_team,
        consequence=_consequence(run, reason, action),
        value_minor=action.value_minor if action else None,
        currency=action.currency if action else "",
        due_at=min(filter(None, (now + timedelta(seconds=definition.manifest.sla_seconds), run.deadline_at))),
    )


def _next_number(run: Run) -> int:
    """The tenant's own counter: a shared sequence would tell one tenant how busy the others are (SEC-30)."""
    Tenant.objects.filter(pk=run.tenant_id).update(tasks_opened=F("tasks_opened") + 1)
    return Tenant.objects.values_list("tasks_opened", flat=True).get(pk=run.tenant_id)


def _consequence(run: Run, reason: str, action: Action | None) -> int:
    """Order of urgency: 3 an unknown or contradicted write that cannot be undone or is over the threshold, 2 another
    unknown write, 1 work that stands still, 0 a question to the requester."""
    if OUTCOME_OF[reason].value == "needs_input" if reason in OUTCOME_OF else False:
        return 0
    if action is None or action.effect == "read":
        return 1
    definition = definitions.of_run(run)
    tool, threshold = definition.tools.get(action.tool), definition.manifest.value_threshold_minor
    over = threshold is not None and action.value_minor is not None and action.value_minor > threshold
    return 3 if over or (tool is not None and tool.irreversible) else 2
