"""What the record says about one played run, read once, as plain values to compare with what was expected."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from recovery import reading
from recovery.models import DeadLetter, Decision, HumanTask
from runs import wall
from runs.models import Action, Attempt, Effect, Event, Evidence, Run
from runs.states import TASK_OPEN


@dataclass(frozen=True)
class Moment:
    """The run right after something happened; `delay` is when the next thing is due, in seconds."""

    outcome: str | None
    reason: str | None
    delay: float | None


@dataclass
class Seen:
    """A finished play."""

    outcome: str | None
    reason: str | None
    failed_step: str | None
    customer_message: str
    effects: list[str]
    tasks: list[dict[str, Any]]
    letters: list[dict[str, Any]]
    attempts: dict[str, int]
    states: dict[str, str]
    may_send: list[str]
    events: list[dict[str, Any]]
    surfaces: dict[str, str]
    state: str = ""
    ended: bool = True
    facts: list[dict[str, Any]] = field(default_factory=list)
    sends: dict[str, int] = field(default_factory=dict)
    sends_of_step: dict[str, int] = field(default_factory=dict)
    moments: dict[int, Moment] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    checks: list[list[int]] = field(default_factory=list)

    def at_checkpoint(self, number: int) -> Moment | None:
        """The run right after the event that the checkpoint names, else as it stood at that time."""
        after = [self.moments[index] for index in self.checks[number] if index in self.moments]
        return after[-1] if after else self.moments.get(-1 - number)


def moment(run: Run, now: datetime) -> Moment:
    """The outcome as the host product would read it now."""
    with wall.within(run.tenant_id):
        document = reading.outcome_of(Run.objects.get(pk=run.pk))
        due = run.actions.filter(due_at__isnull=False).order_by("due_at").values_list("due_at", flat=True).first()
    outcome = document.outcome.value if document.outcome else None
    return Moment(outcome, document.reason_code, (due - now).total_seconds() if due else None)


def read(run_id: uuid.UUID, tenant_id: uuid.UUID, model_saw: list[str]) -> Seen:
    """Everything that a comparison asks about."""
    with wall.within(tenant_id):
        run = Run.objects.get(pk=run_id)
        document = reading.outcome_of(run)
        tasks = [_task(task) for task in HumanTask.objects.filter(run=run).select_related("action").order_by("id")]
        events = [
            _event(event)
            for event in Event.objects.filter(run=run).order_by(*Event.IN_ORDER).select_related("action")
        ]
        actions = list(Action.objects.filter(run=run).order_by("id"))
        return Seen(
            outcome=document.outcome.value if document.outcome else None,
            reason=document.reason_code,
            failed_step=document.failed_step,
            customer_message=document.customer_message or "",
            effects=list(document.completed_effects),
            tasks=tasks,
            letters=[_letter(letter) for letter in DeadLetter.objects.filter(run=run).order_by("id")],
            attempts={action.step: action.attempts for action in actions},
            states={action.step: action.state for action in actions},
            may_send=[action.step for action in actions if _goes_again(action, run)],
            events=events,
            surfaces=_surfaces(run, tasks, events, document.customer_message or "", model_saw),
            state=run.state,
            ended=run.ended_at is not None,
            facts=_facts(run),
        )


def _goes_again(action: Action, run: Run) -> bool:
    """Whether the product would let this call go out again by itself, as the record stands."""
    waits = action.state in ("refused_transient", "absent_final", "approved") or (
        action.state == "unknown" and action.reason_code in ("provider_unavailable", "provider_rate_limited")
    )
    return waits and run.ended_at is None and run.state != "escalated"


def _task(task: HumanTask) -> dict[str, Any]:
    return {
        "kind": task.kind,
        "reason": task.reason_code,
        "open": task.state in TASK_OPEN,
        "paged": task.paged_at is not None,
        "resolution": task.resolution,
        "step": task.action.step if task.action else "",
    }


def _letter(letter: DeadLetter) -> dict[str, Any]:
    return {
        "state": letter.state,
        "attempts": len(letter.attempts),
        "owner": str(letter.owner) if letter.owner else letter.owner_team,
        "generation": letter.generation,
    }


def _event(event: Event) -> dict[str, Any]:
    return {
        "at": event.at,
        "kind": event.kind,
        "actor": event.actor,
        "actor_kind": event.actor_kind,
        "step": event.action.step if event.action else "",
        "from": event.from_state,
        "to": event.to_state,
        "reason": event.reason,
        "data": event.data,
    }


def _facts(run: Run) -> list[dict[str, Any]]:
    """What was learned of the calls of a run, in the order in which it was recorded."""
    rows = Evidence.objects.filter(run=run).order_by("recorded_at")
    kept = rows.values_list("recorded_at", "source", "verdict", "action__step", "fact")
    return [dict(zip(("at", "source", "verdict", "step", "fact"), row, strict=True)) for row in kept]


def _surfaces(
    run: Run, tasks: list[dict[str, Any]], events: list[dict[str, Any]], customer: str, model_saw: list[str]
) -> dict[str, str]:
    """Every place where a text could come out, as text: what must not be there is looked for in it."""
    tries = Attempt.objects.filter(run=run).values_list("observation", "reason_code")
    evidence = Evidence.objects.filter(run=run).values_list("fact", "raw", "external_id")
    effects = Effect.objects.filter(run=run).values_list("step", "external_id")
    decisions = Decision.objects.filter(run=run).values_list("reason", "result", "snapshot")
    arguments = Action.objects.filter(run=run).values_list("step", "tool", "arguments", "external_id", "error_field")
    lists = [run.intent, run.operator_detail, run.customer_message, tasks, list(effects), list(arguments)]
    whole = [lists, events, list(tries), list(evidence), list(decisions)]
    return {
        "customer_message": customer,
        "model_visible": "\n".join(model_saw),
        "list_views": _text(lists),
        "alert": _text([tasks, run.operator_detail]),
        "record": _text(whole),
    }


def _text(values: Any) -> str:
    return json.dumps(values, default=str, ensure_ascii=False)
