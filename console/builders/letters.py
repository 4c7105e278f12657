"""The dead letters of the tenants in view, a page of them at a time."""

from __future__ import annotations

import uuid

from django.db.models import OuterRef, QuerySet, Subquery
from django.urls import reverse

from console import looks
from console.access import Visit
from console.builders import words
from console.builders.waiting import next_of
from console.filters import LetterFilter, capped
from console.pages.common import Empty, Flash, Link, Tab
from console.pages.letters import LetterRow, LettersPage
from recovery.models import DeadLetter, HumanTask
from runs.states import TASK_OPEN

PAGE = 50


def page(visit: Visit, asked: LetterFilter, *, counts: dict[str, int], flashes: list[Flash]) -> LettersPage:
    """Newest first; `counts` says how many are open."""
    found = list(shown(asked.first(visit, PAGE + 1)))
    more, rows = len(found) > PAGE, found[:PAGE]
    return LettersPage(
        title="Dead letters",
        summary=words.plural(len(rows), "letter") + (", and more" if more else ""),
        tabs=_tabs(visit, asked, counts),
        rows=[_row(visit, letter) for letter in rows],
        next_url=reverse("letters") + asked.address(visit, before=rows[-1].pk) if more else "",
        empty=None if rows else _empty(visit, asked),
        flashes=flashes,
    )


def shown(rows: QuerySet[DeadLetter]) -> QuerySet[DeadLetter]:
    same = {name: OuterRef(name) for name in ("tenant", "run", "action")}
    open_tasks = HumanTask.objects.filter(**same, state__in=TASK_OPEN).order_by("-pk")
    return rows.select_related("run__workflow", "action", "owner").annotate(
        task_id=Subquery(open_tasks.values("pk")[:1]), task_number=Subquery(open_tasks.values("number")[:1])
    )


def _row(visit: Visit, letter: DeadLetter) -> LetterRow:
    task_id: uuid.UUID | None = letter.task_id  # type: ignore[attr-defined]
    number: int = letter.task_number or 0  # type: ignore[attr-defined]
    return LetterRow(
        state=looks.look("dead_letter", letter.state),
        step=str(letter.request.get("step", "")),
        tool=str(letter.request.get("tool", "")),
        failure=letter.failure_class,
        generation=letter.generation,
        tries=len(letter.attempts),
        owner=letter.owner.name if letter.owner else letter.owner_team,
        next_action=next_of(letter),
        tenant=visit.named(letter.tenant_id),
        workflow=str(letter.run.workflow),
        recorded_at=letter.recorded_at,
        run_url=reverse("run", args=[letter.run_id]),
        task=Link(words.number(number), reverse("task", args=[task_id])) if task_id is not None else None,
        ended_at=letter.ended_at,
    )


def _tabs(visit: Visit, asked: LetterFilter, counts: dict[str, int]) -> list[Tab]:
    here = reverse("letters")
    return [
        Tab("Open", here + asked.address(visit, view=""), capped(counts["dead_letters"]), not asked.ended),
        Tab("Ended", here + asked.address(visit, view="ended"), "", asked.ended),
    ]


def _empty(visit: Visit, asked: LetterFilter) -> Empty:
    checked = f"Checked {words.clock(visit.now)}."
    if asked.ended:
        return Empty("No dead letter has ended.", checked)
    return Empty("No dead letter is open.", f"A call that uses all its tries leaves one here. {checked}")
