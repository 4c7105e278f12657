"""The worker's own sends: permitted like an agent's call, made once outside any transaction, reported like one.

The permit counts as the dispatch. A worker that dies after it leaves an attempt whose lease runs out: its outcome is
unknown, and the call is not made again by whoever finds the decision (F004, F007, I6).
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import F
from steadyhand import observe
from steadyhand.contract import Observation, Report
from steadyhand.manifest import Tool

from recovery import callback_secrets, circuits, clients, crashpoints, leases, reports, settle
from recovery import case as cases
from recovery.circuits import Entry
from recovery.connectors import kinds
from recovery.connectors.base import Outgoing, Whom
from recovery.models import Decision
from recovery.rules import circuit
from recovery.rules.decide import Action as Answer
from recovery.work import stops
from recovery.work.orders import FREE
from runs import definitions, record, vault, wall
from runs.definitions import Definition
from runs.models import Action, Run
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import advance

LEASE_GRACE_SECONDS = 15.0
DISPATCH_WITHIN_SECONDS = 5.0
WORKER = Actor("timer", "worker")
LAYER = "worker"


@dataclass(frozen=True)
class Errand:
    """A permit in the hands of the worker. `made_at` is this process's monotonic clock, for nothing leaves late."""

    tenant_id: uuid.UUID
    run_id: uuid.UUID
    decision_id: uuid.UUID
    attempt_id: uuid.UUID
    fence: int
    outgoing: Outgoing
    made_at: float


def waits(run: Run, action: Action) -> bool:
    """Whether a stop switch keeps this from leaving: the decision waits, and goes on when it is lifted.

    A call of an agent that is let in no more does not leave either, until its run's time is up (SEC-17, I13); an undo
    is nobody's call but ours.
    """
    if action.role != "undo" and clients.gone(run.client):
        return True
    return stops.for_call(run, definitions.of_run(run).tools[action.tool]) is not None


def no_longer(run: Run, action: Action) -> str | None:
    """Why this must not be sent any more, in a sentence; None if it may. Asked at the moment of acting (I13)."""
    if action.settled_at is not None or action.state not in FREE:
        return "The call was settled, held or sent meanwhile."
    if run.goal != ("rollback" if action.role == "undo" else "forward"):
        return "The run no longer goes that way."
    if cases.read(run, action).answer.action is not Answer.RETRY:
        return "The table no longer lets it be sent."
    return None


def enter(run: Run, action: Action) -> Entry:
    """Through the circuit of this call, or not now (DECISIONS 1.5)."""
    case = cases.read(run, action)
    lease_until = case.now + timedelta(seconds=case.tool.timeout_seconds + LEASE_GRACE_SECONDS)
    return circuits.enter(
        case.troubled, circuit.of_call(case.tool), case.definition, purpose="call", lease_until=lease_until,
        waited=action.attempts > 0 or action.reason_code == "circuit_open",
    )  # fmt: skip


def permit(decision: Decision, run: Run, action: Action, entry: Entry) -> Errand:
    """Intent first: the attempt, its lease and the decision's own commit together, before a byte leaves (I3)."""
    definition = definitions.of_run(run)
    tool = definition.tools[action.tool]
    generation = _generation(run, action)
    key = vault.remote_key(definition.keys, action.action_id, generation)
    attempt = record.grant_attempt(
        action, run=run, layer=LAYER, lease_seconds=tool.timeout_seconds + LEASE_GRACE_SECONDS, key=key, actor=WORKER,
        circuit=circuit.of_call(tool), trial=entry.slot is not None,
    )  # fmt: skip
    circuits.belongs_to(entry, attempt)
    Run.objects.filter(pk=run.pk).update(in_flight=F("in_flight") + 1, version=F("version") + 1)
    advance(decision, machine="decision", to="running", fence=F("fence") + 1, lease_until=attempt.lease_until)
    settle.refresh_run(run, WORKER)
    crashpoints.point("C06")
    return Errand(
        tenant_id=run.tenant_id,
        run_id=run.pk,
        decision_id=decision.pk,
        attempt_id=attempt.pk,
        fence=attempt.fence,
        outgoing=outgoing(definition, tool, action, arguments=None, attempt=attempt.number, key=key),
        made_at=time.monotonic(),
    )


