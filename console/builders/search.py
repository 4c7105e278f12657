"""What was found, grouped by kind: one statement says which rows, one of each kind that has any reads them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from django.db.models import Model, QuerySet
from django.urls import reverse

from console import looks
from console.access import Visit
from console.builders import letters, readable, words
from console.builders.marking import excerpt, marked
from console.builders.record import look_of_run
from console.finding import MOST, Hit, Sought, hits
from console.pages.common import Flash, Piece
from console.pages.search import Form, FoundGroup, FoundRow, SearchPage
from recovery.models import DeadLetter, Decision, HumanTask
from runs.models import Action, Run

NAMES = {
    "task": "Tasks",
    "run": "Runs",
    "call": "Calls and their effects",
    "letter": "Dead letters",
    "decision": "Decisions",
}
FORMS = [
    Form("Task", "T-12 or #12", "The number of a task."),
    Form("Run", "0195e2c4-77aa…", "Its id, whole or from its first 8 characters on, or the agent's own name for it."),
    Form("Call", "3f0c…", "The action id of a call, all 40 characters."),
    Form("Effect", "LP-88122", "The id that the other system gave it, whole."),
    Form("Customer", "customer_4711", "The customer reference of a run, whole."),
    Form("Dead letter, decision", "0195e2c4-77aa…", "Its id, whole."),
    Form("Anything else", "refund march", "Words of what a run was asked for; all of them, the beginning is enough."),
]


def page(visit: Visit, sought: Sought, *, flashes: list[Flash]) -> tuple[SearchPage, str]:
    """The page, and the address of the one thing that the text names in full; empty where it is not just one."""
    found = hits(visit, sought)
    groups = [group for kind in NAMES if (group := _group(visit, sought, kind, found)) is not None]
    shown = SearchPage(
        title="Search",
        summary=_summary(sought, groups),
        url=reverse("search"),
        sought=sought.text,
        groups=groups,
        kept=[("tenant", visit.chosen.slug)] if visit.chosen else [],
        none=_none(visit, sought) if sought.text and not groups else "",
        forms=[] if groups else FORMS,
        flashes=flashes,
    )
    return shown, _only(sought, groups)


def _only(sought: Sought, groups: list[FoundGroup]) -> str:
    rows = [row for group in groups for row in group.rows]
    return rows[0].url if sought.names_one and len(rows) == 1 else ""


def _summary(sought: Sought, groups: list[FoundGroup]) -> str:
    if not sought.text:
        return "nothing asked yet"
    return ", ".join(f"{group.name.lower()} {group.count}" for group in groups) or "nothing found"


def _none(visit: Visit, sought: Sought) -> str:
    where = visit.chosen.name if visit.chosen else "your tenants"
    return f"Nothing in {where} is named or said so. Checked {words.clock(visit.now)}."


def _group(visit: Visit, sought: Sought, kind: str, found: list[Hit]) -> FoundGroup | None:
    why = {hit.id: hit.why for hit in found if hit.kind == kind}
    if not why:
        return None
    listed = sorted(why, reverse=True)[:MOST]
    read, draw = KINDS[kind]
    records = sorted(read(listed), key=lambda record: listed.index(record.pk))
    rows, unreadable = readable.rows(records, partial(_row, draw, visit, sought, why))
    more = len(why) > MOST
    return FoundGroup(
        kind=kind,
        name=NAMES[kind],
        count=f"{MOST}+" if more else str(len(listed)),
        rows=rows,
        more=f"The first {MOST}, newest first. There are more: add a word, or choose a tenant." if more else "",
        unreadable=unreadable,
    )


Draw = Callable[[Visit, list[str], str, Any], FoundRow]


def _row(draw: Draw, visit: Visit, sought: Sought, why: dict[uuid.UUID, str], record: Model) -> FoundRow:
    by = why[record.pk]
    return draw(visit, sought.words if by == "intent" else [sought.text], by, record)


def _run(visit: Visit, sought: list[str], why: str, run: Run) -> FoundRow:
    named = {"customer reference": run.customer_ref, "the agent's own name for it": run.client_ref}
    said = "" if why == "intent" else named.get(why, str(run.pk))
    return FoundRow(
        url=reverse("run", args=[run.pk]),
        title=marked(excerpt(run.intent, sought), sought if why == "intent" else []),
        state=look_of_run(run),
        tenant=visit.named(run.tenant_id),
        why=why,
        at=run.opened_at,
        detail=_id(said, sought),
        note=str(run.workflow),
    )


def _task(visit: Visit, sought: list[str], why: str, task: HumanTask) -> FoundRow:
    number = words.number(task.number)
    return FoundRow(
        url=reverse("task", args=[task.pk]),
        title=[Piece(words.title(task.run.intent))],
        state=looks.look("task", task.state),
        tenant=visit.named(task.tenant_id),
        why=why,
        at=task.opened_at,
        detail=[Piece(number, True)] if why == "number" else _id(str(task.pk), sought),
        note=f"{task.reason_code}, {task.tool}" if task.tool else task.reason_code,
    )


def _call(visit: Visit, sought: list[str], why: str, action: Action) -> FoundRow:
    return FoundRow(
        url=reverse("run", args=[action.run_id]),
        title=[Piece(action.tool)],
        state=looks.look("action", action.state),
        tenant=visit.named(action.tenant_id),
        why=why,
        at=action.created_at,
        detail=_id(action.action_id if why == "action id" else " ".join(sought), sought),
        note=words.title(action.run.intent),
    )


def _letter(visit: Visit, sought: list[str], why: str, letter: DeadLetter) -> FoundRow:
    task_id: uuid.UUID | None = letter.task_id  # type: ignore[attr-defined]
    return FoundRow(
        url=reverse("task", args=[task_id]) if task_id else reverse("run", args=[letter.run_id]),
        title=[Piece(letter.action.tool)],
        state=looks.look("dead_letter", letter.state),
        tenant=visit.named(letter.tenant_id),
        why=why,
        at=letter.recorded_at,
        detail=_id(str(letter.pk), sought),
        note=words.title(letter.run.intent),
    )


def _decision(visit: Visit, sought: list[str], why: str, decision: Decision) -> FoundRow:
    where = reverse("task", args=[decision.task_id]) if decision.task_id else reverse("run", args=[decision.run_id])
    return FoundRow(
        url=where,
        title=[Piece(decision.verb.replace("_", " ").capitalize())],
        state=looks.look("decision", decision.state),
        tenant=visit.named(decision.tenant_id),
        why=why,
        at=decision.requested_at,
        detail=_id(str(decision.pk), sought),
        note=words.title(decision.run.intent),
    )


def _id(text: str, sought: list[str]) -> list[Piece]:
    """An id with the typed part marked: at its beginning, wherever signs stand in it."""
    typed = " ".join(sought)
    at = len(typed) if text.lower().startswith(typed.lower()) else 0
    return [piece for piece in (Piece(text[:at], True), Piece(text[at:])) if piece.text]


Read = Callable[[list[uuid.UUID]], QuerySet[Any]]
KINDS: dict[str, tuple[Read, Draw]] = {
    "task": (lambda ids: HumanTask.objects.filter(pk__in=ids).select_related("run"), _task),
    "run": (lambda ids: Run.objects.filter(pk__in=ids).select_related("workflow"), _run),
    "call": (lambda ids: Action.objects.filter(pk__in=ids).select_related("run"), _call),
    "letter": (lambda ids: letters.shown(DeadLetter.objects.filter(pk__in=ids)), _letter),
    "decision": (lambda ids: Decision.objects.filter(pk__in=ids).select_related("run"), _decision),
}
