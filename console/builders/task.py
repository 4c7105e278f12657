"""The task page, put together from its parts."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery, Sum
from django.urls import reverse

from console import filters, looks, presence
from console.access import Visit
from console.builders import (
    answers,
    attempts,
    causes,
    desk,
    evidence,
    history,
    ledger,
    plan,
    remaining,
    scope,
    verbs,
    waiting,
    words,
    worlds,
)
from console.builders import record as records
from console.builders.causes import Heap
from console.builders.operation import of as operation_of
from console.builders.record import Record
from console.live import minutes_since
from console.pages.common import Flash, Link, Live, Sla, Verb
from console.pages.task import Comment, Details, EvidenceRow, TaskPage
from console.presence import Here
from recovery import demotions, panel
from recovery.models import Comment as CommentRow
from recovery.models import Decision, Demotion, HumanTask
from recovery.panel import Panel
from recovery.rules import messages, pauses
from runs.models import Action, Event, Evidence
from runs.states import TASK_OPEN

MOST_NEIGHBOURS = 500


@dataclass(frozen=True)
class Seen:
    """One task, its panel for one person, and the record behind it."""

    panel: Panel
    record: Record
    action: Action | None
    company: list[Here]

    @property
    def task(self) -> HumanTask:
        return self.panel.task


def find(visit: Visit, task_id: uuid.UUID) -> HumanTask | None:
    """The task, if it exists for this person."""
    rows = HumanTask.objects.filter(pk=task_id, tenant_id__in=list(visit.tenants)).annotate(
        company=presence.of_task(visit.person, visit.now)
    )
    return rows.select_related("run__workflow", "run__client", "action", "claimed_by", "owner").first()


def see(visit: Visit, task: HumanTask) -> Seen:
    """Everything about a task that a page or a sheet may say."""
    record = records.read(task.run)
    action = next((one for one in record.actions if one.pk == task.action_id), None)
    company = presence.read(task.company)  # type: ignore[attr-defined]
    return Seen(panel.read(task, visit.person), record, action, company)


def page(visit: Visit, seen: Seen, *, live: Live, flashes: list[Flash]) -> TaskPage:
    task, record, run = seen.task, seen.record, seen.task.run
    buttons = verbs.next_actions(seen.panel)
    recommended = next((verb for verb in buttons if verb.recommended), None)
    facts, past = evidence.rows(record, seen.action), records.events(run)
    place, undoing = _place(visit, task), plan.card(run)
    return TaskPage(
        number=words.number(task.number),
        title=words.title(run.intent),
        state=looks.TASK[task.state],
        workflow=str(run.workflow),
        crumbs=_crumbs(task),
        position=place.words,
        run_url=reverse("run", args=[run.pk]),
        answers=answers.three(seen.panel, record, seen.action, seen.task.answer),
        recommended=recommended,
        recommended_sentence=_recommendation(seen.panel, recommended),
        verbs=buttons,
        request=waiting.request(visit, seen.panel, record, seen.action),
        letter=waiting.letter(seen.panel, record),
        plan=undoing,
        scope=scope.of(record, seen.action, visit.now),
        effects=ledger.rows(record),
        totals=ledger.totals(record),
        attempts=attempts.rows(record, run.client.name),
        evidence=facts,
        evidence_note=evidence.note(facts),
        warnings=evidence.warnings(past, seen.action, _demotion(seen)),
        conflicts=evidence.conflicts(record, seen.action),
        worlds=worlds.card(seen.panel.case, record) if seen.panel.case else None,
        remaining=remaining.rows(record, visit.now),
        remaining_note=remaining.note(record),
        remaining_none=remaining.none(undoing),
        sla=_sla(task, visit.now),
        customer=ledger.customer(run, record),
        details=_details(visit, seen, past),
        live=live,
        claim=desk.claim(visit, task, past, seen.company),
        presence=desk.company(seen.company),
        offer=desk.offer(seen.panel),
        here_url=reverse("here", args=[task.pk]),
        claim_verbs=verbs.claim_verbs(seen.panel),
        history=history.lines(past),
        history_count=len(past),
        history_url=reverse("run", args=[run.pk]) + "#events",
        comments=_comments(task),
        comment_verb=verbs.comment_verb(seen.panel),
        facts_text=_facts_text(seen, facts, visit.now),
        previous_url=place.before,
        next_url=place.after,
        operation=operation_of(seen.panel, record),
        priority=task.priority_reason,
        notes=desk.notes(task, record, past, visit.now),
        flashes=flashes,
    )


def _demotion(seen: Seen) -> Demotion | None:
    action = seen.action
    return demotions.of_call(seen.task.run, action) if action is not None else None


def version(visit: Visit, task_id: uuid.UUID) -> tuple[object, ...] | None:
    """What the page is drawn from, as few values in one statement; None for a task that this person may not see."""
    mine = Q(pk=task_id, tenant_id__in=list(visit.tenants))
    found = (
        HumanTask.objects.filter(mine)
        .annotate(
            decided=_moves(Decision.objects.filter(run=OuterRef("run"))),
            learned=Subquery(Evidence.objects.filter(run=OuterRef("run")).order_by("-pk").values("pk")[:1]),
            happened=Subquery(
                Event.objects.filter(run=OuterRef("run")).order_by(*Event.NEWEST_FIRST).values("pk")[:1]
            ),
            said=_count(CommentRow.objects.filter(task=OuterRef("pk"))),
            looked=Subquery(Action.objects.filter(pk=OuterRef("action")).values("version")[:1]),
            due=Subquery(Action.objects.filter(pk=OuterRef("action")).values("due_at")[:1]),
            company=presence.of_task(visit.person, visit.now),
        )
        .values_list(
            "version",
            "run__version",
            "decided",
            "learned",
            "happened",
            "said",
            "looked",
            "company",
            "due",
            "opened_at",
        )
        .first()
    )
    if found is None:
        return None
    *facts, due, opened_at = found
    return (task_id, *facts, due, due is not None and due <= visit.now, minutes_since(opened_at, visit.now))


def _count(rows: QuerySet[CommentRow]) -> Subquery:
    counted = rows.order_by().values("task").annotate(n=Count("pk")).values("n")
    return Subquery(counted, output_field=IntegerField())


def _moves(rows: QuerySet[Decision]) -> Subquery:
    """How often the decisions of a run have come and moved: each counts once for being there."""
    moved = rows.order_by().values("run").annotate(moves=Count("pk") + Sum("version")).values("moves")
    return Subquery(moved, output_field=IntegerField())


@dataclass(frozen=True)
class Place:
    """Where a task stands among those of its cause."""

    words: str = ""
    before: str = ""
    after: str = ""


def _place(visit: Visit, task: HumanTask) -> Place:
    if task.state not in TASK_OPEN:
        return Place()
    same = HumanTask.objects.filter(heap=task.heap, state__in=TASK_OPEN, snoozed_until__isnull=True)
    rows = same.order_by(*causes.IN_TURN)
    ids = list(rows.values_list("pk", flat=True)[:MOST_NEIGHBOURS])
    if task.pk not in ids:
        return Place()
    at = ids.index(task.pk)
    return Place(
        f"{at + 1} of {len(ids)}",
        reverse("task", args=[ids[at - 1]]) if at else "",
        reverse("task", args=[ids[at + 1]]) if at + 1 < len(ids) else "",
    )


def _crumbs(task: HumanTask) -> list[Link]:
    cause = Heap((task.tenant_id, task.workflow_name, task.reason_code, task.tool))
    group = reverse("queue") + filters.query(open=cause.key)
    return [
        Link("Queue", reverse("queue")),
        Link(causes.title_of(task.reason_code, task.tool), group),
        Link(words.number(task.number), ""),
    ]


def _recommendation(seen: Panel, recommended: Verb | None) -> str:
    if recommended is not None:
        return recommended.sentence
    if not seen.situation.task_open:
        return f"This task is resolved. {seen.task.resolution}"
    if seen.situation.check_under_way:
        return "A check is under way; its answer appears here."
    return "What each verb waits for stands in Next actions."


def _sla(task: HumanTask, now: datetime) -> Sla:
    if task.resolved_at is None:
        owner = f"{task.owner} of {task.owner_team}" if task.owner else task.owner_team
        pause = pauses.WORDS.get(task.pause, "")
        return Sla(task.opened_at, task.due_at, note=f"Owned by {owner}.", pause=pause)
    kept = "in time" if task.resolved_at <= task.due_at else "after it was due"
    took = words.lasting((task.resolved_at - task.opened_at).total_seconds())
    note = f"Resolved in {took}, at {words.moment(task.resolved_at, now)}, {kept}."
    return Sla(task.opened_at, task.due_at, note=note, running=False)


def _details(visit: Visit, seen: Seen, past: list[Event]) -> Details:
    task = seen.task
    opened = next(
        (event for event in past if event.data.get("task") == str(task.pk) and event.kind == "task_opened"), None
    )
    return Details(
        run_id=str(task.run_id),
        run_url=reverse("run", args=[task.run_id]),
        action_id=seen.action.action_id if seen.action else "",
        tenant=visit.named(task.tenant_id),
        tags=list(task.tags),
        tags_url=reverse("tags", args=[task.pk]) if visit.may("comment", task.tenant_id) else "",
        opened_rule=seen.panel.case.answer.rule if seen.panel.case and seen.panel.situation.task_open else "",
        opened_words=messages.title(task.reason_code) + (f", by {opened.actor}" if opened else ""),
    )


def _comments(task: HumanTask) -> list[Comment]:
    rows = task.comments.select_related("by").order_by("pk")
    return [Comment(one.by.name, one.at, *words.split(one.text, history.MOST_SHOWN * 2)) for one in rows]


def _facts_text(seen: Seen, facts: list[EvidenceRow], now: datetime) -> str:
    """The facts as plain text, for a ticket or a chat; the agent's claim is left out, for it is none."""
    task = seen.task
    lines = [f"{words.number(task.number)} {words.title(task.run.intent)}", f"Run {task.run_id}"]
    if seen.action:
        lines.append(f"{seen.action.tool} {words.amount(seen.action.value_minor, seen.action.currency)}".strip())
    lines += [
        f"- {fact.fact} ({fact.strength_words}, {words.moment(fact.at, now)})" for fact in facts if not fact.claim
    ]
    return "\n".join(lines).replace("`", "")
