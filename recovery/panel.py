"""One task as a person meets it: the case behind it, and what this person may do now.

The page draws it, the POST asks it again under the run's lock, the worker once more before it acts (I13).
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from recovery import case as cases
from recovery import clients, giving_up, letters, offers, permissions, planning, questions, statements
from recovery.case import Case
from recovery.escalation import UNCONFIRMED
from recovery.giving_up import Question
from recovery.models import DeadLetter, Decision, Handover, HumanTask
from recovery.rules import assembly, bounds, policy, scope, testimony
from recovery.rules.plans import Plan
from recovery.rules.situation import ABILITY_OF, LABELS, Ceiling, Situation, Verb, moment, surely_nothing
from recovery.statements import Statement
from runs import budgets, definitions, wall
from runs.models import Action, Person, Run, Stop
from runs.querysets import read_clock
from runs.states import RUN_OPEN, TASK_OPEN

_CEILINGS = {
    "turn_budget_exhausted": (("max_turns", "turns"),),
    "tool_call_budget_exhausted": (("max_tool_calls", "tool calls"),),
    "cost_budget_exhausted": (("max_cost_minor", "minor units of cost"),),
    "token_budget_exhausted": (("max_input_tokens", "input tokens"), ("max_output_tokens", "output tokens")),
}
_UNITS: dict[str, budgets.Unit] = {"turn_budget_exhausted": "turn", "tool_call_budget_exhausted": "call"}


@dataclass(frozen=True)
class Panel:
    """The task, its run, its case if it is about a call, and the situation of one person before it."""

    task: HumanTask
    run: Run
    case: Case | None
    situation: Situation
    running: Decision | None
    letter: DeadLetter | None
    statement: Statement | None
    question: Question
    plan: Plan
    offer: Handover | None

    @property
    def evidence_hash(self) -> str:
        """Changes when a fact changes: a form that carries an older one is refused (F119).

        What would be undone is a fact: a form that was drawn over another plan is refused too.
        """
        if not self.plan.lines:
            return self.facts_hash
        return hashlib.sha256(f"{self.facts_hash}:{self.plan_hash}".encode()).hexdigest()

    @property
    def facts_hash(self) -> str:
        """The evidence alone, as a decision keeps it beside its snapshot."""
        return self.case.evidence_hash if self.case else f"run:{self.run.state}:{self.run.reason_code}"

    @property
    def plan_hash(self) -> str:
        return self.plan.hash

    @property
    def call(self) -> Action:
        """The call that the task is about; policy offers a verb on a call only where there is one."""
        assert self.task.action is not None  # noqa: S101
        return self.task.action

    @property
    def verbs(self) -> tuple[Verb, ...]:
        return policy.verbs(self.situation)

    @property
    def shown(self) -> tuple[Verb, ...]:
        return policy.shown(self.situation)

    def verb(self, name: str) -> Verb:
        return policy.find(self.situation, name)


def tenant_of(task_id: uuid.UUID, person: Person) -> uuid.UUID | None:
    """The tenant of a task that this person may see; None for a missing one and a foreign one alike."""
    with wall.within(*permissions.tenants_of(person)):
        found: uuid.UUID | None = HumanTask.objects.filter(pk=task_id).values_list("tenant_id", flat=True).first()
        return found


def read(task: HumanTask, person: Person) -> Panel:
    """The panel of a task, inside the open wall."""
    run, now = task.run, read_clock()
    case = cases.read(run, task.action) if task.action is not None else None
    running = Decision.objects.filter(run=run, action=task.action, state__in=("requested", "running")).first()
    kept = DeadLetter.objects.filter(action=task.action).select_related("owner")
    letter = kept.first() if task.kind == "dead_letter" else None
    statement, question = statements.pending(task), giving_up.of_task(run, task)
    offer = offers.pending(task)
    plan = planning.of_run(run) if run.state in RUN_OPEN else Plan(())
    bound = letters.bound_to(letter) if letter is not None else question.bound_to(plan.hash)
    situation = Situation(
        **_before(task, person),
        **_offered(offer, person),
        **_call(task, case),
        **_consent(task, person, statement, bound),
        **_undoing(run, question, plan),
        **_run(run, task, case, now),
        check_under_way=running is not None and task.action is not None,
        letter=letter.state if letter else "",
        now=now,
    )
    return Panel(task, run, case, situation, running, letter, statement, question, plan, offer)


def _before(task: HumanTask, person: Person) -> dict[str, Any]:
    """Who stands before the task, and who holds it."""
    return {
        "abilities": permissions.grants(person).get(task.tenant_id, frozenset()),
        "task_open": task.state in TASK_OPEN,
        "mine": task.claimed_by_id == person.pk and task.state == "claimed",
        "held_by": str(task.claimed_by) if task.state == "claimed" else None,
        "held_until": task.claimed_until,
        "snoozed_until": task.snoozed_until,
        "twin": _twin(task) if task.state not in TASK_OPEN else "",
    }


def _offered(offer: Handover | None, person: Person) -> dict[str, Any]:
    """Whose yes the handover of the task waits for."""
    if offer is None:
        return {}
    return {
        "offered_to": str(offer.to),
        "offered_by": str(offer.by),
        "offer_mine": offer.to_id == person.pk,
        "offer_given": offer.by_id == person.pk,
        "offer_until": offer.expires_at,
    }


def _twin(task: HumanTask) -> str:
    """The open task that asks about the same cause, by its number."""
    same = HumanTask.objects.filter(run=task.run, cause=task.cause, state__in=TASK_OPEN)
    number = same.values_list("number", flat=True).first()
    return f"T-{number}" if number is not None else ""


def _call(task: HumanTask, case: Case | None) -> dict[str, Any]:
    """What the record says about the call of the task."""
    action = task.action
    return {
        "evidence": case.evidence if case else None,
        "settled": action is None or action.settled_at is not None,
        "awaiting_approval": action is not None and action.state == "awaiting_approval",
        "in_flight": action is not None and action.state == "permitted",
        "held": action is not None and action.state == "held",
        "unconfirmed": task.reason_code == UNCONFIRMED and action is not None and action.state == "succeeded",
        **_question(task, action),
        "check_again": case is not None and bounds.may_check_again(case.tool, case.known.looks_made),
        "sent_write": action is not None and action.effect == "write" and action.attempts > 0,
        "tool": task.tool or "the run",
        "final_from": case.final_at if case else None,
        "askable": case is not None and assembly.askable(case.known),
        "demoted": case is not None and case.known.demoted,
        "bound_broke": case is not None and testimony.bound_broke(case.known),
        "by_hand": case is not None and case.known.connector_kind == "manual",
        "last_look_kept": case is not None and assembly.last_look_kept(case.known),
        "over_threshold": case.known.over_threshold if case else False,
        "approve_until": action.due_at if action and action.state == "awaiting_approval" else None,
    }


def _question(task: HumanTask, action: Action | None) -> dict[str, Any]:
    """What only the requester can answer, where this call waits for that."""
    if action is None or not questions.waits(action):
        return {}
    return {
        "question": action.error_field or "an answer",
        "unaskable": questions.unaskable(task.run, action),
        "answer_until": action.due_at,
    }


def _consent(task: HumanTask, person: Person, statement: Statement | None, bound: dict[str, Any]) -> dict[str, Any]:
    """Who asked, who vouched, and who has decided already; `bound` is what a wish made now would be about."""
    return {
        "requester": is_requester(person, task.run),
        "decided": _decided(task, read_clock()),
        "attested": str(statement) if statement else "",
        "attester": statement is not None and statement.by.pk == person.pk,
        "asked_verb": statement.verb if statement else "attest",
        "asked_void": _void(statement, bound, task) if statement else "",
    }


def _void(statement: Statement, bound: dict[str, Any], task: HumanTask) -> str:
    """Why a second word would come too late: the facts moved, or who asked may no longer ask (SEC-08)."""
    if statement.verb == "attest":
        return ""
    if statement.bound != bound:
        return "what it was asked about has changed since; reject it, and it can be asked for anew."
    if not permissions.may(statement.by, ABILITY_OF.get(statement.verb, statement.verb), task.tenant_id):
        return f"{statement.by} may no longer ask for it."
    return ""


def _undoing(run: Run, question: Question, plan: Plan) -> dict[str, Any]:
    """What of a rollback this task is about, and what its plan demands."""
    threshold = definitions.of_run(run).manifest.value_threshold_minor
    return {
        "rolling_back": run.goal == "rollback",
        "undo_again": question.again,
        "waivable": question.kind,
        "waive_bar": question.bar or "nothing of it is left to accept.",
        "rest_over": question.unknown_rest or scope.over(threshold, question.minor),
        "plan_words": plan.in_words,
    }


def _run(run: Run, task: HumanTask, case: Case | None, now: datetime) -> dict[str, Any]:
    """The run around the call: what is open in it, what stopped it, what could be undone."""
    opens = list(run.actions.filter(settled_at__isnull=True).values_list("pk", "effect", "attempts"))
    known = case is not None and (surely_nothing(case.evidence) or case.evidence.verdict == "partial_final")
    sure = case.action.pk if case is not None and known else None
    return {
        "run_state": run.state,
        "run_open": run.state in RUN_OPEN,
        "outside": run.origin == "outside",
        "agent_gone": clients.gone(run.client) if run.state in RUN_OPEN and run.goal == "forward" else "",
        "open_calls": len(opens),
        "doubtful": sum(effect == "write" and tried > 0 and pk != sure for pk, effect, tried in opens),
        "undoable": _undoable(run),
        "ceiling": cases.spent_budget(run, now) or _calls_spent(run),
        "fired": _fired(run, task.reason_code, now),
        "topped_up": run.topped_up,
        "stopped": _switch(stopped_by(run), now) if task.reason_code == STOPPED else "",
    }


STOPPED = "stopped_by_operator"


def stopped_by(run: Run) -> Stop | None:
    """The newest switch that stands in front of this run: of a wider scope, on it alone, or on a tool of its."""
    definition = definitions.of_run(run)
    tools = definition.tools.values()
    named = [name for tool in tools for name in (tool.name, *definition.connectors_of(tool))]
    return Stop.objects.filter(
        Q(scope="everything") | Q(name__in=[str(run.pk), definition.name, *named]),
        Q(until__isnull=True) | Q(until__gt=read_clock()), lifted_at__isnull=True, mode="quarantine",
    ).select_related("by").order_by("-id").first()  # fmt: skip


def _switch(stop: Stop | None, now: datetime) -> str:
    if stop is None:
        return ""
    what = f"{stop.scope} {stop.name}".strip()
    return f"{stop.by} stopped {what} at {moment(stop.set_at, now)} ({stop.reason.rstrip('.')})"


def is_requester(person: Person, run: Run) -> bool:
    """Whether this person asked for the run, or for the one that it works for (SEC-08)."""
    names = {person.email.casefold(), person.name.casefold()}
    return run.requester.strip().casefold() in names or (run.parent is not None and is_requester(person, run.parent))


def _decided(task: HumanTask, now: datetime) -> str:
    """Who approved or rejected the call of this task, and when; empty while nobody has."""
    if task.action is None or task.action.state == "awaiting_approval":
        return ""
    made = Decision.objects.filter(Q(verb="approve") | Q(verb="reject"), task=task).select_related("by").first()
    return f"{made.by} chose “{LABELS[made.verb]}” at {moment(made.requested_at, now)}" if made else ""


def _undoable(run: Run) -> int:
    """How many proven effects have a registered undo and were not undone."""
    if run.state not in RUN_OPEN:
        return 0
    tools = definitions.of_run(run).tools
    standing = run.effects.filter(compensated_by=None, signed_off_at=None).exclude(action__role="undo")
    names = standing.values_list("action__tool", flat=True)
    return sum(tools[name].compensate is not None for name in names if name in tools)


def _fired(run: Run, reason: str, now: datetime) -> Ceiling | None:
    """The ceiling of this run that stopped it; None for any other reason, and where a run above it was stopped."""
    if run.parent_id is not None and reason not in budgets.fired(run, now, unit=_UNITS.get(reason)):
        return None
    if reason == "time_budget_exhausted":
        return _ceiling("elapses_at", "seconds", round((run.elapses_at - run.opened_at).total_seconds()))
    limited = [(field, label) for field, label in _CEILINGS.get(reason, ()) if getattr(run, field) is not None]
    if not limited:
        return None
    field, label = min(limited, key=lambda one: _left(run, one[0]))
    return _ceiling(field, label, getattr(run, field))


def _ceiling(field: str, label: str, limit: int) -> Ceiling:
    return Ceiling(field, label, limit, max(1, limit // 2))


def _left(run: Run, field: str) -> int:
    left: int = getattr(run, field) - getattr(run, field.removeprefix("max_"))
    return left


def _calls_spent(run: Run) -> str | None:
    if run.turns >= run.max_turns:
        return "turn_budget_exhausted"
    return "tool_call_budget_exhausted" if run.tool_calls >= run.max_tool_calls else None
