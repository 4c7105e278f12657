"""Tags of a task: a few short words by which colleagues find it again. They prove nothing and move nothing."""

from __future__ import annotations

import re
import uuid

from recovery import panel, permissions
from recovery.models import MOST_TAGS, HumanTask
from recovery.work.wishes import NoSuchTask, Refused
from runs import record, redact, wall
from runs.models import Person
from runs.record import Actor

WORD = re.compile(r"[^\W_][\w.-]{0,23}")
SHAPE = "A tag is one word of at most 24 letters, digits, dots or dashes."


def add(task_id: uuid.UUID, by: Person, word: str, *, request_id: str = "") -> str:
    """Put a tag on a task; one that it has stays. Returns the tag as it is kept. Raises NoSuchTask and Refused."""
    tag = word.strip().lower()
    if not WORD.fullmatch(tag):
        raise Refused(SHAPE, "tag")
    if redact.clean_text(tag) != tag:
        raise Refused("This looks like a secret; a tag is read by everybody.", "tag")
    _change(task_id, by, tag, request_id, there=True)
    return tag


def remove(task_id: uuid.UUID, by: Person, tag: str, *, request_id: str = "") -> str:
    """Take a tag off a task; one that it does not have changes nothing. Raises NoSuchTask and Refused."""
    _change(task_id, by, tag, request_id, there=False)
    return tag


def _change(task_id: uuid.UUID, by: Person, tag: str, request_id: str, *, there: bool) -> None:
    """Under the run's lock, so that two at once both count."""
    tenant_id = panel.tenant_of(task_id, by)
    if tenant_id is None:
        raise NoSuchTask
    if not permissions.may(by, "comment", tenant_id):
        raise Refused("Your role does not include this.", "role")
    with wall.within(tenant_id, by="person"):
        run = record.lock_run(HumanTask.objects.get(pk=task_id).run_id)
        assert run is not None  # noqa: S101  (a task cannot outlive its run: composite foreign key)
        task = HumanTask.objects.select_related("action").get(pk=task_id)
        if (tag in task.tags) == there:
            return
        if there and len(task.tags) >= MOST_TAGS:
            raise Refused(f"A task has at most {MOST_TAGS} tags: take one off first.", "tag")
        tags = sorted({*task.tags, tag}) if there else [one for one in task.tags if one != tag]
        HumanTask.objects.filter(pk=task_id).update(tags=tags)
        record.write_event(
            run, "tagged" if there else "untagged", Actor("person", str(by), request_id), action=task.action,
            reason=tag, data={"task": str(task_id)},
        )  # fmt: skip
