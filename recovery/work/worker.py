"""Carrying out one decision: take the lease, ask the outside world without a transaction, conclude under the fence.

Killed anywhere, it leaves a row whose lease runs out: the sweep rings again; a look is only a read (F014, F015).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Q
from steadyhand.manifest import Connector

from recovery import case as cases
from recovery import circuits, crashpoints, escalation, permissions, settle
from recovery.case import Case
from recovery.circuits import Entry
from recovery.connectors import health, kinds, polls
from recovery.connectors.base import Finding, Question, failed
from recovery.models import Decision
from recovery.rules import assembly, circuit, testimony
from recovery.rules.decide import Action as Answer
from recovery.rules.situation import asked_by_hand
from recovery.tasks import Bell
from recovery.work import bulk_run, checks, outside, polling, recounts, sending, verify
from recovery.work.sending import Errand
from runs import definitions, gathering, record, vault, wall
from runs.models import Action, Run
from runs.querysets import database_now, read_clock
from runs.record import TIMER, Actor
from runs.states import advance

LEASE_GRACE_SECONDS = 15.0
MOST_TAKES = 10
"""How many workers may be lost over one decision before it is given up (F020)."""


@dataclass(frozen=True)
class Ticket:
    """A lease on a decision, and the question it orders about the action as it stood after `asked_after` tries.

    `way` is the circuit that the question goes through, `slot_id` its trial there, if it is one.
    """

    tenant_id: uuid.UUID
    decision_id: uuid.UUID
    run_id: uuid.UUID
    action_row: uuid.UUID
    fence: int
    asked_after: int
    started_at: datetime
    question: Question
    verb: str
    way: str | None
    slot_id: uuid.UUID | None


def execute(decision_id: uuid.UUID) -> None:
    """Carry out a decision if it still waits; a message that comes twice or late finds nothing to do (F052, F053).

    The same bell rings for a listing, the test of a connector and a bulk operation, which are no decisions.
    """
    tenant_id = wall.tenant_of_decision(decision_id)
    if tenant_id is None:
        outside.execute(decision_id)
        checks.execute(decision_id)
        bulk_run.execute(decision_id, ring=Bell())
        return
    crashpoints.point("C19")
    job = _take(tenant_id, decision_id)
    if job is None:
        return
    crashpoints.point("C20")
    if isinstance(job, Errand):
        sending.deliver(job)
    else:
        _look(job)


def _look(ticket: Ticket) -> None:
    finding = try_out(ticket.question) if ticket.verb == "trial" else ask(ticket.question)
    crashpoints.point("C21")
    conclude(ticket, finding)
    crashpoints.point("C25")


def try_out(question: Question) -> Finding:
    """A trial asks for the connector's health, where it says how, else what the waiting call's look-up asks."""
    path = question.connector.health
    return ask(question) if path is None else health.read(question, path)


def ask(question: Question) -> Finding:
    """Put the question to its connector; whatever goes wrong there is a failed look-up, never an answer."""
    try:
        if question.polling is not None:
            return polls.ask(question.polling, sending.transmit)
        return kinds.reconcile(question)
    except Exception as wrong:
        # An unforeseen fault in a look-up must not leave the run without a next step; its class is kept as evidence.
        return failed(f"The look-up broke: {type(wrong).__name__}.")


def _take(tenant_id: uuid.UUID, decision_id: uuid.UUID) -> Ticket | Errand | None:
    """The lease, with everything checked again at the moment of acting (I13); None if there is nothing to do."""
    with wall.within(tenant_id, by="worker"):
        waits = Decision.objects.filter(is_waiting(), pk=decision_id)
        run_id = waits.values_list("run_id", flat=True).first()
        run = record.lock_run(run_id) if run_id is not None else None
        # Read under the lock: another worker may have taken it meanwhile.
        decision = waits.select_related("action", "by").first() if run is not None else None
        if run is None or decision is None or decision.action is None:
            return None
        return start(decision, run, decision.action)


def start(decision: Decision, run: Run, action: Action, *, rounds: int = 1) -> Ticket | Errand | None:
    """The lease on a decision that waits, under its run's lock; `rounds`: how many looks may come before this one."""
    if decision.verb == "send":
        return _take_errand(decision, run, action)
    case = cases.read(run, action)
    refusal = _no_longer(decision, case)
    if refusal is not None:
        _refuse(decision, run, action, refusal)
        if decision.fence >= MOST_TAKES and action.state == "succeeded":
            recounts.unanswered(run, action, TIMER)  # what cannot even be asked has not been answered
        return None
    lease_until = _lease(decision, case, rounds)
    entry = _enter(decision, case, lease_until)
    if entry.again_at is not None:
        _rest(decision, run, case, entry.again_at)
        return None
    advance(decision, machine="decision", to="running", fence=decision.fence + 1, lease_until=lease_until)
    return _ticket(decision, run, case, entry)


