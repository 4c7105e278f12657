"""The queue: open tasks by cause, the open cause with its tasks, money per currency, and what came since."""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import CharField, Count, F, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import Cast
from django.urls import reverse

from console import filters, forms, looks
from console.access import Visit
from console.builders import changed, words
from console.filters import QueueView
from console.looks import Look
from console.pages.common import Empty, Flash, Link, Live, Money, Person, Sla, Tab, Verb
from console.pages.queue import Group, News, QueuePage, Row
from recovery.models import HumanTask
from recovery.rules import messages
from recovery.rules.policy import LABELS
from runs.ids import parse_id

log = logging.getLogger(__name__)

MAX_GROUPS = 200
MAX_ROWS = 25
CAUSE = ("tenant_id", "workflow_name", "reason_code", "tool")
Cause = tuple[uuid.UUID, str, str, str]

RECOMMENDED = {"external_outcome_unknown": "reconcile", "postcondition_unproven": "reconcile"}


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
    claimers: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    one_id: uuid.UUID | None = None

    @property
    def key(self) -> str:
        """Names the cause in an address and in an id."""
        return hashlib.sha256(repr([str(part) for part in self.cause]).encode()).hexdigest()[:12]

    def add(self, row: dict[str, Any]) -> None:
        self.count += row["n"]
        self.amounts.append((row["money"], row["currency"]))
        self.first = min(filter(None, (self.first, row["first"])))
        self.last = max(filter(None, (self.last, row["last"])))
        self.due = min(filter(None, (self.due, row["due"])))
        self.consequence = max(self.consequence, row["worst"])
        self.claimed += row["claimed"]
        self.claimers |= {name for name in row["claimers"] if name}
        self.changed |= set(row["answers"])
        self.one_id = uuid.UUID(row["one_id"])


def heaps(tasks: QuerySet[HumanTask]) -> list[Heap]:
    """The causes of these tasks, the most consequential first, then the most urgent; in one statement."""
    rows = (
        tasks.annotate(answer=changed.of_task())
        .values(*CAUSE, "currency")
        .annotate(
            n=Count("pk"),
            money=Sum("value_minor"),
            first=Min("opened_at"),
            last=Max("opened_at"),
            due=Min("due_at"),
            worst=Max("consequence"),
            claimed=Count("pk", filter=Q(state="claimed")),
            claimers=ArrayAgg("claimed_by__name", filter=Q(state="claimed"), distinct=True, default=[]),
            answers=ArrayAgg("answer", distinct=True),
            one_id=Min(_text("pk")),
        )
        .order_by("-worst", "due")[: MAX_GROUPS + 1]
    )
    found: dict[Cause, Heap] = {}
    for row in rows:
        cause: Cause = (row["tenant_id"], row["workflow_name"], row["reason_code"], row["tool"])
        found.setdefault(cause, Heap(cause)).add(row)
    return sorted(found.values(), key=lambda heap: (-heap.consequence, heap.due))


def _text(field: str) -> Cast:
    """Ids have no smallest or greatest before PostgreSQL 18; as text they sort the same."""
    return Cast(field, CharField())


def members(tasks: QuerySet[HumanTask], heap: Heap, after: str = "") -> list[HumanTask]:
    """A page of a cause's tasks and one more; `after` is the id of the last task of the page before."""
    tenant_id, workflow, reason, tool = heap.cause
    rows = tasks.filter(tenant_id=tenant_id, workflow_name=workflow, reason_code=reason, tool=tool)
    last = rows.filter(pk=after).values("consequence", "due_at", "pk").first() if after else None
    if last is not None:
        later = Q(due_at__gt=last["due_at"]) | Q(due_at=last["due_at"], pk__gt=last["pk"])
        rows = rows.filter(Q(consequence__lt=last["consequence"]) | Q(consequence=last["consequence"]) & later)
    rows = rows.annotate(answer=changed.of_task()).select_related("run", "claimed_by")
    return list(rows.order_by("-consequence", "due_at", "pk")[: MAX_ROWS + 1])


@dataclass(frozen=True)
class Address:
    """Where the reader stands: the tab, the open cause and the place inside it."""

    view: QueueView
    tenant: str = ""
    open: str = ""
    after: str = ""

    def to(self, **changes: str) -> str:
        asked = {"view": "" if self.view.name == "all" else self.view.name, "tenant": self.tenant, "open": self.open}
        return reverse("queue") + filters.query(**{**asked, **changes})


def page(
    visit: Visit,
    address: Address,
    *,
    live: Live,
    counts: dict[str, int],
    flashes: list[Flash],
) -> QueuePage:
    """The whole queue as `address` says it."""
    tasks = filters.open_tasks(visit).filter(address.view.narrow(visit))
    found = heaps(tasks)
    groups, unreadable = _groups(visit, address, tasks, found[:MAX_GROUPS])
    total = sum(heap.count for heap in found)
    return QueuePage(
        title=_page_title(address),
        summary=_summary(total, len(found)),
        sums=words.sums(amount for heap in found for amount in heap.amounts),
        tabs=_tabs(address, counts),
        groups=groups,
        live=live,
        filters=_chosen(visit, address),
        flashes=flashes,
        empty=None if groups or unreadable else _empty(visit, address, counts),
        unreadable=unreadable,
    )


