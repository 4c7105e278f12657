"""A run's own moves: the agent finishes, somebody cancels. The run is locked by the caller."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db.models import Q
from steadyhand.contract import Finish

from recovery import endings, escalation, leases, settle, turns
from runs import record, redact
from runs.models import Action, Attempt, Run
from runs.querysets import database_now
from runs.record import Actor
from runs.states import RUN_OPEN


def finish(run: Run, told: Finish, actor: Actor) -> None:
    """End the run if its record allows an end; the closing sentence is kept as a claim (I14).

    A run with a call in flight or in question ends by itself once the last of them is settled; one that was stopped
    goes on from where it stood when a person lets it.
    """
    leases.expire_of_run(run)
    run.refresh_from_db()
    _keep_claim(run, told)
    if run.state not in RUN_OPEN:
        return None
    turns.abandon(run, actor)
    if told.ended_by == "turn_limit":
        return _stop_at_turn_limit(run, actor)
    if run.state in ("planning", "executing") and not _waits(run):
        return endings.conclude(run, actor)
    if run.state == "escalated" and escalation.has_run_task(run):
        return None
    Run.objects.filter(pk=run.pk).update(finished_at=database_now())
    return run.refresh_from_db()


def cancel(run: Run, actor: Actor, *, reason: str) -> None:
    """Set the goal to cancel, void what was never dispatched, and end as soon as no write is in flight.

    A second cancel is no second event. A read in flight changes nothing, so nobody waits for it (F135). The runs that
    work for this one have nothing to work for any more.
    """
    if run.state == "cancelling":
        return
    for one in (run, *_open_below(run)):
        if one.state != "cancelling":
            _cancel(one, actor, reason)


def _open_below(run: Run) -> list[Run]:
    """Every open run that works for this one, however deep, each after the one that it works for.

    They are locked in the order of their ids, as whoever locks several runs does (`leaving`). None is added while the
    run above is locked.
    """
    found: list[uuid.UUID] = []
    level = [run.pk]
    while level:
        level = list(Run.objects.filter(parent_id__in=level, ended_at__isnull=True).values_list("pk", flat=True))
        found += level
    rows = Run.objects.select_for_update(no_key=True).filter(pk__in=found, ended_at__isnull=True).order_by("id")
    locked = {one.pk: one for one in rows} if found else {}
    return [locked[pk] for pk in found if pk in locked]


def _cancel(run: Run, actor: Actor, reason: str) -> None:
    record.move_run(run, "cancelling", actor, kind="cancelling", reason=reason, goal="cancel")
    turns.abandon(run, actor)
    _give_up_reads(run)
    waiting = run.actions.filter(settled_at__isnull=True).exclude(role="item")
    for action in waiting.exclude(effect="write", state="permitted"):
        _let_go(run, action, actor)
    never_sent = Q(action__role="call", action__attempts=0, action__settled_at__isnull=False)
    for task in run.tasks.filter(Q(action=None) | never_sent, state__in=("open", "claimed", "reopened")):
        escalation.close(task, actor=actor, resolution="The run was cancelled.")
    settle.refresh_run(run, actor)


def earliest_due(run: Run) -> datetime | None:
    """When the run's next waiting action falls due."""
    due: datetime | None = (
        run.actions.filter(due_at__isnull=False).order_by("due_at").values_list("due_at", flat=True).first()
    )
    return due


def _waits(run: Run) -> bool:
    return run.actions.filter(settled_at__isnull=True).exclude(role="item").exists()


def _keep_claim(run: Run, told: Finish) -> None:
    if told.claim and not run.claim:
        Run.objects.filter(pk=run.pk).update(claim=redact.clean_text(told.claim))
        run.refresh_from_db()


def _stop_at_turn_limit(run: Run, actor: Actor) -> None:
    """The framework stopped its agent: the run is not done, whatever stands in its last sentence (F093)."""
    if run.state in ("planning", "executing"):
        endings.escalate_run(run, "turn_budget_exhausted", actor, fired=["turn_budget_exhausted"])


def _give_up_reads(run: Run) -> None:
    """End what only reads: its late answer is kept and moves nothing."""
    for attempt in Attempt.objects.filter(run=run, ended_at__isnull=True, action__effect="read"):
        record.end_attempt(attempt, run=run, fence=attempt.fence, observed="unknown", reason_code="cancelled_by_user")
    run.refresh_from_db()


def _let_go(run: Run, action: Action, actor: Actor) -> None:
    if action.attempts > 0:
        settle.apply(run, action, actor)
        return
    record.move_action(action, "void", actor, run=run, kind="void", reason_code="not_applied")
    escalation.resolve_tasks(run, action=action, actor=actor, resolution="The run was cancelled.")
