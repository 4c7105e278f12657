"""Who is at a task right now: told by the open page every few seconds, and forgotten when it falls silent.

A GET says nothing about anybody: without script nobody is seen, and the page says only what it knows.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import JSONObject

from console.models import Presence
from runs.models import Person
from runs.querysets import database_now, read_clock
from runs.states import TASK_OPEN

GONE_AFTER = timedelta(seconds=30)
LOOKING, DECIDING = "looking", "deciding"
MOST_SHOWN = 10
MOST_DECIDING = 200


@dataclass(frozen=True)
class Here:
    """A colleague at a task; `verb` is the sheet that is open while `deciding`."""

    name: str
    deciding: bool
    verb: str
    since: datetime


def tell(tenant_id: uuid.UUID, task_id: uuid.UUID, person: Person, doing: str, verb: str) -> None:
    """Say that this person is at the task, inside the wall of its tenant. A new place forgets the old ones."""
    mine = Presence.objects.filter(tenant_id=tenant_id, person=person)
    last = read_clock() - GONE_AFTER
    goes_on = Q(doing=doing, verb=verb, seen_at__gt=last)
    since = Case(When(goes_on, then=F("since")), default=database_now())
    told = mine.filter(task_id=task_id).update(since=since, doing=doing, verb=verb, seen_at=database_now())
    if told:
        return
    mine.filter(seen_at__lte=last).delete()
    row = Presence(tenant_id=tenant_id, task_id=task_id, person=person, doing=doing, verb=verb)
    Presence.objects.bulk_create([row], ignore_conflicts=True)  # another tab of the same person may be as fast


def of_task(reader: Person, now: datetime) -> ArraySubquery:
    """An annotation of tasks: the colleagues at each, those who decide first; `read` makes values of it."""
    rows = _recent(now).filter(tenant=OuterRef("tenant"), task=OuterRef("pk")).exclude(person=reader)
    told = JSONObject(name="person__name", doing="doing", verb="verb", since="since")
    return ArraySubquery(rows.order_by("doing", "since").values(json=told)[:MOST_SHOWN])


def read(told: list[dict[str, Any]]) -> list[Here]:
    return [
        Here(one["name"], one["doing"] == DECIDING, one["verb"], datetime.fromisoformat(one["since"])) for one in told
    ]


def deciding(reader: Person, tenants: list[uuid.UUID], now: datetime) -> QuerySet[Presence, Any]:
    """For a subquery: who decides about a task of which cause (tenant, workflow, reason, tool)."""
    rows = _recent(now).filter(tenant_id__in=tenants, doing=DECIDING, task__state__in=TASK_OPEN)
    told = JSONObject(
        tenant="task__tenant_id", workflow="task__workflow_name", reason="task__reason_code", tool="task__tool",
        name="person__name",
    )  # fmt: skip
    return rows.exclude(person=reader).order_by("person__name").values(json=told)[:MOST_DECIDING]


def by_cause(told: list[dict[str, Any]]) -> dict[tuple[Any, ...], list[str]]:
    """The names of those who decide, by cause; somebody with two sheets of one cause is named once."""
    found: dict[tuple[Any, ...], list[str]] = {}
    for one in told:
        names = found.setdefault((uuid.UUID(one["tenant"]), one["workflow"], one["reason"], one["tool"]), [])
        if one["name"] not in names:
            names.append(one["name"])
    return found


def _recent(now: datetime) -> QuerySet[Presence]:
    return Presence.objects.filter(seen_at__gt=Value(now - GONE_AFTER))