def abandon(decision: Decision, run: Run) -> None:
    """The worker that held this is gone: what it sent, if anything, is found out, never repeated here (F007)."""
    leases.expire_of_run(run)
    advance(
        decision, machine="decision", to="failed", ended_at=read_clock(), lease_until=None,
        result="The worker did not come back; whether the call left is to be found out.",
    )  # fmt: skip


def deliver(errand: Errand) -> None:
    """Make the call and report it under its fence; a lease that ended meanwhile makes it a late report (F058)."""
    crashpoints.point("C07")
    seen = _in_time(errand)
    crashpoints.point("C12")
    told = Report(attempt_id=str(errand.attempt_id), tool=errand.outgoing.tool, fence=errand.fence, observation=seen)
    with wall.within(errand.tenant_id, by="worker"):
        run = record.lock_run(errand.run_id)
        assert run is not None  # noqa: S101  (composite foreign keys)
        # The order to send ends first: while it stands, the look that this answer may ask for could not be ordered.
        decision = Decision.objects.get(pk=errand.decision_id)
        if decision.state == "running":
            advance(decision, machine="decision", to="done", ended_at=read_clock(), lease_until=None)
        answer = reports.under_lock(run, errand.attempt_id, told, WORKER)
        result = f"Sent; it came back as {answer.reason_code}."
        Decision.objects.filter(pk=decision.pk, state="done").update(result=result)
        crashpoints.point("C14")
    crashpoints.point("C24")


def transmit(outgoing: Outgoing) -> Observation:
    """The one door through which the worker sends anything that is not a look-up."""
    return kinds.send(outgoing)


def whom(definition: Definition, name: str) -> Whom:
    """Whom the connector of this name serves, and with what its messages are signed; inside the open wall."""
    connector = definition.manifest.connectors.get(name)
    signs = connector is not None and connector.kind == "webhook"
    secrets = callback_secrets.of_connector(definition.keys, name, read_clock()) if signs else ()
    return Whom(name, str(definition.tenant_id), secrets)


def outgoing(
    definition: Definition,
    tool: Tool,
    action: Action,
    *,
    arguments: dict[str, object] | None,
    attempt: int = 1,
    key: str = "",
) -> Outgoing:
    """The request of a tool's `send` about this action; `arguments` None: the action's own, unsealed."""
    assert tool.send is not None  # noqa: S101  (the manifest: host tools, polls and undos that are sent declare it)
    own = vault.unseal(definition.keys, bytes(action.sealed_arguments)) if arguments is None else arguments
    return Outgoing(
        action_id=action.action_id,
        run_id=str(action.run_id),
        key=key,
        tool=tool.name,
        attempt=attempt,
        arguments=own,
        send=tool.send,
        connector=definition.manifest.connectors[tool.send.connector],
        idempotency=tool.idempotency,
        timeout_seconds=tool.timeout_seconds,
        undoes=action.role == "undo" and action.tool == tool.name,
        whom=whom(definition, tool.send.connector),
    )


def _in_time(errand: Errand) -> Observation:
    """A permit that lay too long is not used: its lease may end before the call does (F059)."""
    if time.monotonic() - errand.made_at > DISPATCH_WITHIN_SECONDS:
        return observe.not_sent("The permit was too old when its turn came.")
    try:
        return transmit(errand.outgoing)
    except Exception as wrong:
        # An unforeseen fault after the permit: nobody knows whether the call left.
        return observe.from_exception(wrong, left=True)


def _generation(run: Run, action: Action) -> int:
    """An expired key is never sent again: its next generation is a new key with a life of its own (F046)."""
    if action.attempts == 0 or cases.read(run, action).evidence.key != "expired":
        return action.key_generation
    Action.objects.filter(pk=action.pk).update(key_generation=action.key_generation + 1, first_dispatched_at=None)
    action.refresh_from_db()
    return action.key_generation
