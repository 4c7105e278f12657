"""The run page, put together from its parts."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db.models import OuterRef, Subquery, Sum
from django.urls import reverse

from console import filters, looks
from console.access import Visit
from console.builders import budgets, history, lanes, ledger, plan, waits, words
from console.builders import record as records
from console.builders.record import Record, answer_of, look_of_run
from console.live import minutes_since
from console.pages.common import Flash, Link, Live, Tab, Verb
from console.pages.run import EventRow, Fact, PathStep, RunPage
from console.templatetags.look import at_risk
from recovery import panel
from recovery.models import HumanTask
from runs.models import Action, Event, Run
from runs.states import RUN_OPEN, TASK_OPEN

EVENTS_SHOWN = 100
EVENT_TABS = (("", "All"), ("transitions", "Transitions"), ("evidence", "Evidence"), ("people", "People"))


def find(visit: Visit, run_id: uuid.UUID) -> Run | None:
    """The run, if it exists for this person."""
    rows = Run.objects.filter(pk=run_id, tenant_id__in=list(visit.tenants))
    return rows.select_related("workflow", "client").first()


def version(visit: Visit, run_id: uuid.UUID) -> tuple[object, ...] | None:
    """What the page is drawn from, in one statement; None for a run that this person may not see."""
    happened = Event.objects.filter(run=OuterRef("pk")).order_by(*Event.NEWEST_FIRST).values("pk")[:1]
    due = Action.objects.filter(run=OuterRef("pk"), due_at__gt=visit.now).order_by("due_at").values("due_at")[:1]
    moved = HumanTask.objects.filter(run=OuterRef("pk")).order_by().values("run")
    rows = Run.objects.filter(pk=run_id, tenant_id__in=list(visit.tenants)).annotate(
        happened=Subquery(happened), due=Subquery(due), asked=Subquery(moved.annotate(n=Sum("version")).values("n"))
    )
    found = rows.values_list("version", "happened", "due", "asked", "opened_at", "ended_at").first()
    if found is None:
        return None
    *facts, opened_at, ended_at = found
    return run_id, *facts, None if ended_at else minutes_since(opened_at, visit.now)


def page(
    visit: Visit, run: Run, *, live: Live, kind: str, flashes: list[Flash], under: Event | None = None
) -> RunPage:
    """`kind` is the event tab; with `under` only older events than that one are listed."""
    record, events = records.read(run), records.events(run)
    stopped_at, asking = _stopped_at(run, events), tasks(run)
    asked = next((words.number(task.number) for task in asking if task.state in TASK_OPEN), "")
    said, offered = moves(visit, run, asking)
    listed = _events(events, kind) if under is None else _events_under(run, under, kind)
    return RunPage(
        run_id=str(run.pk),
        title=words.title(run.intent),
        state=look_of_run(run),
        crumbs=[Link("Runs", reverse("runs")), Link(str(run.pk), "", title=str(run.pk))],
        facts=_facts(visit, record),
        waterfall=lanes.draw(record, events, visit.now, stopped_at),
        budgets=budgets.rows(record, visit.now, stopped_at),
        path=path(events, run, visit.now),
        effects=ledger.rows(record),
        totals=ledger.totals(record),
        events=listed[:EVENTS_SHOWN],
        more_events_url=_older(run, kind, listed),
        raw_url=reverse("run_raw", args=[run.pk]),
        bundle_url=reverse("run_bundle", args=[run.pk]),
        plan_url=reverse("run_plan", args=[run.pk]),
        event_tabs=_tabs(run, events, kind),
        live=live,
        customer=ledger.customer(run, record),
        plan=plan.card(run),
        links=[_link(task) for task in asking],
        verbs=_stop(visit, run),
        moves=offered,
        moves_words=said,
        operation=waits.of(record, visit.now, asked),
        flashes=flashes,
    )


def path(events: list[Event], run: Run, now: datetime) -> list[PathStep]:
    """The states that the run has passed, from its own events; `events` newest first."""
    passed: list[tuple[str, datetime]] = []
    for event in reversed(events):
        if _moves_the_run(event) and (not passed or passed[-1][0] != event.to_state):
            passed.append((event.to_state, event.at))
    if not passed or passed[-1][0] != run.state:
        passed.append((run.state, events[0].at if events else run.opened_at))
    ends = [at for _, at in passed[1:]] + [run.ended_at or now]
    last = len(passed) - 1
    return [
        PathStep(
            state, look_of_run(run) if index == last else looks.look("run", state), at, (end - at).total_seconds(),
            current=index == last, final=index == last and run.ended_at is not None,
        )
        for index, ((state, at), end) in enumerate(zip(passed, ends, strict=True))
    ]  # fmt: skip


def _moves_the_run(event: Event) -> bool:
    """An event of a call names the call's states, except where one statement moves both and names the run's."""
    if event.to_state not in looks.RUN:
        return False
    return event.action_id is None or event.kind in ("permitted", "succeeded")


def _facts(visit: Visit, record: Record) -> list[Fact]:
    run = record.run
    doubtful = [action for action in record.actions if action.effect == "write" and answer_of(action) == "unknown"]
    amounts = words.sums((action.value_minor, action.currency) for action in doubtful)
    silent = sum(ledger.undeclared(record, action) for action in doubtful)
    money = at_risk(amounts, silent) if amounts or silent else ""
    contested = len(record.contested)
    alarms = [f"{contested} contested"] if contested else []
    alarms += filter(None, [f"{len(doubtful)} unknown", money]) if doubtful else []
    elapsed = ((run.ended_at or visit.now) - run.opened_at).total_seconds()
    return [
        Fact("Outcome", run.outcome or "none yet", strong=bool(run.outcome)),
        Fact("Reason", run.reason_code or "none yet", mono=bool(run.reason_code)),
        Fact(
            "Effects",
            words.effects(len(record.standing) - contested, len(record.undone), len(record.partly)),
            alarm=", ".join(alarms),
            alarm_css="unk",
        ),
        Fact("Workflow", str(run.workflow)),
        Fact("Tenant", visit.named(run.tenant_id)),
        Fact("Elapsed", f"{words.lasting(elapsed)}, from {words.moment(run.opened_at, visit.now)}"),
    ]


def _stopped_at(run: Run, events: list[Event]) -> datetime | None:
    if run.reason_code not in budgets.FIRED:
        return None
    return next((event.at for event in events if event.to_state == "escalated"), None)


def mark(run: Run, event_id: uuid.UUID) -> Event | None:
    """The event of this run that a page of older ones stands under."""
    return run.events.filter(pk=event_id).first()


def _events(events: list[Event], kind: str) -> list[EventRow]:
    rows = history.rows(events, len(events))
    return [row for row, event in zip(rows, events, strict=True) if not kind or history.kind_of(event) == kind]


def _events_under(run: Run, under: Event, kind: str) -> list[EventRow]:
    found = records.events_under(run, under, history.kinds_of(kind), EVENTS_SHOWN + 1)
    return [history.row(event, event.seq) for event in found]  # type: ignore[attr-defined]


def _older(run: Run, kind: str, listed: list[EventRow]) -> str:
    """The address of what comes after the events that are shown; empty where that is nothing."""
    if len(listed) <= EVENTS_SHOWN:
        return ""
    last = listed[EVENTS_SHOWN - 1].event_id
    return reverse("run", args=[run.pk]) + filters.query(events=kind, under=last) + "#events"


def _tabs(run: Run, events: list[Event], kind: str) -> list[Tab]:
    base = reverse("run", args=[run.pk])
    kinds = [history.kind_of(event) for event in events]
    counts = {"": len(kinds), **{name: kinds.count(name) for name, _ in EVENT_TABS if name}}
    return [
        Tab(label, base + filters.query(events=name) + "#events", str(counts[name]), name == kind)
        for name, label in EVENT_TABS
    ]


def tasks(run: Run) -> list[HumanTask]:
    """The newest few, open ones first."""
    rows = HumanTask.objects.filter(run=run).select_related("run", "action", "claimed_by").order_by("-pk")[:5]
    return sorted(rows, key=lambda task: task.state not in TASK_OPEN)


def _link(task: HumanTask) -> Link:
    return Link(f"Task {words.number(task.number)}", reverse("task", args=[task.pk]), "hand")


def _stop(visit: Visit, run: Run) -> list[Verb]:
    """The way to a switch on this run alone, for somebody who may set one."""
    may = visit.may("stop", run.tenant_id) or visit.may("stop_run", run.tenant_id)
    if run.state not in RUN_OPEN or not may:
        return []
    where = filters.query(tenant=visit.tenants[run.tenant_id].slug, scope="run", name=run.pk)
    url, icon = reverse("stops") + where + "#set", looks.VERB_ICONS["set_stop"]
    return [Verb("set_stop", "Stop this run", icon, url, "Keeps its calls from leaving.", method="link")]


def moves(visit: Visit, run: Run, asking: list[HumanTask]) -> tuple[str, list[Link]]:
    """Who moves it on, and the verbs that its open task offers to this person now; nothing that nobody offers."""
    if run.state not in RUN_OPEN:
        return "This state is final.", []
    task = next((task for task in asking if task.state in TASK_OPEN), None)
    if task is None:
        return "It moves by itself; no person is asked.", []
    number = words.number(task.number)
    offered = [verb for verb in panel.read(task, visit.person).shown if verb.allowed]
    if not offered:
        return f"A person is asked in {number}; nothing there is yours to do now.", []
    links = [Link(verb.label, reverse(verb.name, args=[task.pk])) for verb in offered]
    return f"What you may do about it, from {number}:", links
