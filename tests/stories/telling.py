"""What the stories ask of the record and of the world, and what alice does."""

from __future__ import annotations

import uuid

from recovery import panel, permissions
from recovery.models import DeadLetter, Decision, HumanTask
from recovery.tasks import ring
from recovery.work import decisions
from recovery.work.decisions import Order
from runs import wall
from runs.models import Action, Attempt, Person, Run
from tests.stack import Stack
from tests.stories.billing import Agent


def invoice() -> str:
    return f"INV-{uuid.uuid4().hex[:10]}"


def record(stack: Stack, run_id: str) -> Run:
    with wall.within(stack.tenant.pk):
        return Run.objects.get(pk=run_id)


def attempts(stack: Stack, run_id: str, tool: str) -> list[Attempt]:
    with wall.within(stack.tenant.pk):
        return list(Attempt.objects.filter(run_id=run_id, action__tool=tool).order_by("number"))


def credits(stack: Stack, agent: Agent) -> list[dict[str, object]]:
    made = stack.sandbox.effects(service="payments", operation="credits")
    return [effect for effect in made if effect["fields"]["invoice"] == agent.invoice]


def script(stack: Stack, agent: Agent, *entries: dict[str, object], operation: str = "credits") -> None:
    stack.sandbox.fault("payments", operation, list(entries), field={"invoice": agent.invoice})


def open_tasks(stack: Stack, run_id: str) -> list[tuple[str, str]]:
    """(kind, reason) of what waits for a person."""
    with wall.within(stack.tenant.pk):
        open_ones = HumanTask.objects.filter(run_id=run_id).exclude(state="resolved").order_by("id")
        return list(open_ones.values_list("kind", "reason_code"))


def letters(stack: Stack, run_id: str) -> list[DeadLetter]:
    with wall.within(stack.tenant.pk):
        return list(DeadLetter.objects.filter(run_id=run_id))


def alice(stack: Stack) -> Person:
    person = Person.objects.filter(email="alice@steadyhand.example").first()
    if person is None:
        person = Person.objects.create_user(email="alice@steadyhand.example", name="Alice")
        permissions.grant_role(person, stack.tenant, "support")
    return person


def press_check(stack: Stack, run_id: str) -> Decision:
    """Alice presses "Check what happened" on the run's task."""
    person = alice(stack)
    with wall.within(stack.tenant.pk):
        task = HumanTask.objects.select_related("run", "action", "claimed_by").get(run_id=run_id, state="open")
        seen = panel.read(task, person)
        order = Order(task.pk, person, "The reply was lost.", seen.evidence_hash, task.version, uuid.uuid4().hex)
    return decisions.reconcile(order, ring=ring)


def settled(stack: Stack, decision: Decision) -> bool:
    with wall.within(stack.tenant.pk):
        return Decision.objects.get(pk=decision.pk).state == "done"


def action_id(stack: Stack, run_id: str) -> str:
    with wall.within(stack.tenant.pk):
        return Action.objects.get(run_id=run_id, tool="apply_credit").action_id


def verdict_of(stack: Stack, run_id: str) -> str:
    with wall.within(stack.tenant.pk):
        return Action.objects.get(run_id=run_id, tool="apply_credit").verdict


def by_reference(stack: Stack, reference: str) -> Run:
    with wall.within(stack.tenant.pk):
        return Run.objects.get(client_ref=reference)


def action_state(stack: Stack, reference: str) -> str:
    with wall.within(stack.tenant.pk):
        return Action.objects.get(run__client_ref=reference, tool="apply_credit").state
