"""Agents as the tests meet them: a client that speaks JSON with a token, and an intake that only takes notes."""

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from steadyhand.contract import (
    ActionPage,
    EventPage,
    Ingested,
    Leased,
    Memory,
    OutcomeDocument,
    Permit,
    Reported,
    ResumeAnswer,
    RunOpened,
    TurnAnswer,
)

from recovery import intake

TOKEN = f"sh_{uuid.uuid4().hex}_{uuid.uuid4().hex}_{'s' * 43}"
RUN = "0196f5b0-0000-7000-8000-000000000001"


@dataclass
class Agent:
    """Sends what it is given, byte for byte if it is bytes. Whatever fails below is an answer, never a raise."""

    token: str = TOKEN
    http: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    def send(self, path: str, body: Any = None, *, method: str = "POST", **extra: Any) -> HttpResponse:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self.token}", **extra.pop("headers", {})}
        # Django's client forgets the type of an empty body.
        kind = extra.setdefault("CONTENT_TYPE", extra.pop("content_type", "application/json"))
        return self.http.generic(method, f"/api/v1{path}", data, kind, headers=headers, **extra)

    def post(self, path: str, body: Any = None, **extra: Any) -> HttpResponse:
        return self.send(path, body, **extra)

    def put(self, path: str, body: Any = None, **extra: Any) -> HttpResponse:
        return self.send(path, body, method="PUT", **extra)

    def get(self, path: str, **extra: Any) -> HttpResponse:
        return self.send(path, b"", method="GET", **extra)


@dataclass
class Notes:
    """What reached intake: (function, positional arguments, keyword arguments)."""

    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    fails: Exception | None = None

    @property
    def last(self) -> Any:
        return self.calls[-1][1][-1]


@dataclass
class Version:
    id: uuid.UUID = field(default_factory=uuid.uuid4)
    name: str = "billing"
    version: int = 1


_OUTCOME = OutcomeDocument(run_id=RUN, workflow="billing", state="executing")
ANSWERS: dict[str, Any] = {
    "register_workflow": (Version(), True),
    "open_run": RunOpened(
        run_id=RUN, workflow="billing", workflow_id="w", workflow_version=1, state="planning", resumed=False
    ),
    "propose": Permit(answer="execute", run_id=RUN, step="credit", result={"nothing": None}),
    "report": Reported(answer="result", step="credit", outcome="ok", reason_code="completed"),
    "turn": TurnAnswer(answer="go", turn=1),
    "heartbeat": Leased(lease_until="2026-03-01T09:00:00Z"),
    "finish": _OUTCOME,
    "cancel": _OUTCOME,
    "rollback": _OUTCOME,
    "ingest": Ingested(accepted=0, duplicates=0, runs=[], errors=[]),
    "read": _OUTCOME,
    "memory": Memory(run_id=RUN, intent="credit", state="executing", steps=[], text="Nothing yet."),
    "resume": ResumeAnswer(
        run_id=RUN, workflow="billing", workflow_id="w", state="executing", ready=True, intent="credit"
    ),
    "events": EventPage(items=[]),
    "actions": ActionPage(items=[]),
}


@pytest.fixture
def agent() -> Agent:
    return Agent()


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    """Intake replaced by a notebook; no test that uses it may touch the database."""
    notes = Notes()

    def taking(name: str) -> Any:
        def take(*args: Any, **kwargs: Any) -> Any:
            notes.calls.append((name, args, kwargs))
            if notes.fails:
                raise notes.fails
            return ANSWERS[name]

        return take

    for name in ANSWERS:
        monkeypatch.setattr(intake, name, taking(name))
    return notes


def problem(response: HttpResponse, status: int) -> dict[str, str]:
    """The faults of a refusal, {field: remedy}, after checking that it is one."""
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == "application/problem+json"
    body = json.loads(response.content)
    assert set(body) - {"request_id"} == {"type", "title", "status", "detail", "errors"}
    assert body["status"] == status
    return {fault["field"]: fault["remedy"] for fault in body["errors"]}
