"""A person gives a dependency a rest, with a reason, and lets it be tried again; nobody forces its circuit closed."""

from __future__ import annotations

import uuid
from collections import Counter

from django.db.models import Count, F

from recovery import circuits, permissions
from recovery.rules import circuit as rules
from recovery.rules.situation import moment
from runs import definitions, redact, wall
from runs.definitions import Definition
from runs.ids import new_id
from runs.models import Action, Circuit, Person, Workflow
from runs.querysets import read_clock
from runs.record import Actor

ABILITY = "circuit"
LONGEST_REASON = 2000
MOST_DEFINITIONS = 200


class Refused(Exception):
    """The circuit cannot be held or released so; the message says why, `field` which part of the form."""

    def __init__(self, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.field = field


class NoSuchHold(Exception):
    """There is no such circuit for this person, or nobody holds it open any more."""


def hold_circuit(by: Person, tenant_id: uuid.UUID, *, name: str, reason: str, request_id: str = "") -> Circuit:
    """Hold a circuit open until it is released; a second click gets the result of the first (F116).

    Raises Refused: no right, no reason, no such circuit, or somebody holds it already (F117).
    """
    _check(by, tenant_id, reason)
    with wall.within(tenant_id, by="person"):
        if name not in names():
            raise Refused("no workflow calls anything of that name.", "name")
        Circuit.objects.bulk_create([Circuit(pk=new_id(), tenant_id=tenant_id, name=name)], ignore_conflicts=True)
        circuit = Circuit.objects.for_tenant(tenant_id).select_for_update().get(name=name)
        words = redact.clean_text(reason, LONGEST_REASON)
        if circuit.state == "held_open" and (circuit.by, circuit.reason) != (by, words):
            raise Refused(f"{circuit.by} holds it open already, since {moment(circuit.since, read_clock())}.", "name")
        if circuit.state == "held_open":
            return circuit
        circuits.move(
            circuit, "held_open", Actor("person", str(by), request_id), kind="circuit_held", why=words, reason=words,
            by=by, until=None,
        )  # fmt: skip
        return circuit


def release_circuit(
    by: Person, tenant_id: uuid.UUID, circuit_id: uuid.UUID, *, reason: str, request_id: str = ""
) -> Circuit:
    """Let trials decide again: it is half open from now on. Raises Refused or NoSuchHold."""
    with wall.within(tenant_id, by="person"):
        circuit = Circuit.objects.for_tenant(tenant_id).select_for_update().filter(pk=circuit_id).first()
        if circuit is None:
            raise NoSuchHold
        _check(by, tenant_id, reason)
        if circuit.state != "held_open":
            raise NoSuchHold
        words = redact.clean_text(reason, LONGEST_REASON)
        circuits.move(
            circuit, "half_open", Actor("person", str(by), request_id), kind="circuit_released", why=words,
            reason=words, by=by, trips=F("trips") + 1,
        )  # fmt: skip
        return circuit


def names() -> list[str]:
    """Every circuit that the tenant's workflows have, as they are registered now; the wall is open."""
    tools = [tool for one in _latest() for tool in one.manifest.tools]
    looks = {name for tool in tools if (name := rules.of_look(tool)) is not None}
    return sorted({rules.of_call(tool) for tool in tools} | looks)


def waiting(tenant_id: uuid.UUID) -> Counter[str]:
    """How many calls each circuit keeps back; the wall is open."""
    held = Action.objects.for_tenant(tenant_id).filter(reason_code="circuit_open", due_at__isnull=False)
    counted = list(held.values_list("run__workflow_id", "tool").annotate(calls=Count("id")))
    versions = Workflow.objects.select_related("tenant").in_bulk({workflow_id for workflow_id, _, _ in counted})
    found: Counter[str] = Counter()
    for workflow_id, tool, calls in counted:
        found[rules.of_call(_definition(versions[workflow_id]).tools[tool])] += calls
    return found


def _latest() -> list[Definition]:
    """The newest version of each workflow."""
    rows = Workflow.objects.select_related("tenant").order_by("tenant_id", "name", "-version")
    return [_definition(workflow) for workflow in rows.distinct("tenant_id", "name")[:MOST_DEFINITIONS]]


def _definition(workflow: Workflow) -> Definition:
    return definitions.of_workflow(workflow, workflow.tenant)


def _check(by: Person, tenant_id: uuid.UUID, reason: str) -> None:
    if not permissions.may(by, ABILITY, tenant_id):
        raise Refused("your role does not include this.")
    if not reason.strip():
        raise Refused("say why, in a few words.", "reason")
