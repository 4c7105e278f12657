"""Unknown writes by connector and outage window: one row says how many, how much, since when, and what to do."""

from __future__ import annotations

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Max, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import TruncMinute
from django.urls import reverse
from steadyhand.manifest import Tool

from console import filters, looks, waterfall
from console.access import Visit
from console.builders import causes, words
from console.builders.causes import as_text
from console.looks import Look
from console.pages.common import Empty, Flash, Live, Verb
from console.pages.queue import News
from console.pages.unknown import UnknownPage, WindowRow, WriteRow
from console.selections import BEGAN
from console.waterfall import Lane, Stretch, Waterfall
from console.windows import Bucket, Window, windows
from recovery.models import Demotion, HumanTask
from recovery.rules import bounds
from runs import definitions
from runs.definitions import Definition
from runs.models import Circuit, Evidence, Workflow

MOST_BUCKETS = 2000
MOST_WINDOWS = 50
MOST_ROWS = 25
MOST_LANES = 12
TEACHES = (
    "A write stands here while nobody can say whether it happened: its reply was lost, or a success could not be "
    "confirmed. Those that began close together on one connector are one row."
)


@dataclass(frozen=True)
class Address:
    """Where the reader stands: the tenant, the open window and the place inside it."""

    tenant: str = ""
    open: str = ""
    after: str = ""

    def to(self, **changes: str) -> str:
        return reverse("unknown") + filters.query(**{"tenant": self.tenant, "open": self.open, **changes})


@dataclass(frozen=True)
class Part:
    """The unknown writes of one tool that began within one minute, as the database added them up."""

    tenant_id: uuid.UUID
    workflow_id: uuid.UUID
    tool: str
    currency: str
    first: datetime
    last: datetime
    count: int
    money: int | None
    silent: int
    owners: tuple[str, ...]
    consequence: int
    moved: int
    newest: str


@dataclass(frozen=True)
class Source:
    """What writes went through: a connector of a tenant; `name` is empty for tools that nobody can ask about."""

    tenant_id: uuid.UUID
    name: str


def tasks(visit: Visit) -> QuerySet[HumanTask]:
    """The open questions about writes whose outcome is unknown."""
    return filters.queue_view("unknown").tasks(visit).filter(action__isnull=False)


def version(found: Sequence[Part]) -> tuple[int, int, str]:
    """Changes when a task about an unknown write comes, goes or moves; the last is the id of the newest."""
    newest = max((part.newest for part in found), default="")
    return sum(part.count for part in found), sum(part.moved for part in found), newest


def page(visit: Visit, address: Address, found: Sequence[Part], *, live: Live, flashes: list[Flash]) -> UnknownPage:
    """Every window of these writes, the most consequential first, one of them open."""
    tools = _Tools(found)
    outages = _outages(found, tools)
    health = _Health(visit)
    shown = [_row(visit, address, tools, health, source, window) for source, window in outages[:MOST_WINDOWS]]
    return replace(
        heading(visit, found, live=live),
        windows=_urgent(_opened(visit, address, tools, shown, outages)),
        chart=_chart(outages, visit.now),
        cut=_cut(found, outages),
        empty=None if shown else Empty("No write is unknown.", f"{TEACHES} Checked {words.clock(visit.now)}."),
        flashes=flashes,
    )


def heading(visit: Visit, found: Sequence[Part], *, live: Live) -> UnknownPage:
    count = sum(part.count for part in found)
    oldest = min((part.first for part in found), default=None)
    since = f", the oldest since {words.moment(oldest, visit.now)}" if oldest else ""
    more = " or more" if len(found) == MOST_BUCKETS else ""
    return UnknownPage(
        title="Unknown writes",
        summary=f"{words.plural(count, 'write')}{more}{since}" if count else "no write is unknown",
        sums=words.sums((part.money, part.currency) for part in found),
        undeclared=sum(part.silent for part in found),
        live=live,
        windows=[],
    )


def news(visit: Visit, address: Address, found: Sequence[Part], *, live: Live, since: str) -> UnknownPage:
    """The title line as it stands now, and how many writes became unknown after the page was drawn."""
    fresh = tasks(visit).filter(pk__gt=since).count() if since else 0
    told = News(f"{words.plural(fresh, 'new write')}, show", address.to()) if fresh else None
    return replace(heading(visit, found, live=live), news=told)


