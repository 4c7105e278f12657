"""The list of runs: a page of rows by id, newest first, with what is proven and what is unknown beside each."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.urls import reverse

from console.access import Visit
from console.builders import readable, words
from console.builders.changed import of_action
from console.builders.record import look_of_run
from console.filters import RunFilter, query
from console.pages.common import Empty, Flash, Link, Live, Tab
from console.pages.run import RunListPage, RunRow
from runs.models import STANDING, Action, Effect, Event, Run

PAGE = 50
TABS = (
    ("", "All"),
    ("live", "Live"),
    ("escalated", "Needs a person"),
    ("completed", "Completed"),
    ("failed", "Failed"),
    ("cancelled", "Cancelled"),
)


def page(visit: Visit, asked: RunFilter, *, live: Live, flashes: list[Flash]) -> RunListPage:
    found = list(_shown(asked.rows(visit)))
    shown, more = found[:PAGE], len(found) > PAGE
    rows, unreadable = readable.rows(shown, partial(row, visit))
    return RunListPage(
        title="Runs",
        summary=_summary(asked, len(shown), more=more),
        tabs=_tabs(visit, asked),
        rows=rows,
        live=live,
        next_url=reverse("runs") + asked.address(visit, before=shown[-1].pk) if more else "",
        empty=None if shown else _empty(visit, asked),
        flashes=flashes,
        unreadable=unreadable,
        find_url=reverse("runs"),
        find=asked.q,
        find_kept=_kept(visit),
    )


def version(visit: Visit, asked: RunFilter) -> list[tuple[object, ...]]:
    """What the rows of this page are drawn from, in one statement."""
    happened = Event.objects.filter(run=OuterRef("pk")).order_by(*Event.NEWEST_FIRST).values("pk")[:1]
    rows = asked.rows(visit).annotate(happened=Subquery(happened))
    return list(rows.values_list("pk", "version", "happened")[: PAGE + 1])


def row(visit: Visit, run: Run) -> RunRow:
    """One run. `proven`, `undone`, `doubtful` and `changed_at` were annotated."""
    proven: int = run.proven or 0  # type: ignore[attr-defined]
    undone: int = run.undone or 0  # type: ignore[attr-defined]
    partly: int = run.partly or 0  # type: ignore[attr-defined]
    doubtful: int = run.doubtful or 0  # type: ignore[attr-defined]
    changed_at: datetime | None = run.changed_at  # type: ignore[attr-defined]
    return RunRow(
        run_id=str(run.pk),
        title=words.title(run.intent),
        url=reverse("run", args=[run.pk]),
        tenant=visit.named(run.tenant_id),
        workflow=str(run.workflow),
        state=look_of_run(run),
        effects=words.effects(proven, undone, partly) if proven or undone else "" if doubtful else "none",
        unknown=f"{doubtful} unknown" if doubtful else "",
        started_at=run.opened_at,
        changed_at=changed_at or run.opened_at,
        outcome=run.outcome or "",
        reason_code=run.reason_code or "",
    )


def _shown(rows: QuerySet[Run]) -> QuerySet[Run]:
    unknown = Action.objects.filter(run=OuterRef("pk"), effect="write", settled_at__isnull=True)
    effects = Effect.objects.filter(run=OuterRef("pk"))
    happened = Event.objects.filter(run=OuterRef("pk")).order_by(*Event.NEWEST_FIRST).values("at")[:1]
    return rows.select_related("workflow").annotate(
        proven=_count(effects.filter(STANDING)),
        partly=_count(effects.filter(STANDING, compensated_by__isnull=False)),
        undone=_count(effects.filter(compensated_by__isnull=False, residual="")),
        doubtful=_count(unknown.annotate(answer=of_action()).filter(answer="unknown")),
        changed_at=Subquery(happened),
    )[: PAGE + 1]


def _count(rows: QuerySet[Action] | QuerySet[Effect]) -> Subquery:
    counted = rows.order_by().values("run").annotate(n=Count("pk")).values("n")
    return Subquery(counted, output_field=IntegerField())


def _summary(asked: RunFilter, count: int, *, more: bool) -> str:
    if not count:
        return "no runs"
    said = f"{count} runs, and more" if more else words.plural(count, "run")
    return f"{said}, older ones" if asked.before else said


def _tabs(visit: Visit, asked: RunFilter) -> list[Tab]:
    return [
        Tab(label, reverse("runs") + asked.address(visit, state=state), current=asked.state == state)
        for state, label in TABS
    ]


def _kept(visit: Visit) -> list[tuple[str, str]]:
    """What stays chosen when something is looked up: the tenant alone, for a look-up asks all states."""
    return [("tenant", visit.chosen.slug)] if visit.chosen else []


def _empty(visit: Visit, asked: RunFilter) -> Empty:
    checked = f"Checked {words.clock(visit.now)}."
    if asked == RunFilter():
        return Empty("No runs yet.", f"A run appears here as soon as an agent opens one. {checked}")
    everything = reverse("runs") + query(tenant=visit.chosen.slug if visit.chosen else "")
    if asked.q:
        looked = "Looked for a run id, an action id, a task's number or a customer reference that is exactly this."
        return Empty("No run fits.", f"{looked} {checked}", Link("Show all runs", everything))
    return Empty("No run fits.", f"Looked for runs with this state, outcome and workflow. {checked}",
                 Link("Show all runs", everything))  # fmt: skip