def _summary(total: int, causes: int) -> str:
    if not total:
        return "no tasks"
    more = f"{words.plural(total, 'task')} in {words.plural(causes, 'cause')}"
    return f"the first {MAX_GROUPS} causes, {words.plural(total, 'task')}" if causes > MAX_GROUPS else more


def heading(visit: Visit, address: Address, *, live: Live, news: News | None) -> QueuePage:
    """Only what the polled title line shows."""
    tasks = filters.open_tasks(visit).filter(address.view.narrow(visit))
    causes = tasks.values(*CAUSE).distinct()
    return QueuePage(
        title=_page_title(address),
        summary=_summary(tasks.count(), causes.count()),
        sums=at_risk(tasks),
        tabs=[],
        groups=[],
        live=live,
        news=news,
    )


def _page_title(address: Address) -> str:
    return "Queue" if address.view.name == "all" else address.view.label


def news(visit: Visit, address: Address, since: str) -> News | None:
    """What came after the newest task that the reader has been shown."""
    mark = parse_id(since)
    if mark is None:
        return None
    fresh = filters.open_tasks(visit).filter(address.view.narrow(visit), pk__gt=mark)
    found = fresh.aggregate(tasks=Count("pk"), causes=Count("cause", distinct=True))
    if not found["tasks"]:
        return None
    return News(f"{words.plural(found['tasks'], 'new task')}, show", address.to())


def _groups(
    visit: Visit, address: Address, tasks: QuerySet[HumanTask], found: Sequence[Heap]
) -> tuple[list[Group], list[str]]:
    groups: list[Group] = []
    unreadable: list[str] = []
    for heap in found:
        try:
            built = group(visit, address, heap)
            if heap.key == address.open:
                built, broken = _opened(visit, address, tasks, heap, built)
                unreadable += broken
            groups.append(built)
        except Exception:
            # One record that cannot be shown must not take the queue away from the people who work on the others.
            log.exception("the cause of task %s cannot be shown", heap.one_id)
            unreadable.append(str(heap.one_id))
    return groups, unreadable


def group(visit: Visit, address: Address, heap: Heap) -> Group:
    """A cause by itself, closed."""
    tenant_id, workflow, reason, tool = heap.cause
    assert heap.first is not None and heap.last is not None and heap.due is not None  # noqa: S101, PT018  (count > 0)
    answer = changed.worst(list(heap.changed))
    opened = address.to(open=heap.key)
    single = reverse("task", args=[heap.one_id]) if heap.count == 1 else opened
    claimer = min(heap.claimers, default="")
    return Group(
        key=heap.key,
        title=cause_title(reason, tool),
        url=single,
        toggle_url=address.to(open="") if heap.key == address.open else opened,
        tenant=visit.named(tenant_id),
        reason_code=reason,
        tool=tool or "the run",
        workflow=workflow,
        changed=looks.ANYTHING_CHANGED[answer],
        retry=retry_look(answer, reason, tool),
        count=heap.count,
        at_risk=words.sums(heap.amounts),
        first_seen_at=heap.first,
        last_seen_at=heap.last,
        sla=Sla(heap.first, heap.due),
        owner=Person(claimer, you=claimer == visit.person.name) if claimer else None,
        owner_note=f"{heap.claimed} of {heap.count} claimed" if heap.count > 1 else "",
        verb=_shared_verb(visit, heap, opened),
        open=False,
    )


def cause_title(reason: str, tool: str) -> str:
    """What failed, in a sentence: the title of a cause."""
    said = messages.title(reason)
    return f"{tool}: {said[:1].lower()}{said[1:]}" if tool else said


def retry_look(answer: str, reason: str, tool: str) -> Look:
    """The short form of "is retry safe" for a list; the task's page asks the rules about its own evidence."""
    if reason == "approval_required":
        return looks.RETRY_SAFE["after_approval"]
    if reason == "user_input_required":
        return looks.RETRY_SAFE["after_input"]
    if not tool or answer in ("yes", "undone"):
        return looks.RETRY_SAFE["nothing_to_retry"]
    if answer == "unknown":
        return looks.RETRY_SAFE["check_first"]
    return looks.RETRY_SAFE["yes" if reason == "external_outcome_resolved" else "no"]


def _shared_verb(visit: Visit, heap: Heap, opened: str) -> Verb | None:
    """The one action that helps every task of this cause, for somebody whose role includes it."""
    name = RECOMMENDED.get(heap.cause[2], "")
    if not name or not visit.may(name, heap.cause[0]):
        return None
    several = heap.count > 1
    url = opened if several else reverse(name, args=[heap.one_id])
    label = f"Check {heap.count}" if several else LABELS[name]
    method = "link" if several else "get"
    return Verb(name, label, looks.VERB_ICONS[name], url, "Asks the provider; reads only.", method=method)