def parts(visit: Visit) -> list[Part]:
    """One statement; the newest minutes first."""
    rows = (
        tasks(visit)
        .annotate(began=BEGAN)
        .annotate(minute=TruncMinute("began"))
        .values("tenant_id", "run__workflow_id", "tool", "currency", "minute")
        .annotate(
            first=Min("began"),
            last=Max("began"),
            n=Count("pk"),
            money=Sum("value_minor"),
            silent=Count("pk", filter=causes.UNDECLARED),
            owners=ArrayAgg("claimed_by__name", filter=Q(claimed_by__isnull=False), distinct=True, default=[]),
            worst=Max("consequence"),
            moved=Sum("version"),
            newest=Max(as_text("pk")),
        )
        .order_by("-minute")[:MOST_BUCKETS]
    )
    return [
        Part(row["tenant_id"], row["run__workflow_id"], row["tool"], row["currency"], row["first"], row["last"],
             row["n"], row["money"], row["silent"], tuple(row["owners"]), row["worst"],
             row["moved"], row["newest"])
        for row in rows
    ]  # fmt: skip


class _Tools:
    """The contracts behind the parts, read once a workflow version."""

    def __init__(self, found: Sequence[Part]) -> None:
        wanted = {part.workflow_id for part in found}
        rows = list(Workflow.objects.filter(pk__in=wanted).select_related("tenant"))
        self._definitions: dict[uuid.UUID, Definition] = {
            workflow.pk: definitions.of_workflow(workflow, workflow.tenant) for workflow in rows
        }
        registered = {workflow.pk: workflow.created_at for workflow in rows}
        standing = Demotion.objects.filter(tenant_id__in={part.tenant_id for part in found}, lifted_at__isnull=True)
        self._demoted = {
            (one.tenant_id, workflow_id, one.connector)
            for one in standing
            for workflow_id, created_at in registered.items()
            if one.since >= created_at
        }

    def tool(self, part: Part) -> Tool | None:
        return self._definitions[part.workflow_id].tools.get(part.tool)

    def source(self, part: Part) -> Source:
        tool = self.tool(part)
        rule = tool.reconcile if tool else None
        return Source(part.tenant_id, rule.connector if rule else "")

    def kind(self, part: Part) -> str:
        """The kind of connector that answers for a part; empty where nobody is asked."""
        tool = self.tool(part)
        connector = self._definitions[part.workflow_id].connector(tool) if tool else None
        return connector.kind if connector else ""

    def is_demoted(self, part: Part) -> bool:
        """Whether a bound of this part's connector was not kept, as this version declares it (F028)."""
        return (part.tenant_id, part.workflow_id, self.source(part).name) in self._demoted

    def final_at(self, part: Part, began: datetime) -> datetime | None:
        """From when a look that finds nothing proves something; None where it never does."""
        tool = self.tool(part)
        if tool is None or self.is_demoted(part):
            return None
        return bounds.final_from(tool, began)


def _outages(found: Sequence[Part], tools: _Tools) -> list[tuple[Source, Window[Part]]]:
    """The windows of every source, the most consequential first, then the largest, then the oldest."""
    by_source: dict[Source, list[Bucket[Part]]] = defaultdict(list)
    for part in found:
        by_source[tools.source(part)].append(Bucket(part.first, part.last, part))
    made = [(source, window) for source, buckets in by_source.items() for window in windows(buckets)]
    return sorted(
        made, key=lambda one: (-max(part.consequence for part in one[1].rows), -_count(one[1]), one[1].first)
    )


def _count(window: Window[Part]) -> int:
    return sum(part.count for part in window.rows)


def _key(source: Source, window: Window[Part]) -> str:
    """Names a window in an address; it stays while its oldest write stays."""
    text = f"{source.tenant_id}:{source.name}:{window.first.isoformat()}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _row(
    visit: Visit, address: Address, tools: _Tools, health: _Health, source: Source, window: Window[Part]
) -> WindowRow:
    key, parts = _key(source, window), window.rows
    look, said = health.of(source, demoted=any(tools.is_demoted(part) for part in parts))
    opened = address.open == key
    verb, hint = _next(visit, tools, source, window)
    return WindowRow(
        key=key,
        title=source.name or "No look-up",
        tools=", ".join(sorted({part.tool for part in parts})),
        tenant=visit.named(source.tenant_id),
        first=window.first,
        last=window.last,
        count=_count(window),
        at_risk=words.sums((part.money, part.currency) for part in parts),
        undeclared=sum(part.silent for part in parts),
        oldest=window.first,
        final=_final(visit.now, tools, parts),
        health=look,
        health_words=said,
        owners=_owners(visit, parts),
        toggle_url=address.to(open="" if opened else key) + f"#window-{key}",
        verb=verb,
        hint=hint,
        open=opened,
    )


