"""Causes: what open tasks have in common (tenant, workflow, reason, tool), added up, and the tasks behind one.

A list of any length is read from the totals that PostgreSQL keeps, and what cannot be added up (the first, the last,
the most urgent) by one look at an index per cause. Lists that follow the clock or a person are read row by row, as
far as a screen is of use.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import CharField, Q, QuerySet, Sum
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast, Coalesce

from console.access import Visit
from console.filters import QueueView
from recovery.models import HumanTask
from recovery.rules import messages
from recovery.totals import CauseTotal, heap_of
from runs.ids import parse_id

MOST_READ = 500
"""How many tasks of a list are read row by row."""
MOST_SORTED = 400
"""How many causes, the most consequential first, are put in order by the time that is left."""
IN_TURN = ("-consequence", "due_at", "pk")
HELD_STATES = ("claimed", "awaiting_approval")
HELD = Q(state__in=HELD_STATES)
"""Tasks in somebody's hands, also while a second person is asked."""
UNDECLARED = Q(effect="write") & (Q(value_minor__isnull=True) | Q(currency=""))
"""Tasks about a write of which nobody said how much it moves: an amount without a currency says it as little."""
HAS_IT = Coalesce("claimed_by__name", "owner__name")
"""Who holds a task, else whom it was given to."""
GIVEN = Q(claimed_by__isnull=False) | Q(owner__isnull=False)
ALIKE = ("heap", "tenant_id", "workflow_name", "reason_code", "tool", "currency", "consequence", "answer")
SUMS = ("n", "money", "silent", "held", "reading", "looking", "running")
READ = (
    *ALIKE, "pk", "version", "state", "value_minor", "effect", "looks_up", "pause", "opened_at", "due_at",
    "priority_reason",
)  # fmt: skip
CAUSE = ("tenant_id", "workflow_name", "reason_code", "tool")
Cause = tuple[uuid.UUID, str, str, str]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MARK = re.compile(r"(\d{1,4})\.(\d{1,16})\.([0-9a-f-]{36})")


@dataclass
class Heap:
    """The tasks of one cause, added up; the money is apart by currency. `sums` as in CauseTotal."""

    cause: Cause
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SUMS, 0))
    amounts: dict[str, int] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    consequence: int = 0
    first: datetime | None = None
    last: datetime | None = None
    due: datetime | None = None
    top: tuple[int, datetime, uuid.UUID] | None = None
    one_id: uuid.UUID | None = None
    version: int = 0
    why: str = ""
    pause: str = ""
    claimer: str = ""

    @property
    def key(self) -> str:
        """Names the cause in an address and in an id."""
        return heap_of(*self.cause)

    @property
    def count(self) -> int:
        return self.sums["n"]

    @property
    def claimed(self) -> int:
        return self.sums["held"]

    @property
    def undeclared(self) -> int:
        return self.sums["silent"]

    @property
    def reads(self) -> bool:
        return self.sums["reading"] == self.count

    @property
    def looks_up(self) -> bool:
        return self.sums["looking"] == self.count

    def add(self, row: dict[str, Any]) -> None:
        """Some tasks that are alike; `money` is in the row's currency."""
        for name in SUMS:
            self.sums[name] += int(row[name])
        if row["money"] or row["n"] > row["silent"]:
            self.amounts[row["currency"]] = self.amounts.get(row["currency"], 0) + int(row["money"])
        self.changed.add(row["answer"])
        self.consequence = max(self.consequence, row["consequence"])

    def meet(self, row: dict[str, Any]) -> None:
        """One of its tasks, or what indexes say of all of them: the earliest, the latest, the most urgent."""
        self.first = min(filter(None, (self.first, row["first"])), default=None)
        self.last = max(filter(None, (self.last, row["last"])), default=None)
        self.due = min(filter(None, (self.due, row["due"])), default=None)
        self.claimer = self.claimer or row["claimer"] or ""
        if row["id"] is None:
            return
        top = (-row["consequence"], row["due_at"], row["id"])
        if self.top is None or top < self.top:
            self.top, self.one_id, self.version, self.why = top, row["id"], row["version"], row["priority_reason"]
            self.consequence, self.pause = max(self.consequence, row["consequence"]), row["pause"]


@dataclass(frozen=True)
class Heaps:
    """The causes of a list. `shown` are those of this page in their order, `more` whether others come after them.

    `whole`: whether every task was counted; else only the first of a list that is read row by row.
    """

    every: list[Heap]
    shown: list[Heap]
    more: bool = False
    whole: bool = True

    @property
    def count(self) -> int:
        return sum(heap.count for heap in self.every)

    @property
    def undeclared(self) -> int:
        return sum(heap.undeclared for heap in self.every)

    @property
    def amounts(self) -> list[tuple[int | None, str]]:
        return [(money, currency) for heap in self.every for currency, money in heap.amounts.items()]

    @property
    def stamp(self) -> list[tuple[object, ...]]:
        """Changes when a task comes, goes or moves."""
        return sorted((heap.key, *heap.sums.values(), *sorted(heap.changed)) for heap in self.every)