def _enter(decision: Decision, case: Case, lease_until: datetime) -> Entry:
    """Through the circuit of the look. One that a person asks for waits its turn for no others."""
    return circuits.enter(
        case.troubled, _way(decision, case), case.definition, purpose="trial" if decision.verb == "trial" else "look",
        lease_until=lease_until, waited=decision.by is None and decision.verb != "trial",
    )  # fmt: skip


def _way(decision: Decision, case: Case) -> str | None:
    return case.way if decision.verb == "trial" else cases.way_of_look(case.definition, case.known)


def _rest(decision: Decision, run: Run, case: Case, again_at: datetime) -> None:
    """A look that the table asks for keeps its place; one that only a person asks for is ordered anew (F115)."""
    if case.would.action is not Answer.HUMAN or case.action.settled_at is not None:
        return _wait_for_circuit(decision, run, case.action, again_at)
    return _refuse(decision, run, case.action, "What would be asked is given a rest; check again after it.")


def _wait_for_circuit(decision: Decision, run: Run, action: Action, again_at: datetime) -> None:
    """What would be asked is given a rest: the look keeps its place, and the record says why (F115)."""
    _refuse(decision, run, action, "What would be asked is given a rest; the look-up waits for its circuit.")
    gathering.refresh(action)
    if decision.verb != "trial" and (action.settled_at is None or action.state == "succeeded"):
        gathering.change(action, {}, {"due_at": again_at})


def _take_errand(decision: Decision, run: Run, action: Action) -> Errand | None:
    """A send that is free to leave; one that a worker began before is closed, and found out about instead."""
    if decision.state == "running":
        sending.abandon(decision, run)
        return None
    refusal = sending.no_longer(run, action)
    if refusal is not None:
        _refuse(decision, run, action, refusal)
        return None
    if sending.waits(run, action):
        return None
    entry = sending.enter(run, action)
    if entry.again_at is not None:
        _wait_for_circuit(decision, run, action, entry.again_at)
        return None
    return sending.permit(decision, run, action, entry)


def _lease(decision: Decision, case: Case, rounds: int) -> datetime:
    """Longer than the look may take: to connect and to read have `timeout_seconds` each."""
    connector = _connector(decision, case)
    seconds = 2 * connector.timeout_seconds if connector else 0.0
    return case.now + timedelta(seconds=rounds * seconds + LEASE_GRACE_SECONDS)


def _refuse(decision: Decision, run: Run, action: Action, sentence: str) -> None:
    """The decision ends undone, with its audit row, and the call gets its next step anew: nothing is forgotten."""
    _end(decision, "refused", sentence)
    data = {"verb": decision.verb, "decision": str(decision.pk)}
    record.write_event(run, "refused", _actor(decision), action=action, reason=sentence, data=data)
    rests = action.settled_at is not None or action.state in ("permitted", "held", "awaiting_approval")
    if decision.verb != "trial" and not rests:
        settle.settle(run, action, TIMER)


def is_waiting() -> Q:
    """Decisions that nobody works on: new ones, and those whose worker's lease ran out."""
    return Q(state="requested") | Q(state="running", lease_until__lte=database_now())


def _no_longer(decision: Decision, case: Case) -> str | None:
    """Why the decision must not be carried out any more, in a sentence; None if it still holds."""
    action = case.action
    if decision.by is not None and not permissions.may(decision.by, decision.verb, decision.tenant_id):
        return f"{decision.by} no longer holds the right to {decision.verb}."
    if decision.fence >= MOST_TAKES:
        return f"{MOST_TAKES} workers were lost over it."
    if decision.verb == "trial":
        return None if case.waits_for_circuit else "Nothing waits for this trial any more."
    if action.state == "succeeded" and (decision.by is None or escalation.unconfirmed(case.run, action) is not None):
        return None  # a later count of what was believed on less than a final look
    if action.settled_at is not None:
        return "The call was settled meanwhile."
    if decision.by is not None and testimony.bound_broke(case.known):
        return None  # nobody else looks, for a contradiction is a person's; and the effect may be found again
    known = case.known
    by_hand = asked_by_hand(case.evidence, askable=assembly.askable(known), demoted=known.demoted)
    looks = (by_hand if decision.by is not None else case.evidence).looks
    if case.suppose(looks="spent" if looks == "spent" else "due").action is not Answer.PROBE:
        return "A look-up would not change what is known."
    return None


