"""Driving a case to its end without waiting: the sweep, the worker, and look-ups whose answers are written down."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from recovery.connectors.base import Finding, Question, failed
from recovery.models import Decision, HumanTask
from recovery.panel import Panel
from recovery.panel import read as read_panel
from recovery.work import decisions, worker
from recovery.work.decisions import Order
from recovery.work.sweep import sweep
from runs import wall
from runs.models import Action, Attempt, Effect, Event, Evidence, Person, Run
from tests.factories import ACCOUNT, AMOUNT, Case

ABSENT = Finding("absent", "0 records listed, none of them is ours.", count=0)
TWICE = Finding("conflict", "2 records carry our reference.", count=2)
SILENT = failed("The look-up did not answer in time.")


def present(external_id: str = "cr_1", **fields: Any) -> Finding:
    """One whole record of ours."""
    record = {"credit_id": external_id, "account": ACCOUNT, "amount_minor": AMOUNT, "currency": "EUR"} | fields
    return Finding("present", f"One record is ours: {external_id}.", 1, external_id, record, record)


@dataclass
class Looks:
    """The outside system as look-ups meet it: answers in order, the last one for ever; and what it was asked.

    `meanwhile` is what happens on our side while a look is under way.
    """

    answers: list[Finding] = field(default_factory=lambda: [SILENT])
    asked: list[Question] = field(default_factory=list)
    meanwhile: Callable[[], object] = lambda: None

    def say(self, *answers: Finding) -> None:
        self.answers = list(answers)

    def __call__(self, question: Question) -> Finding:
        self.asked.append(question)
        self.meanwhile()
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def script(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """Replace the connector, and nothing else of the worker."""
    looks = Looks()
    monkeypatch.setattr(worker, "ask", looks)
    return looks


def tick() -> None:
    """One pass of the sweep, and every look that waits is carried out."""
    done = sweep(ring=lambda decision_id: None)
    assert done.get("failed", 0) == 0, done
    for tenant_id in wall.due_tenants():
        work(tenant_id)


def work(tenant_id: uuid.UUID) -> None:
    for decision_id in waiting(tenant_id):
        worker.execute(decision_id)


def waiting(tenant_id: uuid.UUID) -> list[uuid.UUID]:
    with wall.within(tenant_id):
        return list(Decision.objects.filter(state="requested").order_by("id").values_list("pk", flat=True))


def look(case: Case) -> None:
    """The sweep orders what is due, and the worker does it."""
    tick()
    work(case.tenant.pk)


# --- people -------------------------------------------------------------------------------------------------


def panel(case: Case, person: Person, task: HumanTask | None = None) -> Panel:
    with wall.within(case.tenant.pk):
        task = HumanTask.objects.select_related("run", "action", "claimed_by").get(pk=(task or case.task()).pk)
        seen = read_panel(task, person)
        seen.verbs  # noqa: B018  (read inside the wall)
        return seen


def order(case: Case, person: Person, *, reason: str = "Looking into it.", **changes: Any) -> Order:
    """A form as it stands now, filled in by a person."""
    seen = panel(case, person, changes.pop("task", None))
    form: dict[str, Any] = {
        "task_id": seen.task.pk,
        "by": person,
        "reason": reason,
        "evidence_hash": seen.evidence_hash,
        "version": seen.task.version,
        "key": uuid.uuid4().hex,
    }
    return Order(**(form | changes))


def press(verb: str, case: Case, person: Person, **changes: Any) -> Decision:
    """A person presses a button of the latest task."""
    more = {"ring": lambda decision_id: None} if verb == "reconcile" else {}
    return getattr(decisions, verb)(order(case, person, **changes), **more)


# --- what the record says -----------------------------------------------------------------------------------


def tries(case: Case, tool: str = "apply_credit") -> list[Attempt]:
    with wall.within(case.tenant.pk):
        return list(Attempt.objects.filter(run_id=case.run_id, action__tool=tool).order_by("number"))


def evidence(case: Case) -> list[str]:
    with wall.within(case.tenant.pk):
        return list(Evidence.objects.filter(run_id=case.run_id).order_by("id").values_list("verdict", flat=True))


def effects(case: Case) -> list[str]:
    with wall.within(case.tenant.pk):
        return list(Effect.objects.filter(run_id=case.run_id).order_by("id").values_list("step", flat=True))


def actions(case: Case) -> list[Action]:
    with wall.within(case.tenant.pk):
        return list(Action.objects.filter(run_id=case.run_id).order_by("id"))


def kinds(case: Case) -> list[str]:
    with wall.within(case.tenant.pk):
        return list(Event.objects.filter(run_id=case.run_id).order_by(*Event.IN_ORDER).values_list("kind", flat=True))


def tasks(case: Case, **lookup: Any) -> list[HumanTask]:
    with wall.within(case.tenant.pk):
        return list(HumanTask.objects.filter(run_id=case.run_id, **lookup).order_by("id"))


def open_tasks(case: Case) -> list[tuple[str, str]]:
    """(kind, reason) of what waits for a person."""
    return [(task.kind, task.reason_code) for task in tasks(case) if task.state != "resolved"]


def standing(case: Case) -> tuple[str, str | None, str | None]:
    """(state, outcome, reason) of the run."""
    run: Run = case.run
    return run.state, run.outcome, run.reason_code