def title_of(reason: str, tool: str) -> str:
    """What failed, in a sentence: the title of a cause."""
    said = messages.title(reason)
    return f"{tool}: {said[:1].lower()}{said[1:]}" if tool else said


def counted(visit: Visit, view: QueueView) -> Heaps:
    """Every cause of a tab with its sums, in one statement or two; none is described yet."""
    found: dict[Cause, Heap] = {}
    if view.totals is not None:
        for row in _totals(visit, view):
            found.setdefault(_cause(row), Heap(_cause(row))).add(row)
    read = _read(found, view.row_by_row(visit)) if view.rows is not None else 0
    every = [heap for heap in found.values() if heap.count > 0]
    return Heaps(every, [], whole=read <= MOST_READ)


def described(visit: Visit, view: QueueView, found: Heaps, *, limit: int, beyond: str = "") -> Heaps:
    """The causes of one page, the most consequential first, then the most urgent; `beyond` is the key of the last
    cause of the page before. In one statement."""
    by_key = {heap.key: heap for heap in found.every}
    if view.totals is None:
        every = sorted(found.every, key=lambda heap: (heap.top, heap.key))
        rows = [heap.key for heap in every]
        start = rows.index(beyond) + 1 if beyond in rows else 0
        return Heaps(found.every, every[start : start + limit], len(every) > start + limit, found.whole)
    first = _first_ones(found.every, limit + 1, beyond)
    probed = _probed(visit, view, first, limit + 1, beyond) if first else []
    for row in probed:
        by_key[row["heap"]].meet(row)
    shown = [by_key[row["heap"]] for row in probed[:limit]]
    return Heaps(found.every, shown, len(probed) > limit, found.whole)


def _first_ones(heaps: list[Heap], limit: int, beyond: str) -> list[Heap]:
    """Those that may stand on the page: on the first one nothing less consequential than what fills it."""
    ranked = sorted(heaps, key=lambda heap: (-heap.consequence, -heap.count, heap.key))[:MOST_SORTED]
    if beyond or len(ranked) < limit:
        return ranked
    return [heap for heap in ranked if heap.consequence >= ranked[limit - 1].consequence]


def _cause(row: dict[str, Any]) -> Cause:
    return row["tenant_id"], row["workflow_name"], row["reason_code"], row["tool"]


def _totals(visit: Visit, view: QueueView) -> Iterator[dict[str, Any]]:
    """Consequence and answer are among what is alike, so that neither is said of a cause without such a task."""
    rows = CauseTotal.objects.filter(view.summed(), tenant_id__in=visit.scope).values(*ALIKE)
    for row in rows.annotate(**{f"all_{name}": Sum(name) for name in SUMS}).filter(all_n__gt=0):
        yield {**row, **{name: row[f"all_{name}"] for name in SUMS}}


def _read(found: dict[Cause, Heap], tasks: QuerySet[HumanTask]) -> int:
    """Add the first tasks of a list one by one; how many there were, at most one more than are read."""
    rows = list(tasks.values(*READ, claimer=HAS_IT)[: MOST_READ + 1])
    for row in rows[:MOST_READ]:
        heap = found.setdefault(_cause(row), Heap(_cause(row)))
        heap.add(_one(row))
        told = {"first": row["opened_at"], "last": row["opened_at"], "due": row["due_at"], "id": row["pk"]}
        heap.meet({**row, **told})
    return len(rows)


def _one(row: dict[str, Any]) -> dict[str, Any]:
    """A task as a total of one."""
    declared = row["value_minor"] is not None and row["currency"]
    return {
        **row,
        "n": 1,
        "money": row["value_minor"] or 0,
        "silent": row["effect"] == "write" and not declared,
        "held": row["state"] in HELD_STATES,
        "reading": row["effect"] == "read",
        "looking": row["looks_up"],
        "running": row["pause"] == "",
    }