def _ticket(decision: Decision, run: Run, case: Case, entry: Entry) -> Ticket:
    """Count the look before it is made, so that a worker that dies in it again and again stops at the ceiling."""
    question, action = _question(decision, case), case.action
    actor = _actor(decision)
    if decision.verb == "trial":
        pass  # it asks about the dependency; the call that lends its question stays where it is
    elif action.settled_at is None:
        record.move_action(action, "probing", actor, run=run, kind="look_started", looks=F("looks") + 1, due_at=None)
    else:
        gathering.change(action, {}, {"looks": F("looks") + 1, "due_at": None})
        record.write_event(run, "recount_started", actor, action=action, data={"step": action.step})
    return Ticket(
        tenant_id=run.tenant_id,
        decision_id=decision.pk,
        run_id=run.pk,
        action_row=action.pk,
        fence=decision.fence,
        asked_after=action.attempts,
        started_at=case.now,
        question=question,
        verb=decision.verb,
        way=_way(decision, case),
        slot_id=entry.slot.pk if entry.slot else None,
    )


def _question(decision: Decision, case: Case) -> Question:
    """What the look asks: for the end of a job that was accepted, if its contract says how, else for the effect."""
    definition, tool, action = case.definition, case.tool, case.action
    connector = _connector(decision, case)
    assert connector is not None  # noqa: S101  (reconcilable, or can be tried: checked just above)
    polled = decision.verb != "trial" and assembly.polled(case.known)
    return Question(
        tool=tool.name,
        match=tool.reconcile.match if tool.reconcile else {},
        whom=sending.whom(definition, tool.reconcile.connector if tool.reconcile else ""),
        action_id=action.action_id,
        run_id=str(case.run.pk),
        key=action.idempotency_key,
        arguments=vault.unseal(definition.keys, bytes(action.sealed_arguments)),
        connector=connector,
        look=tool.reconcile.look if tool.reconcile else None,
        polling=polling.about(definition, tool, action) if polled else None,
    )


def _connector(decision: Decision, case: Case) -> Connector | None:
    """Where the look goes: the look-up's connector, or the one of the poll; a trial to the one that is tried."""
    definition, tool = case.definition, case.tool
    if decision.verb == "trial":
        return definition.manifest.connectors.get(circuit.connector_in(case.way or "") or "")
    poll = definition.tools[tool.poll.tool] if tool.poll else None
    sent = definition.manifest.connectors.get(poll.send.connector) if poll and poll.send else None
    return definition.connector(tool) or sent


def conclude(ticket: Ticket, finding: Finding) -> None:
    """Record the finding and what follows from it, with its run locked."""
    with wall.within(ticket.tenant_id, by="worker"):
        run = record.lock_run(ticket.run_id)
        decision = Decision.objects.select_related("action", "by").get(pk=ticket.decision_id)
        assert run is not None  # noqa: S101  (composite foreign keys)
        assert decision.action is not None  # noqa: S101
        record_finding(decision, run, decision.action, ticket, finding)
        crashpoints.point("C22")


def record_finding(decision: Decision, run: Run, action: Action, ticket: Ticket, finding: Finding) -> None:
    """What follows from a finding if the lease is still ours; else it is kept as evidence only (I6)."""
    ours = decision.state == "running" and decision.fence == ticket.fence
    circuits.heard_look(
        ticket.way, ticket.slot_id, definitions.of_run(run), run.tenant_id, fault=finding.fault, fact=finding.fact
    )  # fmt: skip
    if ours:
        _end(decision, "done", finding.fact)  # first, for what follows may order the next look
    if ticket.verb == "trial":
        return
    verify.prove(
        run,
        action,
        finding,
        asked_after=ticket.asked_after,
        started_at=ticket.started_at,
        actor=_actor(decision),
        ours=ours,
    )


def _end(decision: Decision, state: str, result: str) -> None:
    advance(decision, machine="decision", to=state, result=result, ended_at=read_clock(), lease_until=None)


def _actor(decision: Decision) -> Actor:
    return Actor("person", str(decision.by)) if decision.by else Actor("timer", "sweep")
