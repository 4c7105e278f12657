"""THE way in for agents: propose, report, and the rest of an agent's life (DESIGN 2).

Each function proves the credentials, acts in one transaction and answers in the words of the contract. The ordinary
proposal and the ordinary report are one statement each (runs/hot.py); everything else locks the run, reads, decides.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import IntegrityError, transaction
from steadyhand.contract import (
    Cancel,
    Finish,
    Heartbeat,
    OpenRun,
    OutcomeDocument,
    Permit,
    Proposal,
    Report,
    Reported,
    RunOpened,
    Turn,
    TurnAnswer,
)
from steadyhand.identity import BadInput
from steadyhand.manifest import Manifest

from recovery import answers, lifecycle, permits, reports
from recovery.clients import Credentials, NotAuthenticated, authenticate, parse_token
from recovery.reading import actions, events, outcome_of, resume
from runs import definitions, record, redact, wall
from runs.models import AgentClient, Attempt, Run, Tenant, Workflow
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import RUN_OPEN

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
    "open_run",
    "parse_token",
    "propose",
    "read",
    "register_workflow",
    "report",
    "resume",
    "turn",
]

NotFound = answers.NotFound
Conflict = answers.Conflict


def register_workflow(who: Credentials, name: str, manifest: Manifest, *, request_id: str) -> tuple[Workflow, bool]:
    """Store a manifest as a new version, or find the version that already holds it."""
    with wall.within(who.tenant_id):
        client = authenticate(who)
        _within_reach(client, name)
        workflow, created = definitions.register(Tenant.objects.get(pk=who.tenant_id), name, manifest)
        if created:
            actor = Actor("agent", client.name, request_id)
            data = {"workflow": name, "version": workflow.version}
            record.write_event(None, "workflow_registered", actor, tenant_id=who.tenant_id, data=data)
        return workflow, created


def open_run(who: Credentials, request: OpenRun, *, request_id: str) -> RunOpened:
    """Open a run, or find the one that this client opened under the same reference."""
    with wall.within(who.tenant_id):
        client = authenticate(who)
        _within_reach(client, request.workflow)
        workflow = Workflow.objects.filter(name=request.workflow).order_by("-version").first()
        if workflow is None:
            raise NotFound
        before = Run.objects.filter(client=client, client_ref=request.client_ref)
        if (earlier := before.first()) is not None:
            return _same_run(earlier, request)
        manifest = definitions.of_workflow(workflow, Tenant.objects.get(pk=who.tenant_id)).manifest
        try:
            with transaction.atomic():
                run = record.open_run(request, client=client, workflow=workflow, manifest=manifest)
        except IntegrityError:
            return _same_run(before.get(), request)  # the same request was faster on another connection
        definitions.learn(run)
        return answers.run_opened(run, resumed=False)


def _same_run(earlier: Run, request: OpenRun) -> RunOpened:
    """The run that this reference already opened. Raises Conflict if it stands for other work."""
    if (earlier.workflow.name, earlier.intent) != (request.workflow, redact.clean_text(request.intent)):
        raise Conflict("This client_ref already opened a run of other work: use a reference of its own.")
    return answers.run_opened(earlier, resumed=True)


def propose(who: Credentials, run_id: uuid.UUID, proposal: Proposal, *, request_id: str) -> Permit:
    """Ask to make a call: one statement where it may go ahead or is replayed, else under the lock."""
    facts = definitions.facts(who.tenant_id, run_id)
    if facts is None:
        with _locked(who, run_id, request_id) as (_, run, _):
            facts = definitions.learn(run)
    if proposal.workflow_id != str(facts.definition.id):
        with _locked(who, run_id, request_id):
            raise Conflict("This run was opened under another version of its workflow: resume it to go on.")
    try:
        prepared = permits.prepare(facts, run_id, proposal)
    except BadInput:
        with _locked(who, run_id, request_id):  # a stranger hears of no run before its token is proven
            raise
    if prepared.refusal is None and not permits.needs_care(prepared):
        try:
            quick = permits.quickly(who, prepared, request_id=request_id)
        except IntegrityError:
            quick = None  # a twin was granted at the same moment: read what stands there now
        if quick is not None:
            return quick
    with _locked(who, run_id, request_id) as (_, run, actor):
        return permits.under_lock(run, prepared, actor)


def report(who: Credentials, run_id: uuid.UUID, told: Report, *, request_id: str) -> Reported:
    """Say what came back. One statement for an ordinary valid reply; else classify and decide under the lock."""
    facts = definitions.facts(who.tenant_id, run_id)
    attempt_id = answers.known_id(told.attempt_id)
    if facts is not None and told.tool is not None:
        quick = reports.quickly(who, run_id, attempt_id, told, facts, request_id=request_id)
        if quick is not None:
            return quick
    with _locked(who, run_id, request_id) as (_, run, actor):
        definitions.learn(run)
        return reports.under_lock(run, attempt_id, told, actor)


def turn(who: Credentials, run_id: uuid.UUID, told: Turn, *, request_id: str) -> TurnAnswer:
    """Count one turn of the model and what it used; stops the run at a ceiling, before the next unit of work (I8)."""
    with _locked(who, run_id, request_id) as (_, run, actor):
        return lifecycle.count_turn(run, told, actor)


def heartbeat(who: Credentials, run_id: uuid.UUID, beat: Heartbeat, *, request_id: str) -> dict[str, Any]:
    """Extend the lease of an attempt that is still ours, counted from now; a lost lease stays lost (F060)."""
    attempt_id = answers.known_id(beat.attempt_id)
    with _locked(who, run_id, request_id) as (_, run, _):
        now = read_clock()
        held = Attempt.objects.filter(
            pk=attempt_id, run=run, fence=beat.fence, ended_at__isnull=True, lease_until__gt=now
        )
        attempt = held.select_related("action").first()
        if attempt is None:
            raise Conflict("The lease is lost; report what you know, and do not go on.")
        held.update(lease_until=max(attempt.lease_until, now + reports.lease_extension(run, attempt)))
        attempt.refresh_from_db()
        return {"lease_until": attempt.lease_until.isoformat()}


def finish(who: Credentials, run_id: uuid.UUID, told: Finish, *, request_id: str) -> OutcomeDocument:
    """The agent has nothing more to do; what its run came to follows from the record alone (F091, F092)."""
    with _locked(who, run_id, request_id) as (_, run, actor):
        lifecycle.finish(run, told, actor)
        return outcome_of(run)


def cancel(who: Credentials, run_id: uuid.UUID, told: Cancel, *, request_id: str) -> OutcomeDocument:
    """Stop what was not dispatched, reconcile what was (F134, F135)."""
    with _locked(who, run_id, request_id) as (_, run, actor):
        if run.state in RUN_OPEN:
            lifecycle.cancel(run, actor, reason=told.reason)
        return outcome_of(run)


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
    with wall.within(who.tenant_id):
        client = authenticate(who)
        run = record.lock_run(run_id)
        if run is None or run.client_id != client.pk:
            raise NotFound
        yield client, run, Actor("agent", client.name, request_id)


def _within_reach(client: AgentClient, workflow: str) -> None:
    """A client scoped to some workflows does not know the others (SEC-10)."""
    if client.workflows and workflow not in client.workflows:
        raise NotFound