def _probed(visit: Visit, view: QueueView, heaps: Sequence[Heap], limit: int, beyond: str) -> list[dict[str, Any]]:
    """What indexes say of each cause of a page; the order is made of what is alike and the time that is left."""
    parts = [tasks.filter(heap=_heap_with(reason)) for tasks, reason in view.by_cause(visit)]
    columns = ("id", "consequence", "due_at", "version", "priority_reason", "pause")
    top = _first(parts, IN_TURN, columns, "consequence DESC, due_at, id")
    due, first = _first(parts, ("due_at",), ("due_at",)), _first(parts, ("opened_at",), ("opened_at",))
    last = _first(parts, ("-opened_at",), ("opened_at",), "opened_at DESC")
    held = [tasks.filter(GIVEN).annotate(claimer=HAS_IT) for tasks in parts]
    holder = _first(held, IN_TURN, ("claimer",), "claimer")
    sql = f"""
      WITH placed AS MATERIALIZED (
        SELECT w.heap, w.reason, d.due_at AS due,
          row_number() OVER (ORDER BY w.worst DESC, least(d.due_at, w.told), w.heap) AS place
        FROM unnest(%s::text[], %s::text[], %s::int[], %s::timestamptz[]) w(heap, reason, worst, told)
        LEFT JOIN LATERAL ({due[0]}) d ON true)
      SELECT w.heap, w.due, f.opened_at AS first, l.opened_at AS last, h.claimer, t.*
      FROM (SELECT * FROM placed
        WHERE place > coalesce((SELECT b.place FROM placed b WHERE b.heap = %s), 0) ORDER BY place LIMIT %s) w
      LEFT JOIN LATERAL ({first[0]}) f ON true LEFT JOIN LATERAL ({last[0]}) l ON true
      LEFT JOIN LATERAL ({top[0]}) t ON true LEFT JOIN LATERAL ({holder[0]}) h ON true
      ORDER BY w.place"""  # noqa: S608  (compiled by Django)
    told = [(heap.key, heap.cause[2], heap.consequence, heap.due) for heap in heaps]
    known = [list(column) for column in zip(*told, strict=True)]
    params = [*known, *due[1], beyond, limit, *first[1], *last[1], *top[1], *holder[1]]
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _heap_with(reason: str) -> RawSQL:
    """The cause at hand, if it has this reason: where it has another one, nothing is looked for."""
    return RawSQL("CASE WHEN w.reason = %s THEN w.heap END", (reason,)) if reason else RawSQL("w.heap", ())


def _first(
    parts: Sequence[QuerySet[HumanTask]], order: tuple[str, ...], columns: tuple[str, ...], told: str = ""
) -> tuple[str, list[Any]]:
    """The first row of several lists by one order, each found by its own index."""
    compiled = [rows.order_by(*order).values(*columns)[:1].query.sql_with_params() for rows in parts]
    if len(compiled) == 1:
        return compiled[0][0], list(compiled[0][1])
    either = " UNION ALL ".join(f"({sql})" for sql, _ in compiled)
    order_by = f"ORDER BY {told or ', '.join(order)} LIMIT 1"
    return f"SELECT * FROM ({either}) u {order_by}", [value for _, params in compiled for value in params]  # noqa: S608


@dataclass(frozen=True)
class Mark:
    """The last task of a page by what lists are ordered by; `text` is how an address carries it."""

    consequence: int
    due_at: datetime
    task_id: uuid.UUID

    @classmethod
    def of(cls, task: HumanTask) -> Mark:
        return cls(task.consequence, task.due_at, task.pk)

    @classmethod
    def read(cls, text: str) -> Mark | None:
        """None for a text that is no mark."""
        found = MARK.fullmatch(text)
        task_id = parse_id(found[3]) if found else None
        if found is None or task_id is None:
            return None
        return cls(int(found[1]), EPOCH + timedelta(microseconds=int(found[2])), task_id)

    @property
    def text(self) -> str:
        return f"{self.consequence}.{(self.due_at - EPOCH) // timedelta(microseconds=1)}.{self.task_id}"


def members(tasks: QuerySet[HumanTask], heap: Heap, *, limit: int, after: Mark | None = None) -> list[HumanTask]:
    """The next tasks of a cause, those behind `after`."""
    rows = tasks.filter(heap=heap.key)
    if after is not None:
        # Two ranges of one index: the rest of the same consequence, and what is below it.
        behind = Q(due_at__gt=after.due_at) | Q(pk__gt=after.task_id)
        same = rows.filter(behind, consequence=after.consequence, due_at__gte=after.due_at)
        lower = rows.filter(consequence__lt=after.consequence)
        ids = [part.order_by(*IN_TURN).values("pk")[:limit] for part in (same, lower)]
        rows = rows.filter(pk__in=ids[0].union(ids[1], all=True))
    rows = rows.select_related("run", "claimed_by", "owner")
    return list(rows.order_by(*IN_TURN)[:limit])


def as_text(field: str) -> Cast:
    """Ids have no smallest or greatest before PostgreSQL 18; as text they sort the same."""
    return Cast(field, CharField())