def _opened(
    visit: Visit, address: Address, tasks: QuerySet[HumanTask], heap: Heap, built: Group
) -> tuple[Group, list[str]]:
    found = members(tasks, heap, address.after)
    shown, unreadable = _rows(visit, found[:MAX_ROWS])
    more = len(found) > MAX_ROWS
    left = heap.count - MAX_ROWS if more and not address.after else 0
    return (
        replace(
            built,
            open=True,
            rows=shown,
            more=left or (1 if more else 0),
            more_url=address.to(after=str(found[MAX_ROWS - 1].pk)) if more else "",
        ),
        unreadable,
    )


def _rows(visit: Visit, tasks: Iterable[HumanTask]) -> tuple[list[Row], list[str]]:
    rows: list[Row] = []
    unreadable: list[str] = []
    for task in tasks:
        try:
            rows.append(row(visit, task))
        except Exception:
            log.exception("task %s cannot be shown", task.pk)
            unreadable.append(str(task.pk))
    return rows, unreadable


def row(visit: Visit, task: HumanTask) -> Row:
    """One task of an open cause."""
    answer: str = task.answer  # type: ignore[attr-defined]
    return Row(
        number=words.number(task.number),
        title=words.title(task.run.intent),
        url=reverse("task", args=[task.pk]),
        changed=looks.ANYTHING_CHANGED[answer],
        retry=retry_look(answer, task.reason_code, task.tool),
        at_risk=words.sums([(task.value_minor, task.currency)]),
        last_seen_at=task.opened_at,
        sla=Sla(task.opened_at, task.due_at),
        owner=_owner(visit, task),
        owner_note=_left(visit, task),
        claim=_claim(visit, task),
    )


def _owner(visit: Visit, task: HumanTask) -> Person | None:
    if task.state != "claimed" or task.claimed_by is None:
        return None
    return Person(task.claimed_by.name, you=task.claimed_by_id == visit.person.pk)


def _left(visit: Visit, task: HumanTask) -> str:
    if task.state != "claimed" or task.claimed_until is None:
        return ""
    seconds = (task.claimed_until - visit.now).total_seconds()
    return f"{words.lasting(max(seconds // 60 * 60, 60))} left" if seconds > 0 else "claim has ended"


def _claim(visit: Visit, task: HumanTask) -> Verb | None:
    if task.state not in ("open", "reopened") or not visit.may("claim", task.tenant_id):
        return None
    url = reverse("claim", args=[task.pk])
    return Verb(
        "claim", LABELS["claim"], looks.VERB_ICONS["claim"], url, "Yours for 30 minutes.",
        method="post", version=str(task.version), key=forms.new_key(),
    )  # fmt: skip


def _tabs(address: Address, counts: dict[str, int]) -> list[Tab]:
    return [
        Tab(
            view.label,
            replace(address, view=view, open="").to(),
            filters.capped(counts[view.name]),
            view == address.view,
            "bad" if view.name == "breaching" and counts[view.name] else "",
        )
        for view in filters.QUEUE_VIEWS
    ]


def _chosen(visit: Visit, address: Address) -> list[Link]:
    if visit.chosen is None:
        return []
    return [Link(f"Tenant: {visit.chosen.name}", replace(address, open="").to(tenant=""))]


def _empty(visit: Visit, address: Address, counts: dict[str, int]) -> Empty:
    checked = f"Checked {words.clock(visit.now)}."
    if not visit.tenants:
        return Empty("You belong to no tenant yet.", "An admin of a tenant can give you a role there.")
    if address.view.name == "all":
        text = f"Every call of these tenants is settled, or is being settled without a person. {checked}"
        return Empty(
            "No open tasks.", text, Link("Open runs", reverse("runs") + filters.query(tenant=address.tenant))
        )
    all_url = Address(filters.queue_view("all"), address.tenant).to()
    others = words.plural(counts["all"], "open task")
    return Empty(f"Nothing in {address.view.label.lower()}.", f"{others} without this filter. {checked}",
                 Link("Show all", all_url))  # fmt: skip


def at_risk(tasks: QuerySet[HumanTask]) -> list[Money]:
    """The money in these tasks, one sum per currency."""
    rows = tasks.values("currency").annotate(total=Sum("value_minor")).values_list("total", "currency")
    return words.sums(rows)


def version(visit: Visit, address: Address) -> tuple[Any, ...]:
    """What the title line and the bar are drawn from, as few numbers: it changes when a task comes, goes or moves."""
    tasks = filters.open_tasks(visit).filter(address.view.narrow(visit))
    found = tasks.aggregate(n=Count("pk"), moved=Sum(F("version")), newest=Max(_text("pk")))
    return found["n"], found["moved"], found["newest"]