def _owners(visit: Visit, parts: Sequence[Part]) -> str:
    names = sorted({name for part in parts for name in part.owners})
    told = ["You" if name == visit.person.name else name for name in names[:3]]
    return ", ".join(told) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _final(now: datetime, tools: _Tools, parts: Sequence[Part]) -> Look:
    """From when finding nothing proves that nothing happened, for the first and for the last of them."""
    ends = [(tools.final_at(part, part.first), tools.final_at(part, part.last)) for part in parts]
    if any(first is None for first, _ in ends):
        never = "Never" if all(first is None for first, _ in ends) else "For some never"
        kept = not any(tools.is_demoted(part) for part in parts)
        return looks.FINAL["never"].saying(f"{never}: {'no bound declared' if kept else 'a bound was not kept'}")
    firsts, lasts = [first for first, _ in ends if first], [last for _, last in ends if last]
    if max(lasts) <= now:
        return looks.FINAL["now"].saying("Now, for all")
    if min(firsts) <= now:
        return looks.FINAL["some"].saying(f"For some; for all from {words.moment(max(lasts), now)}")
    if min(firsts) == max(lasts):
        return looks.FINAL["later"].saying(f"From {words.moment(max(lasts), now)}")
    return looks.FINAL["later"].saying(
        f"From {words.moment(min(firsts), now)}, for all from {words.moment(max(lasts), now)}"
    )


def _next(visit: Visit, tools: _Tools, source: Source, window: Window[Part]) -> tuple[Verb | None, str]:
    kinds = {tools.kind(part) for part in window.rows}
    if not kinds & set(bounds.LOOKED_UP):
        url = reverse("queue") + filters.query(view="unknown", tenant=visit.tenants[source.tenant_id].slug)
        settle = Verb(
            "attest", "Settle by hand", looks.VERB_ICONS["attest"], url, "Each by its own task.", method="link"
        )
        return settle, "nobody can be asked: each is settled from its own task"
    if not visit.may("reconcile", source.tenant_id):
        return None, "your role does not include this"
    count = _count(window)
    label = f"Check what happened, {count}" if count > 1 else "Check what happened"
    return Verb("reconcile", label, looks.VERB_ICONS["reconcile"], _bulk(visit, source, window),
                "Asks the provider; reads only.", method="link"), ""  # fmt: skip


def _bulk(visit: Visit, source: Source, window: Window[Part]) -> str:
    """The bulk check of exactly this window; a selection ends before its `until`."""
    return reverse("bulk_new") + filters.query(
        verb="reconcile",
        tenant=visit.tenants[source.tenant_id].slug,
        view="unknown",
        connector=source.name,
        since=window.first.isoformat(),
        until=(window.last + timedelta(microseconds=1)).isoformat(),
    )


def _urgent(rows: list[WindowRow]) -> list[WindowRow]:
    """The first row that can be checked is the one filled button of this page."""
    first = next((index for index, row in enumerate(rows) if row.verb and row.verb.name == "reconcile"), None)
    return [
        replace(row, verb=replace(row.verb, recommended=True)) if index == first and row.verb else row
        for index, row in enumerate(rows)
    ]


def _opened(
    visit: Visit,
    address: Address,
    tools: _Tools,
    shown: list[WindowRow],
    outages: list[tuple[Source, Window[Part]]],
) -> list[WindowRow]:
    """The same rows, with the writes of the one that the address opens."""
    return [
        _with_writes(visit, address, tools, row, window) if row.open else row
        for row, (_, window) in zip(shown, outages, strict=False)
    ]


def _with_writes(visit: Visit, address: Address, tools: _Tools, row: WindowRow, window: Window[Part]) -> WindowRow:
    found = _writes(visit, window, address.after)
    parts = {(part.workflow_id, part.tool): part for part in window.rows}
    rows = [_write(visit, tools, parts, task) for task in found[:MOST_ROWS]]
    more = len(found) > MOST_ROWS
    return replace(row, rows=rows, more_url=address.to(after=str(found[MOST_ROWS - 1].pk)) if more else "")


