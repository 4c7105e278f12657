"""Causes: what open tasks have in common (tenant, workflow, reason, tool), added up, and the tasks behind one."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg, BoolAnd
from django.db.models import BooleanField, Case, CharField, Count, F, Func, Max, Min, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Cast, Coalesce, Concat, JSONObject

from console.builders import changed
from recovery.models import HumanTask
from recovery.rules import messages
from recovery.rules.situation import ASKED_AGAIN

CAUSE = ("tenant_id", "workflow_name", "reason_code", "tool")
UNDECLARED = Q(action__effect="write") & (Q(value_minor__isnull=True) | Q(currency=""))
"""Tasks about a write of which nobody said how much it moves: an amount without a currency says it as little."""
HELD = Q(state__in=("claimed", "awaiting_approval"))
"""Tasks in somebody's hands, also while a second person is asked."""
HAS_IT = Coalesce("claimed_by__name", "owner__name")
"""Who holds a task, else whom it was given to."""
Cause = tuple[uuid.UUID, str, str, str]


class LooksUp(Func):
    """Whether a manifest declares a look-up for a tool; asked in the list's own statement."""

    function = "jsonb_path_exists"
    arg_joiner = ", '$.tools[*] ? (@.name == $tool && @.reconcile != null)'::jsonpath, "
    output_field = BooleanField()


CAN_LOOK = Case(
    When(Q(action__state="held") & ~Q(action__verdict__in=ASKED_AGAIN), then=Value(False)),
    default=LooksUp(F("run__workflow__manifest"), JSONObject(tool=F("tool"))),
)
"""Whether a look-up could still say what happened: a call is held once none is left that would (rule 9h)."""


@dataclass
class Heap:
    """The tasks of one cause, added up; the money is apart by currency."""

    cause: Cause
    count: int = 0
    amounts: list[tuple[int | None, str]] = field(default_factory=list)
    first: datetime | None = None
    last: datetime | None = None
    due: datetime | None = None
    consequence: int = 0
    claimed: int = 0
    undeclared: int = 0
    version: int = 0
    claimers: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    one_id: uuid.UUID | None = None
    ranked: str = ""
    pause: str = ""
    reads: bool = True
    looks_up: bool = True

    @property
    def key(self) -> str:
        """Names the cause in an address and in an id."""
        return hashlib.sha256(repr([str(part) for part in self.cause]).encode()).hexdigest()[:12]

    @property
    def why(self) -> str:
        """Why the most urgent of them stands where it does."""
        return self.ranked.partition(" ")[2]

    def add(self, row: dict[str, Any]) -> None:
        self.count += row["n"]
        self.amounts.append((row["money"], row["currency"]))
        self.first = min(filter(None, (self.first, row["first"])))
        self.last = max(filter(None, (self.last, row["last"])))
        self.due = min(filter(None, (self.due, row["due"])))
        self.consequence = max(self.consequence, row["worst"])
        self.claimed += row["claimed"]
        self.undeclared += row["silent"]
        self.version = max(self.version, row["newest"])
        self.claimers |= {name for name in row["claimers"] if name}
        self.changed |= set(row["answers"])
        self.reads = self.reads and bool(row["reads"])
        self.looks_up = self.looks_up and bool(row["looks_up"])
        self.ranked = max(self.ranked, row["ranked"])
        self.pause = row["still"] if self.count == row["n"] and row["running"] == 0 else ""
        self.one_id = uuid.UUID(row["one_id"])


def title_of(reason: str, tool: str) -> str:
    """What failed, in a sentence: the title of a cause."""
    said = messages.title(reason)
    return f"{tool}: {said[:1].lower()}{said[1:]}" if tool else said


def heaps(tasks: QuerySet[HumanTask], limit: int) -> list[Heap]:
    """The causes of these tasks, the most consequential first, then the most urgent; in one statement."""
    rows = (
        tasks.annotate(answer=changed.of_task(), can_look=CAN_LOOK)
        .values(*CAUSE, "currency")
        .annotate(
            n=Count("pk"),
            money=Sum("value_minor"),
            first=Min("opened_at"),
            last=Max("opened_at"),
            due=Min("due_at"),
            worst=Max("consequence"),
            claimed=Count("pk", filter=HELD),
            silent=Count("pk", filter=UNDECLARED),
            newest=Max("version"),
            ranked=Max(Concat(as_text("consequence"), Value(" "), "priority_reason")),
            still=Max("pause"),
            running=Count("pk", filter=Q(pause="")),
            reads=BoolAnd(Q(action__effect="read")),
            looks_up=BoolAnd("can_look"),
            claimers=ArrayAgg(HAS_IT, filter=HELD | Q(owner__isnull=False), distinct=True, default=[]),
            answers=ArrayAgg("answer", distinct=True),
            one_id=Min(as_text("pk")),
        )
        .order_by("-worst", "due")[:limit]
    )
    found: dict[Cause, Heap] = {}
    for row in rows:
        cause: Cause = (row["tenant_id"], row["workflow_name"], row["reason_code"], row["tool"])
        found.setdefault(cause, Heap(cause)).add(row)
    return sorted(found.values(), key=lambda heap: (-heap.consequence, heap.due))


def members(tasks: QuerySet[HumanTask], heap: Heap, *, limit: int, after: str = "") -> list[HumanTask]:
    """The next tasks of a cause; `after` is the id of the last task of the page before."""
    tenant_id, workflow, reason, tool = heap.cause
    rows = tasks.filter(tenant_id=tenant_id, workflow_name=workflow, reason_code=reason, tool=tool)
    last = rows.filter(pk=after).values("consequence", "due_at", "pk").first() if after else None
    if last is not None:
        later = Q(due_at__gt=last["due_at"]) | Q(due_at=last["due_at"], pk__gt=last["pk"])
        rows = rows.filter(Q(consequence__lt=last["consequence"]) | Q(consequence=last["consequence"]) & later)
    rows = rows.annotate(answer=changed.of_task(), effect=F("action__effect"), can_look=CAN_LOOK)
    rows = rows.select_related("run", "claimed_by", "owner")
    return list(rows.order_by("-consequence", "due_at", "pk")[:limit])


def as_text(field: str) -> Cast:
    """Ids have no smallest or greatest before PostgreSQL 18; as text they sort the same."""
    return Cast(field, CharField())
