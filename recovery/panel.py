"""One task as a person meets it: the case behind it, and what this person may do now.

The page draws it, the POST asks it again under the run's lock, the worker once more before it acts (I13).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from recovery import case as cases
from recovery import permissions
from recovery.case import Case
from recovery.models import Decision, HumanTask
from recovery.rules import assembly, policy
from recovery.rules.policy import Situation, Verb
from runs import wall
from runs.models import Person, Run
from runs.querysets import read_clock
from runs.states import RUN_OPEN, TASK_OPEN


@dataclass(frozen=True)
class Panel:
    """The task, its run, its case if it is about a call, and the situation of one person before it."""

    task: HumanTask
    run: Run
    case: Case | None
    situation: Situation
    running: Decision | None

    @property
    def evidence_hash(self) -> str:
        """Changes when a fact changes: a form that carries an older one is refused (F119)."""
        return assembly.hash_of(self.case.known) if self.case else f"run:{self.run.state}:{self.run.reason_code}"

    @property
    def verbs(self) -> tuple[Verb, ...]:
        return policy.verbs(self.situation)

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
    mine = task.claimed_by_id == person.pk and task.state == "claimed"
    running = Decision.objects.filter(run=run, action=task.action, state__in=("requested", "running")).first()
    situation = Situation(
        abilities=permissions.grants(person).get(task.tenant_id, frozenset()),
        task_open=task.state in TASK_OPEN,
        mine=mine,
        held_by=str(task.claimed_by) if task.state == "claimed" else None,
        held_until=task.claimed_until,
        run_state=run.state,
        run_open=run.state in RUN_OPEN,
        evidence=case.evidence if case else None,
        settled=task.action is None or task.action.settled_at is not None,
        awaiting_approval=task.action is not None and task.action.state == "awaiting_approval",
        tool=task.tool or "the run",
        final_from=case.final_at if case else None,
        last_look_kept=case is not None and assembly.early_looks_spent(case.known),
        check_under_way=running is not None and task.action is not None,
        open_calls=run.actions.filter(settled_at__isnull=True).count(),
        ceiling=cases.spent_budget(run, now) or _calls_spent(run),
        over_threshold=case.known.over_threshold if case else False,
        now=now,
    )
    return Panel(task, run, case, situation, running)


def _calls_spent(run: Run) -> str | None:
    if run.turns >= run.max_turns:
        return "turn_budget_exhausted"
    return "tool_call_budget_exhausted" if run.tool_calls >= run.max_tool_calls else None
