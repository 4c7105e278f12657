"""What an agent or its host may read: a run's outcome, where to resume, the events feed, beliefs about writes."""

from __future__ import annotations

import uuid
from typing import Literal

from django.db.models import Q
from steadyhand.contract import (
    ActionItem,
    ActionPage,
    EventItem,
    EventPage,
    Outcome,
    OutcomeDocument,
    ResumeAnswer,
    StepState,
)
from steadyhand.identity import BadInput

from recovery import questions
from recovery.answers import reads_of, seconds_between
from recovery.clients import Credentials, authenticate
from recovery.lifecycle import earliest_due
from runs import definitions, wall
from runs.models import STANDING, Action, Event, Run
from runs.querysets import OldestRunning, TenantQuerySet, TransactionId, read_clock
from runs.states import RUN_OPEN

MAX_STEPS = 500


def outcome_of(run: Run) -> OutcomeDocument:
    """The outcome document of a run as the record stands now."""
    run.refresh_from_db()
    failed = run.actions.filter(step=run.failed_step).order_by("-id").first() if run.failed_step else None
    due_at = earliest_due(run) if run.outcome == "retryable" else None
    return OutcomeDocument(
        run_id=str(run.pk),
        workflow=definitions.of_run(run).name,
        state=run.state,
        outcome=Outcome(run.outcome) if run.outcome else None,
        reason_code=run.reason_code,
        failed_step=run.failed_step,
        attempt=failed.attempts if failed and failed.attempts else None,
        retry_after_seconds=seconds_between(read_clock(), due_at) if due_at else None,
        completed_effects=completed_effects(run),
        customer_message=run.customer_message or None,
        operator_detail=run.operator_detail or None,
    )


def completed_effects(run: Run) -> list[str]:
    """The steps whose effects stand: proven, and not undone since, or only in part."""
    standing = run.effects.filter(STANDING)
    return list(standing.order_by("id").values_list("step", flat=True))


def resume_answer(run: Run) -> ResumeAnswer:
    """What a runner needs to go on; the run is locked, and what had run out is settled before (F007)."""
    definition = definitions.of_run(run)
    return ResumeAnswer(
        run_id=str(run.pk),
        workflow=definition.name,
        workflow_id=str(definition.id),
        state=run.state,
        ready=is_ready(run),
        intent=run.intent,
        outcome=Outcome(run.outcome) if run.outcome else None,
        reason_code=run.reason_code,
        due_at=earliest_due(run),
        steps=[_step(action) for action in run.actions.order_by("id")[:MAX_STEPS]],
        reads=reads_of(definition),
        inputs=questions.answered(run),
    )


def events(who: Credentials, *, after: uuid.UUID | None, limit: int) -> EventPage:
    """The feed of this client's runs in the order of their transactions; `after` is the last event that was read.

    An event is shown once no earlier transaction can still commit, so that none is ever skipped. Two calls of one run
    that were settled at the same moment may stand in either order; their `number` says which came first.
    Raises BadInput for an `after` that no page gave out.
    """
    with wall.within(who.tenant_id):
        client = authenticate(who)
        mine = Event.objects.filter(run__client=client, run__tenant=who.tenant_id)
        rows = mine.filter(Q(txid__lt=OldestRunning()) | Q(txid=TransactionId()))
        if after is not None:
            rows = rows.filter(_beyond(mine.filter(pk=after)))
        items = [_event(row) for row in rows.select_related("run", "action").order_by("txid", "id")[:limit]]
        return EventPage(items=items, next=items[-1].id if items else (str(after) if after else None))


def actions(who: Credentials, *, limit: int) -> ActionPage:
    """What is believed about this client's latest writes, newest first, under the reference the remote saw."""
    with wall.within(who.tenant_id):
        client = authenticate(who)
        rows = Action.objects.filter(run__client=client, effect="write", attempts__gt=0).order_by("-id")[:limit]
        return ActionPage(items=[_belief(action) for action in rows])


def _beyond(last: TenantQuerySet[Event]) -> Q:
    place = last.values_list("txid", "pk").first()
    if place is None:
        raise BadInput("after", "use the `next` of an earlier page")
    return Q(txid__gte=place[0]) & (Q(txid__gt=place[0]) | Q(pk__gt=place[1]))


def is_ready(run: Run) -> bool:
    """Whether a proposal would be looked at now: not while a write is unknown or a person is asked."""
    if run.state not in RUN_OPEN or run.goal != "forward":
        return False
    due_at = earliest_due(run)
    if run.state == "recovering":
        return due_at is None or due_at <= read_clock()
    return run.state in ("planning", "executing", "waiting_for_tool")


def _step(action: Action) -> StepState:
    return StepState(
        step=action.step,
        tool=action.tool,
        state=action.state,
        settled=action.settled_at is not None,
        reason_code=action.reason_code,
    )


def _event(row: Event) -> EventItem:
    assert row.run is not None  # noqa: S101  (the feed filters on the run)
    return EventItem(
        id=str(row.pk),
        number=row.number,
        run_id=str(row.run_id),
        kind=row.kind,
        at=row.at,
        step=row.action.step if row.action else None,
        from_state=row.from_state,
        to_state=row.to_state,
        run_state=row.run.state,
        outcome=Outcome(row.run.outcome) if row.run.outcome else None,
        reason_code=row.run.reason_code,
    )


def _belief(action: Action) -> ActionItem:
    return ActionItem(
        reference=action.action_id,
        run_id=str(action.run_id),
        step=action.step,
        tool=action.tool,
        state=action.state,
        effect=effect_of(action),
        outcome=action.reason_code,
    )


def effect_of(action: Action) -> Literal["proven", "unknown", "none"]:
    """Whether a write took effect, as far as the record goes."""
    if action.state in ("succeeded", "compensating", "compensated", "compensation_held"):
        return "proven"
    return "none" if action.state in _WITHOUT_EFFECT else "unknown"


_WITHOUT_EFFECT = (
    "proposed",
    "awaiting_approval",
    "approved",
    "rejected",
    "refused_transient",
    "refused_permanent",
    "absent_final",
    "void",
)