def _writes(visit: Visit, window: Window[Part], after: str) -> list[HumanTask]:
    """The next writes of a window, in the order in which they became unknown; `after` is the last task shown."""
    which = Q()
    for tenant_id, workflow_id, tool in {(part.tenant_id, part.workflow_id, part.tool) for part in window.rows}:
        which |= Q(tenant_id=tenant_id, run__workflow_id=workflow_id, tool=tool)
    rows = tasks(visit).annotate(began=BEGAN).filter(which, began__gte=window.first, began__lte=window.last)
    last = rows.filter(pk=after).values("began").first() if after else None
    if last is not None:
        rows = rows.filter(began__gte=last["began"]).exclude(began=last["began"], pk__lte=after)
    looked = Evidence.objects.filter(action=OuterRef("action"), kind="probe").order_by("-pk")
    shown = rows.annotate(
        looked=Subquery(looked.values("fact")[:1]), looked_at=Subquery(looked.values("recorded_at")[:1])
    )
    return list(shown.select_related("run", "action", "claimed_by").order_by("began", "pk")[: MOST_ROWS + 1])


def _write(visit: Visit, tools: _Tools, parts: dict[tuple[uuid.UUID, str], Part], task: HumanTask) -> WriteRow:
    began: datetime = task.began  # type: ignore[attr-defined]
    fact: str | None = task.looked  # type: ignore[attr-defined]
    looked_at: datetime | None = task.looked_at  # type: ignore[attr-defined]
    part = parts[task.run.workflow_id, task.tool]
    assert task.action is not None  # noqa: S101  (the rows are those with a call)
    return WriteRow(
        title=words.title(task.run.intent),
        url=reverse("task", args=[task.pk]),
        number=words.number(task.number),
        step=task.action.step,
        since=began,
        state=looks.UNKNOWN if task.action.state != "probing" else looks.CHECKING,
        amount=words.money(task.value_minor, task.currency),
        looked=f"{fact[:120]}, {words.moment(looked_at, visit.now)}" if fact and looked_at else "",
        final_at=tools.final_at(part, began),
        owner=task.claimed_by.name if task.state == "claimed" and task.claimed_by else "",
    )


class _Health:
    """What is known about the connectors of the tenants in view."""

    def __init__(self, visit: Visit) -> None:
        names = Circuit.objects.filter(tenant_id__in=visit.scope, name__startswith="connector:").exclude(
            state="closed"
        )
        self._circuits = {(one.tenant_id, _connector(one.name)): one for one in names}

    def of(self, source: Source, *, demoted: bool) -> tuple[Look, str]:
        if not source.name:
            return looks.NO_LOOK_UP, "no look-up is declared"
        circuit = self._circuits.get((source.tenant_id, source.name))
        look = looks.look("circuit", circuit.state if circuit else "closed")
        look = look.saying(f"Circuit {look.word.lower()}")
        if demoted:
            return look, "a declared bound was not kept: finding nothing proves nothing"
        return look, circuit.reason[:120] if circuit else ""


def _connector(circuit: str) -> str:
    return circuit.removeprefix("connector:").partition("/")[0]


def _chart(outages: list[tuple[Source, Window[Part]]], now: datetime) -> Waterfall | None:
    """The windows on one time axis, a lane a connector."""
    if not outages:
        return None
    lanes: dict[Source, list[Stretch]] = defaultdict(list)
    for source, window in outages[:MOST_WINDOWS]:
        text = words.plural(_count(window), "unknown write")
        lanes[source].append(Stretch(window.first, window.last, "unk", text, dashed=True))
    named = [Lane(source.name or "no look-up", found) for source, found in list(lanes.items())[:MOST_LANES]]
    start = min(window.first for _, window in outages[:MOST_WINDOWS])
    label = f"Unknown writes of {words.plural(len(named), 'connector')} on one time axis, until now."
    return waterfall.draw(named, start=start, end=max(now, start + timedelta(minutes=1)), label=label)


def _cut(found: Sequence[Part], outages: list[tuple[Source, Window[Part]]]) -> str:
    if len(found) == MOST_BUCKETS:
        return f"Only the newest {MOST_BUCKETS:,} minutes in which writes became unknown are added up here."
    return f"The first {MOST_WINDOWS} of {len(outages)} windows are shown." if len(outages) > MOST_WINDOWS else ""
