"""Bulk operations: one with its totals, its dry run and its items, and the list of them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import Count, Max, Min, Q, QuerySet
from django.http import QueryDict
from django.urls import reverse

from console import filters, forms, looks
from console.access import Visit
from console.builders import bulk_start, readable, words
from console.builders.sent import Typed
from console.pages.bulk import DryRow, Figure, ItemRow, Move, OperationPage, OperationRow, OperationsPage, Segment
from console.pages.common import Empty, Flash, Link, Live, Tab
from console.selections import Selection, Unreadable
from recovery.bulk_models import CLASSES
from recovery.models import BulkItem, BulkOperation
from recovery.rules import bulk as rules
from recovery.rules.policy import LABELS
from runs.ids import parse_id
from runs.querysets import TenantQuerySet

PAGE = 50
MOST_OPEN = 100
STATES = ("done", "skipped", "failed", "pending")
OPEN = ("created", "running", "suspended")
WIDTH = 1000
GAP = 3


@dataclass(frozen=True)
class Place:
    """Which items a page shows: of one state or one class of the dry run, from a place on."""

    state: str = ""
    kind: str = ""
    after: int = 0

    def address(self, **changes: object) -> str:
        return filters.query(**{"state": self.state, "kind": self.kind, **changes}) if self.state or self.kind or any(
            changes.values()
        ) else "?"  # fmt: skip


@dataclass(frozen=True)
class Totals:
    """How many items are in each state and each class; how many of the pending ones are under way."""

    states: dict[str, int]
    kinds: dict[str, int]
    begun: int
    canary: int
    canary_left: int
    canary_until: datetime | None
    sentences: dict[str, str]

    @property
    def total(self) -> int:
        return sum(self.states.values())


def rows_of(visit: Visit) -> TenantQuerySet[BulkOperation]:
    """Every operation that this person may see."""
    found = BulkOperation.objects.filter(tenant_id__in=list(visit.tenants))
    return found.select_related("by", "started_by", "changed_by")


def totals(operation: BulkOperation) -> Totals:
    """In one grouped statement, so that the parts are of one moment and always add up (U04)."""
    grouped = operation.items.order_by().values("state", "kind", "canary").annotate(
        n=Count("pk"), begun=Count("pk", filter=Q(begun_at__isnull=False, state="pending")), until=Max("ended_at"),
        said=Min("sentence"), other=Max("sentence"),
    )  # fmt: skip
    states, kinds, said = dict.fromkeys(STATES, 0), dict.fromkeys(("", *CLASSES), 0), dict[str, set[str]]()
    begun = canary = left = 0
    until: datetime | None = None
    for row in grouped:
        states[row["state"]] += row["n"]
        kinds[row["kind"]] += row["n"]
        said.setdefault(row["kind"], set()).update((row["said"], row["other"]))
        begun += row["begun"]
        if row["canary"]:
            canary += row["n"]
            left += row["n"] if row["state"] == "pending" else 0
            until = max(filter(None, (until, row["until"])), default=None)
    alike = {kind: next(iter(texts)) if len(texts) == 1 else "" for kind, texts in said.items()}
    return Totals(states, kinds, begun, canary, left, until, alike)


def version(operation: BulkOperation, place: Place, count: Totals) -> tuple[object, ...]:
    """What the live part is drawn from."""
    return operation.pk, operation.version, place, count


def page(
    visit: Visit,
    operation: BulkOperation,
    place: Place,
    count: Totals,
    *,
    live: Live,
    typed: Typed,
    flashes: list[Flash],
) -> OperationPage:
    """One operation as it stands."""
    selection = _selection(operation)
    shown, more = _items(operation, place)
    drawn, unreadable = readable.rows(shown, partial(_item, operation))
    joined = _joined(visit, operation, selection)
    url = reverse("bulk_operation", args=[operation.pk])
    return OperationPage(
        title=f"{LABELS[operation.verb]}, {words.plural(count.total, 'task')}",
        operation_id=str(operation.pk),
        state=_state(operation),
        crumbs=[Link("Queue", reverse("queue")), Link("Bulk operations", reverse("bulk")), Link(operation.words, "")],
        moves=_moves(visit, operation, count),
        figures=_figures(visit, operation, count),
        segments=_segments(count),
        bar_words=_identity(count),
        identity=f"{_identity(count)}.",
        dry_at=operation.frozen_at,
        dry=[_dry(operation, count, kind) for kind in ("", *CLASSES) if kind or count.kinds[""]],
        how=_how(visit, operation, count),
        by=operation.by.name,
        items=drawn,
        tabs=_tabs(url, place, count),
        live=live,
        notice=_notice(operation, count),
        joined=joined,
        joined_words=" joined this selection since and are not included." if joined else "",
        start=bulk_start.form(visit, operation, count.kinds, typed) if operation.state == "created" else None,
        next_url=url + place.address(after=shown[-1].place) if more else "",
        leftovers=_leftovers(visit, operation, count),
        empty=None if shown else Empty("No item is so.", f"Checked {words.clock(visit.now)}.", Link("Show all", url)),
        flashes=flashes,
        unreadable=unreadable,
    )


def _selection(operation: BulkOperation) -> Selection:
    try:
        return Selection.read(QueryDict(operation.address.removeprefix("?")))
    except Unreadable:
        return Selection(task=(operation.pk,))  # an address of an older version: nothing can join it


def _joined(visit: Visit, operation: BulkOperation, selection: Selection) -> Link | None:
    """How many open tasks the same selection has now that are on no list of this operation."""
    if selection.task or selection.left_of is not None or not visit.may("view", operation.tenant_id):
        return None
    own = replace(visit, person=operation.by, chosen=visit.tenants[operation.tenant_id])
    since = selection.tasks(own).exclude(pk__in=operation.items.values("task"))
    count = since.order_by().values("pk")[: filters.CAP + 1].count()
    url = reverse("bulk_new") + selection.address(verb=operation.verb)
    return Link(words.plural(count, "task"), url) if count else None


def _state(operation: BulkOperation) -> looks.Look:
    by_rule = operation.state == "suspended" and operation.changed_by is None
    return looks.SUSPENDED_BY_RULE if by_rule else looks.look("bulk", operation.state)


def _identity(count: Totals) -> str:
    parts = " + ".join(f"{count.states[state]} {state}" for state in STATES)
    return f"{count.total} = {parts}"


def _segments(count: Totals) -> list[Segment]:
    """Each state's share of the bar; one that is not empty is never thinner than can be seen."""
    shown = [(state, count.states[state]) for state in STATES if count.states[state]]
    room = WIDTH - GAP * (len(shown) - 1)
    widths = [max(6, room * number // count.total) for _, number in shown]
    if widths:
        widths[widths.index(max(widths))] += room - sum(widths)
    found, x = [], 0
    for (state, _), width in zip(shown, widths, strict=True):
        found.append(Segment(x, width, state))
        x += width + GAP
    return found


def _figures(visit: Visit, operation: BulkOperation, count: Totals) -> list[Figure]:
    icons = {"done": "check", "skipped": "circle-minus", "failed": "circle-x", "pending": "circle-dashed"}
    notes = {"pending": f"{count.begun} under way" if count.begun else ""}
    when = words.moment(operation.frozen_at, visit.now)
    return [
        Figure(f"Total, frozen {when}", f"{count.total:,}"),
        *(Figure(name.capitalize(), f"{count.states[name]:,}", notes.get(name, ""), icons[name]) for name in STATES),
        Figure("Rate", f"{operation.rate:,}", "a minute at most") if operation.rate else Figure("Rate", "none yet"),
        Figure("Time left", *_left(operation, count)),
    ]  # fmt: skip


def _left(operation: BulkOperation, count: Totals) -> tuple[str, str]:
    """How long what is not begun takes at this rate; the last answers come a little later."""
    waiting = count.states["pending"] - count.begun
    if operation.ended_at is not None:
        return "none", "it has ended"
    if operation.state == "created":
        return "unknown", "until it is started"
    if not waiting:
        return "none", f"waits for {words.plural(count.begun, 'answer')}"
    told = words.lasting(max(1, -(-waiting * 60 // operation.rate)))
    return f"{told}", "at least, after resume" if operation.state == "suspended" else "at least"


def _notice(operation: BulkOperation, count: Totals) -> Flash | None:
    if operation.state != "suspended":
        return None
    who = f"{operation.changed_by.name} suspended it" if operation.changed_by else "Suspended"
    why = f": {operation.why}" if operation.why else "."
    pending = count.states["pending"] - count.begun
    left = f"{words.plural(pending, 'item')} {'is' if pending == 1 else 'are'} pending and nothing is begun."
    text = f"{left} Resume goes on with the pending items only. Stopping undoes nothing."
    look = looks.Look("warn", "pause", "Suspended")
    return Flash(look, f"{who} at {operation.changed_at:%H:%M:%S} UTC{why}", text)


def _moves(visit: Visit, operation: BulkOperation, count: Totals) -> list[Move]:
    """Resume, suspend and stop where they stand to reason; one that is not possible now says why."""
    if operation.ended_at is not None:
        return []
    bar = rules.refusal(visit.grants.get(operation.tenant_id, frozenset()), operation.verb, count.total)

    def move(name: str, label: str, icon: str, css: str, blocked: str) -> Move:
        url = reverse(f"bulk_{name}", args=[operation.pk])
        return Move(label, icon, url, str(operation.version), forms.new_key(), css, bar or blocked)

    state = operation.state
    stop = move("stop", "Stop", "square", "danger", "")
    if state == "created":
        return [stop]
    resume = move(
        "resume", "Resume", "play", "fill" if state == "suspended" else "", "It is running." * (state == "running")
    )
    suspend = move("suspend", "Suspend", "pause", "", "It is suspended." * (state == "suspended"))
    return [resume, suspend, stop]


def _dry(operation: BulkOperation, count: Totals, kind: str) -> DryRow:
    number = count.kinds[kind]
    url = reverse("bulk_operation", args=[operation.pk]) + filters.query(kind=kind) if kind and number else ""
    several = (
        "ready now; each one is checked again when it has its turn" if kind == "will_run" else "for several reasons"
    )
    said = count.sentences.get(kind, "") or several
    said = "A worker is at it." if not kind else said
    return DryRow(looks.look("dry_run", kind or "unseen"), number, said if number else "none", url)


def _how(visit: Visit, operation: BulkOperation, count: Totals) -> list[tuple[str, str]]:
    told = [("Selection", operation.words), ("Workflow versions", operation.versions or "one")]
    if operation.started_at is None:
        return [*told, ("Key", operation.key)]
    started = operation.started_by.name if operation.started_by else "nobody"
    failures = words.plural(operation.stop_after, "failure")
    return [
        *told,
        ("Started", f"by {started} at {words.moment(operation.started_at, visit.now)}"),
        ("Reason", operation.reason or "none"),
        ("Canary", _canary(visit, count)),
        ("Stops at", f"{failures}, or anything unexpected in the canary"),
        ("Key", operation.key),
    ]


def _canary(visit: Visit, count: Totals) -> str:
    if not count.canary:
        return "none"
    first = f"{words.plural(count.canary, 'item')} first"
    if count.canary_left or count.canary_until is None:
        return f"{first}, {count.canary_left} without an outcome"
    return f"{first}, through at {words.moment(count.canary_until, visit.now)}"


def _tabs(url: str, place: Place, count: Totals) -> list[Tab]:
    def tab(label: str, number: int, at: Place) -> Tab:
        return Tab(label, url + at.address(), f"{number:,}", replace(place, after=0) == at)

    by_state = [tab(name.capitalize(), count.states[name], Place(state=name)) for name in STATES]
    if place.kind:
        by_state.append(tab(looks.look("dry_run", place.kind).word, count.kinds[place.kind], Place(kind=place.kind)))
    return [tab("All", count.total, Place()), *by_state]


def _items(operation: BulkOperation, place: Place) -> tuple[list[BulkItem], bool]:
    rows = operation.items.filter(place__gt=place.after)
    rows = rows.filter(state=place.state) if place.state else rows
    rows = rows.filter(kind=place.kind) if place.kind else rows
    found = list(rows.select_related("task__run", "task__action", "decision").order_by("place")[: PAGE + 1])
    return found[:PAGE], len(found) > PAGE


def _item(operation: BulkOperation, item: BulkItem) -> ItemRow:
    """One item. What is known of its call is read now; what came of the item was written when it ended."""
    task, action = item.task, item.task.action
    return ItemRow(
        place=item.place,
        number=words.number(task.number),
        url=reverse("task", args=[task.pk]),
        title=words.title(task.run.intent),
        amount=words.money(task.value_minor, task.currency),
        state=looks.look("bulk_item", item.state),
        known=looks.look("action", action.state) if action is not None else None,
        words=item.words or _waits(operation, item),
        note=", ".join(filter(None, ["canary" if item.canary else "", item.code.replace("_", " ")])),
        at=item.ended_at,
    )


def _waits(operation: BulkOperation, item: BulkItem) -> str:
    if item.begun_at is not None:
        return "under way: its answer is awaited"
    if operation.state in ("created", "cancelled"):
        return item.sentence
    return "permission and evidence are checked when it runs"


def _leftovers(visit: Visit, operation: BulkOperation, count: Totals) -> Link | None:
    """What was not done, as a selection of its own; while it runs, what is pending still has its turn here."""
    left = count.total - count.states["done"]
    if operation.state in ("created", "running") or not left:
        return None
    address = Selection(tenant=visit.tenants[operation.tenant_id].slug, left_of=operation.pk)
    return Link(f"Take the {left} left as a selection", reverse("bulk_new") + address.address(verb=operation.verb))


# --- the list ------------------------------------------------------------------------------------------------


def listed(visit: Visit, asked: QueryDict, flashes: list[Flash]) -> OperationsPage:
    """Those that have not ended, running ones first; or those that have, newest first."""
    ended, before = asked.get("view") == "ended", parse_id(asked.get("before", ""))
    rows = rows_of(visit).filter(tenant_id__in=visit.scope)
    found, more = _ended(rows, before) if ended else (_open(rows), False)
    counted = _counted(found)
    here, slug = reverse("bulk"), visit.chosen.slug if visit.chosen else ""
    return OperationsPage(
        title="Bulk operations",
        summary=words.plural(len(found), "operation") + (", and more" if more else ""),
        tabs=[
            Tab("Not ended", here + filters.query(tenant=slug), "", not ended),
            Tab("Ended", here + filters.query(view="ended", tenant=slug), "", ended),
        ],
        rows=[_row(visit, one, counted[one.pk]) for one in found],
        crumbs=[Link("Queue", reverse("queue")), Link("Bulk operations", "")],
        empty=None if found else _nothing(visit, ended=ended),
        next_url=here + filters.query(view="ended", tenant=slug, before=found[-1].pk) if more else "",
        flashes=flashes,
    )


def _open(rows: QuerySet[BulkOperation]) -> list[BulkOperation]:
    order = {"running": 0, "suspended": 1, "created": 2}
    found = list(rows.filter(ended_at__isnull=True).order_by("-pk")[:MOST_OPEN])
    return sorted(found, key=lambda one: order[one.state])


def _ended(rows: QuerySet[BulkOperation], before: uuid.UUID | None) -> tuple[list[BulkOperation], bool]:
    rows = rows.filter(ended_at__isnull=False)
    found = list((rows.filter(pk__lt=before) if before else rows).order_by("-pk")[: PAGE + 1])
    return found[:PAGE], len(found) > PAGE


def _counted(found: list[BulkOperation]) -> dict[uuid.UUID, dict[str, int]]:
    counted: dict[uuid.UUID, dict[str, int]] = {one.pk: dict.fromkeys(STATES, 0) for one in found}
    rows: Any = BulkItem.objects.filter(operation__among=list(counted)).order_by()
    for operation_id, state, number in rows.values_list("operation", "state").annotate(n=Count("pk")):
        counted[operation_id][state] = number
    return counted


def _row(visit: Visit, operation: BulkOperation, counted: dict[str, int]) -> OperationRow:
    parts = " + ".join(f"{counted[state]} {state}" for state in STATES if counted[state])
    return OperationRow(
        title=f"{LABELS[operation.verb]}, {words.plural(sum(counted.values()), 'task')}",
        url=reverse("bulk_operation", args=[operation.pk]),
        tenant=visit.named(operation.tenant_id),
        words=operation.words,
        state=_state(operation),
        counts=parts,
        by=(operation.started_by or operation.by).name,
        at=operation.changed_at,
    )


def _nothing(visit: Visit, *, ended: bool) -> Empty:
    checked = f"Checked {words.clock(visit.now)}."
    if ended:
        return Empty("No bulk operation has ended.", checked)
    text = f"One begins in the queue: choose tasks of a cause, or take all of it. {checked}"
    return Empty("No bulk operation is under way.", text, Link("Open the queue", reverse("queue")))
