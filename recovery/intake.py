"""THE way in for agents: propose, report, and the rest of an agent's life (DESIGN 2).

Each function proves the credentials, acts in one transaction and answers in the words of the contract. The ordinary
proposal and the ordinary report are one statement each (runs/hot.py); everything else locks the run, reads, decides.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from steadyhand.contract import (
    Cancel,
    Finish,
    Heartbeat,
    Ingested,
    Leased,
    OpenRun,
    OutcomeDocument,
    Permit,
    Proposal,
    Record,
    Report,
    Reported,
    Resume,
    ResumeAnswer,
    Rollback,
    RunOpened,
    Turn,
    TurnAnswer,
)
from steadyhand.identity import BadInput
from steadyhand.manifest import Manifest

from recovery import (
    answers,
    crashpoints,
    family,
    heartbeats,
    lifecycle,
    permits,
    quick,
    reports,
    resuming,
    turns,
    view,
)
from recovery import ingest as ingesting
from recovery.clients import Credentials, NotAuthenticated, authenticate, claimed, parse_token
from recovery.memory import memory
from recovery.proposal import Prepared, prepare
from recovery.reading import actions, events, outcome_of, resume_answer
from recovery.story import ORIGIN
from recovery.work import compensation, outside
from runs import definitions, record, redact, wall
from runs.ids import parse_id
from runs.models import AgentClient, Run, Tenant, Workflow
from runs.record import Actor
from runs.states import RUN_OPEN
from runs.together import Question, read_together

__all__ = [
    "Conflict",
    "Credentials",
    "NotAuthenticated",
    "NotFound",
    "actions",
    "cancel",
    "events",
    "finish",
    "heartbeat",
    "ingest",
    "memory",
    "open_run",
    "parse_token",
    "propose",
    "read",
    "register_workflow",
    "report",
    "resume",
    "rollback",
    "turn",
]

NotFound = answers.NotFound
Conflict = answers.Conflict


def register_workflow(who: Credentials, name: str, manifest: Manifest, *, request_id: str) -> tuple[Workflow, bool]:
    """Store a manifest as a new version, or find the version that already holds it."""
    with wall.within(who.tenant_id):
        client = authenticate(who)
        _within_reach(client, name)
        tenant = Tenant.objects.get(pk=who.tenant_id)
        workflow, created = definitions.register(tenant, name, manifest, by=client.name)
        if created:
            actor = Actor("agent", client.name, request_id)
            data = {"workflow": name, "version": workflow.version}
            outside.enrol(workflow, manifest)
            record.write_event(None, "workflow_registered", actor, tenant_id=who.tenant_id, data=data)
        return workflow, created


def open_run(who: Credentials, request: OpenRun, *, request_id: str) -> RunOpened:
    """Open a run, or find the one that this client opened under the same reference."""
    with wall.within(who.tenant_id):
        client = authenticate(who)
        _within_reach(client, request.workflow)
        workflow = Workflow.objects.filter(name=request.workflow).order_by("-version").first()
        if workflow is None:
            raise NotFound("No workflow of that name is registered: register it first, and check its spelling.")
        before = Run.objects.filter(client=client, client_ref=request.client_ref)
        if (earlier := before.first()) is not None:
            return _same_run(earlier, request)
        manifest = definitions.of_workflow(workflow, Tenant.objects.get(pk=who.tenant_id)).manifest
        parent = family.parent_of(client, request)
        request = family.narrowed(request, parent)
        try:
            with transaction.atomic():
                run = record.open_run(request, client=client, workflow=workflow, manifest=manifest, parent=parent)
        except IntegrityError:
            return _same_run(before.get(), request)  # the same request was faster on another connection
        definitions.learn(run)
        return answers.run_opened(run, resumed=False)


def _same_run(earlier: Run, request: OpenRun) -> RunOpened:
    """The run that this reference already opened. Raises Conflict if it stands for other work."""
    asked = (request.workflow, redact.clean_text(request.intent), parse_id(request.parent_run_id or ""))
    if (earlier.workflow.name, earlier.intent, earlier.parent_id) != asked:
        raise Conflict("This client_ref already opened a run of other work: use a reference of its own.")
    return answers.run_opened(earlier, resumed=True)


def propose(who: Credentials, run_id: uuid.UUID, proposal: Proposal, *, request_id: str) -> Permit:
    """Ask to make a call: one statement where it may go ahead or is replayed, else under the lock."""
    crashpoints.point("C00")
    facts = definitions.facts(who.tenant_id, run_id)
    if facts is None:
        with _locked(who, run_id, request_id) as (_, run, _):
            facts = definitions.learn(run)
    if facts.origin == ORIGIN:
        with _locked(who, run_id, request_id):  # a call told here and one sent here would pass for each other's tries
            raise Conflict(
                "This run is told from elsewhere: open a run of its own for calls that are to be permitted."
            )
    if proposal.workflow_id != str(facts.definition.id):
        with _locked(who, run_id, request_id) as (_, run, actor):
            return permits.another_version(run, redact.clean_text(proposal.step or proposal.tool, 120), actor)
    try:
        prepared = prepare(facts, run_id, proposal)
    except BadInput:
        with _locked(who, run_id, request_id):  # a stranger hears of no run before its token is proven
            raise
    crashpoints.point("C02")
    permit = _quickly(who, prepared, request_id)
    if permit is None:
        with _seen(who, run_id, request_id, *view.questions(prepared)) as (_, run, actor, found):
            permit = permits.under_lock(run, prepared, actor, view.of(prepared, found))
            crashpoints.point("C04")
    crashpoints.point("C05")
    return permit


def _quickly(who: Credentials, prepared: Prepared, request_id: str) -> Permit | None:
    """The answer of one statement, where one is enough."""
    if not quick.is_ordinary(prepared):
        return None
    crashpoints.point("C03")
    try:
        if prepared.refusal is not None:
            return quick.refuse(who, prepared, prepared.refusal, request_id=request_id)
        return quick.permit(who, prepared, request_id=request_id)
    except IntegrityError:
        return None  # a twin was answered at the same moment: read what stands there now


def report(who: Credentials, run_id: uuid.UUID, told: Report, *, request_id: str) -> Reported:
    """Say what came back. One statement for an ordinary valid reply; else classify and decide under the lock."""
    crashpoints.point("C12")
    facts = definitions.facts(who.tenant_id, run_id)
    attempt_id = answers.known_id(told.attempt_id)
    reported = None
    if facts is not None and told.tool is not None:
        reported = reports.quickly(who, run_id, attempt_id, told, facts, request_id=request_id)
    if reported is None:
        with _locked(who, run_id, request_id) as (_, run, actor):
            definitions.learn(run)
            reported = reports.under_lock(run, attempt_id, told, actor)
            crashpoints.point("C14")
    crashpoints.point("C15")
    return reported


def turn(who: Credentials, run_id: uuid.UUID, told: Turn, *, request_id: str) -> TurnAnswer:
    """Begin or end one turn of the model; stops the run at a ceiling, before the next unit of work (I8)."""
    with _locked(who, run_id, request_id) as (_, run, actor):
        return turns.count_turn(run, told, actor)


def heartbeat(who: Credentials, run_id: uuid.UUID, beat: Heartbeat, *, request_id: str) -> Leased:
    """Extend the lease of an attempt that is still ours; a lost lease stays lost (F060)."""
    attempt_id = answers.known_id(beat.attempt_id)
    with _locked(who, run_id, request_id) as (_, run, _):
        return heartbeats.keep(run, attempt_id, beat.fence)


def finish(who: Credentials, run_id: uuid.UUID, told: Finish, *, request_id: str) -> OutcomeDocument:
    """The agent has nothing more to do; what its run came to follows from the record alone (F091, F092)."""
    with _locked(who, run_id, request_id) as (_, run, actor):
        lifecycle.finish(run, told, actor)
        outcome = outcome_of(run)
    crashpoints.point("C26")
    return outcome


def cancel(who: Credentials, run_id: uuid.UUID, told: Cancel, *, request_id: str) -> OutcomeDocument:
    """Stop what was not dispatched, reconcile what was (F134, F135)."""
    with _locked(who, run_id, request_id) as (_, run, actor):
        if run.state in RUN_OPEN:
            lifecycle.cancel(run, actor, reason=told.reason)
        return outcome_of(run)


def rollback(who: Credentials, run_id: uuid.UUID, told: Rollback, *, request_id: str) -> OutcomeDocument:
    """Take back what the run did, the latest first; a second order changes nothing (I15)."""
    with _locked(who, run_id, request_id) as (_, run, actor):
        compensation.begin(run, actor, told.reason)
        return outcome_of(run)


def resume(who: Credentials, run_id: uuid.UUID, told: Resume | None = None, *, request_id: str) -> ResumeAnswer:
    """Where to go on from, for a runner that comes back; one of another version needs a person first (F022)."""
    with _locked(who, run_id, request_id) as (_, run, actor):
        resuming.admit(run, told or Resume(), actor)
        return resume_answer(run)


def ingest(who: Credentials, records: Sequence[tuple[int, Record]], *, request_id: str) -> Ingested:
    """Take in what happened elsewhere. A record comes with its place in the batch, by which a bad one is named."""
    opener = partial(open_run, who, request_id=request_id)
    return ingesting.take(who, records, opener=opener, request_id=request_id)


def read(who: Credentials, run_id: uuid.UUID, *, request_id: str) -> OutcomeDocument:
    with wall.within(who.tenant_id):
        client = authenticate(who)
        run = Run.objects.filter(pk=run_id, client=client).first()
        if run is None:
            raise NotFound
        return outcome_of(run)


@contextmanager
def _locked(who: Credentials, run_id: uuid.UUID, request_id: str) -> Iterator[tuple[AgentClient, Run, Actor]]:
    """One transaction inside the wall, with the client proven and its run locked."""
    with _seen(who, run_id, request_id) as (client, run, actor, _):
        yield client, run, actor


@contextmanager
def _seen(
    who: Credentials, run_id: uuid.UUID, request_id: str, *questions: Question
) -> Iterator[tuple[AgentClient, Run, Actor, list[list[Any]]]]:
    """The same, and in the same round trip the answers to questions about what the lock holds still."""
    with wall.restored(by="agent"):
        family_of_run = record.family(run_id, client=who.client_id, secret_hash=who.secret_hash)
        _, clients, family_found, *found = read_together(
            wall.opening(who.tenant_id), claimed(who), family_of_run, *questions
        )
        if not clients:
            raise NotAuthenticated
        if not family_found:
            raise NotFound
        client: AgentClient = clients[0]
        yield client, family_found[-1], Actor("agent", client.name, request_id), found


def _within_reach(client: AgentClient, workflow: str) -> None:
    """A client scoped to some workflows does not know the others (SEC-10)."""
    if client.workflows and workflow not in client.workflows:
        raise NotFound
