"""The dry run: each item of a frozen list asked what would become of it now, many together, and nothing changed."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence

from recovery import panel, papers
from recovery.models import BulkItem, BulkOperation, HumanTask
from recovery.rules import bulk as rules
from recovery.rules.bulk import Sight
from runs import gathering, wall
from runs.models import Person
from runs.states import TASK_OPEN

log = logging.getLogger(__name__)
BATCH = 50


def look(tenant_id: uuid.UUID, operation_id: uuid.UUID, *, most: int) -> bool:
    """Look at up to `most` items that nobody has looked at; whether some are left."""
    with wall.within(tenant_id):
        operation = BulkOperation.objects.select_related("by").get(pk=operation_id)
    for _ in range(0, most, BATCH):
        with wall.within(tenant_id, by="worker"):
            if not _look(operation):
                break
    with wall.within(tenant_id, by="worker"):
        left = operation.items.filter(kind="").exists()
        if not left:
            BulkOperation.objects.filter(pk=operation_id, state="created").update(due_at=None)
    return left


def _look(operation: BulkOperation) -> int:
    unseen = operation.items.filter(kind="").select_for_update(skip_locked=True).order_by("place")
    items = list(unseen[:BATCH])
    tasks = {task.pk: task for task in _tasks(items)}
    with gathering.gathered() as together:
        runs, calls = {task.run_id for task in tasks.values()}, [task.action_id for task in tasks.values()]
        papers.look_at(together, runs, [one for one in calls if one is not None])
        for item in items:
            sight, mark = _sight(operation, item, shelved(tasks[item.task_id]))
            gathering.change(item, {}, {**sight._asdict(), "evidence_hash": mark})
    return len(items)


def _tasks(items: Sequence[BulkItem]) -> list[HumanTask]:
    asked = HumanTask.objects.filter(pk__among=[item.task_id for item in items])
    return list(asked.select_related("run__workflow", "action", "claimed_by"))


def shelved(task: HumanTask) -> HumanTask:
    """The same task as it was read ahead with its run and its call, if it is open."""
    kept = gathering.rows(HumanTask, "run_id", task.run_id, lambda found: found.filter(state__in=TASK_OPEN))
    return next((one for one in kept if one.pk == task.pk and one.state in TASK_OPEN), task)


def _sight(operation: BulkOperation, item: BulkItem, task: HumanTask) -> tuple[Sight, str]:
    """Its class, and the evidence that says so; an item that cannot be read keeps none of the others."""
    try:
        seen = panel.read(task, operation.by)
        if task.version != item.task_version:
            return Sight("blocked", "changed", "It changed while the list was frozen."), seen.evidence_hash
        return rules.classify(seen.situation, operation.verb), seen.evidence_hash
    except Exception as wrong:
        log.exception("task %s cannot be looked at for a bulk operation", task.pk)
        return Sight("blocked", "broken", f"Its record cannot be read ({type(wrong).__name__})."), ""


def may_go_on(operation: BulkOperation, by: Person, abilities: frozenset[str], items: int) -> str:
    """Why the person in whose name it runs may not go on with it; empty while they may (I13)."""
    why = rules.refusal(abilities, operation.verb, items)
    return f"{by} may no longer do this: {why[:1].lower()}{why[1:]}" if why else ""
