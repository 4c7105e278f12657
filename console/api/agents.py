"""What an agent may ask: each function takes apart, calls intake and answers; nothing is decided here."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import BaseModel
from steadyhand.contract import (
    ActionPage,
    Cancel,
    EventPage,
    Finish,
    Heartbeat,
    Leased,
    Manifest,
    Memory,
    Name,
    OpenRun,
    OutcomeDocument,
    Permit,
    Proposal,
    Report,
    Reported,
    Resume,
    ResumeAnswer,
    Rollback,
    RunOpened,
    Strict,
    Turn,
    TurnAnswer,
)

from console.api.bodies import Body
from console.api.bodies import read as read_body
from console.api.parsing import Fault, Refused
from recovery import cautions, intake

router = Router()
Limit = Annotated[int, Query(ge=1, le=500)]


class Warned(Strict):
    """Something that the manifest may declare and that will not do what it seems to."""

    field: str
    remedy: str


class Registered(Strict):
    """A version of a workflow: the same manifest again is the same version."""

    workflow_id: str
    name: str
    version: int
    warnings: list[Warned] | None = None


class AgentRequest(HttpRequest):
    """A request that came through the edge (an id) and the token (credentials)."""

    request_id: str
    auth: intake.Credentials


def answer(model: BaseModel, status: int = 200) -> HttpResponse:
    return HttpResponse(model.model_dump_json(exclude_none=True), status=status, content_type="application/json")


def has_body(request: HttpRequest) -> bool:
    return request.META.get("CONTENT_LENGTH") not in (None, "", "0") or "HTTP_TRANSFER_ENCODING" in request.META


def asked(request: HttpRequest, *known: str) -> None:
    """Refuse a query parameter that nobody reads or that stands twice: a slip must not change the answer."""
    faults = [Fault(name, "remove this parameter") for name in request.GET if name not in known]
    faults += [Fault(name, "send it once") for name in known if len(request.GET.getlist(name)) > 1]
    if faults:
        raise Refused(422, *faults)


@router.put("/workflows/{name}", response={201: Registered, 200: Registered}, summary="Register a workflow")
def register(request: AgentRequest, name: Name, manifest: Annotated[Manifest, Body]) -> HttpResponse:
    """201 for a new version, 200 when this manifest is registered already. Every fault of a manifest is reported, and
    under `warnings` what is sound and will not do what it seems to."""
    workflow, created = intake.register_workflow(request.auth, name, manifest, request_id=request.request_id)
    warnings = [Warned(field=field, remedy=remedy) for field, remedy in cautions.of(manifest)]
    told = Registered(
        workflow_id=str(workflow.id), name=workflow.name, version=workflow.version, warnings=warnings or None
    )
    return answer(told, 201 if created else 200)


@router.post("/runs", response={201: RunOpened, 200: RunOpened}, summary="Open a run")
def open_run(request: AgentRequest, run: Annotated[OpenRun, Body]) -> HttpResponse:
    """201 for a new run; 200 with `resumed` when this `client_ref` has one."""
    opened = intake.open_run(request.auth, run, request_id=request.request_id)
    return answer(opened, 200 if opened.resumed else 201)


@router.get("/runs/{run_id}", response=OutcomeDocument, summary="Read a run")
def read(request: AgentRequest, run_id: UUID) -> HttpResponse:
    """Where the run stands, or how it ended."""
    return answer(intake.read(request.auth, run_id, request_id=request.request_id))


@router.post("/runs/{run_id}/proposals", response=Permit, summary="Propose a tool call")
def propose(request: AgentRequest, run_id: UUID, proposal: Annotated[Proposal, Body]) -> HttpResponse:
    """Ask before every call. Only `execute` lets the call leave."""
    return answer(intake.propose(request.auth, run_id, proposal, request_id=request.request_id))


@router.post("/runs/{run_id}/reports", response=Reported, summary="Report what came back")
def report(request: AgentRequest, run_id: UUID, report: Annotated[Report, Body]) -> HttpResponse:
    """Tell what was seen after an `execute`, under its attempt and fence."""
    return answer(intake.report(request.auth, run_id, report, request_id=request.request_id))


@router.post("/runs/{run_id}/turns", response=TurnAnswer, summary="Count a model turn")
def turn(request: AgentRequest, run_id: UUID, turn: Annotated[Turn, Body]) -> HttpResponse:
    """Say what a turn used; `stop` means that a budget is spent."""
    return answer(intake.turn(request.auth, run_id, turn, request_id=request.request_id))


@router.post("/runs/{run_id}/heartbeats", response=Leased, summary="Keep an attempt")
def heartbeat(request: AgentRequest, run_id: UUID, beat: Annotated[Heartbeat, Body]) -> HttpResponse:
    """Prolong the lease of a call that is still going on."""
    return answer(intake.heartbeat(request.auth, run_id, beat, request_id=request.request_id))


@router.post("/runs/{run_id}/finish", response=OutcomeDocument, summary="Finish a run")
def finish(request: AgentRequest, run_id: UUID, finish: Annotated[Finish, Body]) -> HttpResponse:
    """Say that the work is done. The claim is kept; the outcome comes from what is proven."""
    return answer(intake.finish(request.auth, run_id, finish, request_id=request.request_id))


@router.post("/runs/{run_id}/cancel", response=OutcomeDocument, summary="Cancel a run")
def cancel(request: AgentRequest, run_id: UUID, cancel: Annotated[Cancel, Body]) -> HttpResponse:
    """Stop, and settle what may already have happened."""
    return answer(intake.cancel(request.auth, run_id, cancel, request_id=request.request_id))


@router.post("/runs/{run_id}/rollback", response=OutcomeDocument, summary="Roll a run back")
def rollback(request: AgentRequest, run_id: UUID, rollback: Annotated[Rollback, Body]) -> HttpResponse:
    """Take back what was done, the latest first, where it is proven and can be undone."""
    return answer(intake.rollback(request.auth, run_id, rollback, request_id=request.request_id))


@router.post("/runs/{run_id}/resume", response=ResumeAnswer, summary="Resume a run")
def resume(request: AgentRequest, run_id: UUID) -> HttpResponse:
    """What a runner needs to go on from the last proven state. May name the version that it was written for
    (`workflow_id`); another one than the run's waits for a person."""
    told = read_body(request, Resume) if has_body(request) else Resume()
    return answer(intake.resume(request.auth, run_id, told, request_id=request.request_id))


@router.get("/runs/{run_id}/memory", response=Memory, summary="Remember a run")
def memory(request: AgentRequest, run_id: UUID) -> HttpResponse:
    """What was tried, what came of it, what stands and what is left: as fields, and as text for a prompt."""
    return answer(intake.memory(request.auth, run_id))


@router.get("/events", response=EventPage, summary="Follow the events")
def events(request: AgentRequest, after: UUID | None = None, limit: Limit = 100) -> HttpResponse:
    """Oldest first. Ask again with `after=next`."""
    asked(request, "after", "limit")
    return answer(intake.events(request.auth, after=after, limit=limit))


@router.get("/actions", response=ActionPage, summary="List the writes")
def actions(request: AgentRequest, limit: Limit = 100) -> HttpResponse:
    """What Steadyhand believes about each write, newest first."""
    asked(request, "limit")
    return answer(intake.actions(request.auth, limit=limit))
