"""A Steadyhand that follows a script: it speaks the contract, records what arrives, and decides nothing."""

from __future__ import annotations

import itertools
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from steadyhand import AsyncBoundary, Boundary

URL, TOKEN = "http://console.test", "sh_a_b_c"
RUN = "0190a000-0000-7000-8000-000000000001"
Step = dict[str, Any] | httpx.Response | BaseException | Callable[[Any], dict[str, Any]]


@dataclass
class Arrival:
    method: str
    path: str
    verb: str
    body: Any


class Clock:
    """Monotonic time that moves only when told to; sleeping moves it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def nap(self, seconds: float) -> None:
        self.sleep(seconds)


@dataclass
class FakeServer:
    """`script[verb]` holds the next answers of an endpoint; without one it gives the ordinary answer."""

    script: dict[str, deque[Step]] = field(default_factory=dict)
    arrivals: list[Arrival] = field(default_factory=list)
    clock: Clock = field(default_factory=Clock)
    reads: list[str] = field(default_factory=list)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    def then(self, verb: str, *steps: Step) -> FakeServer:
        self.script.setdefault(verb, deque()).extend(steps)
        return self

    def boundary(self, **ways: Any) -> Boundary:
        return Boundary(URL, TOKEN, **{**self._ways(), "sleep": self.clock.sleep, **ways})

    def async_boundary(self, **ways: Any) -> AsyncBoundary:
        return AsyncBoundary(URL, TOKEN, **{**self._ways(), "sleep": self.clock.nap, **ways})

    def _ways(self) -> dict[str, Any]:
        return {"clock": self.clock, "transport": httpx.MockTransport(self.answer)}

    def came(self, verb: str) -> list[Any]:
        return [arrival.body for arrival in self.arrivals if arrival.verb == verb]

    def answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/api/v1")
        body = json.loads(request.content) if request.content else dict(request.url.params)
        verb = self._verb(request.method, path)
        self.arrivals.append(Arrival(request.method, path, verb, body))
        waiting = self.script.get(verb)
        step: Step = waiting.popleft() if waiting else self._ordinary(verb, body)
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, httpx.Response):
            return step
        return httpx.Response(200, json=step(body) if callable(step) else step)

    def _verb(self, method: str, path: str) -> str:
        parts = path.strip("/").split("/")
        if parts[0] != "runs":
            return parts[0]
        return {1: "open", 2: "read"}.get(len(parts)) or parts[2]

    def _ordinary(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        match verb:
            case "open":
                opened = {"run_id": RUN, "workflow_id": "w-1", "workflow_version": 1, "state": "planning"}
                return {**opened, "workflow": body["workflow"], "resumed": False, "reads": self.reads}
            case "proposals":
                return permit(f"a-{next(self._numbers)}", step=body["step"] or body["tool"])
            case "reports":
                return reported(body["observation"])
            case "turns":
                return {"answer": "go", "turn": len(self.came("turns"))}
            case "resume":
                return resumed()
            case "heartbeats":
                return {"lease_until": "2026-11-30T12:00:00Z"}
            case "memory":
                return {"run_id": RUN, "intent": "Credit.", "state": "executing", "steps": [], "text": "Nothing yet."}
            case "ingest":
                return {"accepted": len(body), "duplicates": 0}
            case "workflows":
                return {"workflow_id": "w-1", "name": "billing", "version": 1}
            case "events" | "actions":
                return {"items": []}
            case _:
                return document()


def permit(attempt_id: str = "a-1", *, step: str = "apply_credit", **more: Any) -> dict[str, Any]:
    ids = {"action_id": "act-1", "attempt_id": attempt_id, "attempt": 1, "fence": 7, "idempotency_key": "sh-key-1"}
    times = {"timeout_seconds": 20.0, "dispatch_within_seconds": 5.0}
    return {"answer": "execute", "run_id": RUN, "step": step, **ids, **times, **more}


def answered(answer: str, **more: Any) -> dict[str, Any]:
    """A permit that permits nothing: wait, deny, stop or replay."""
    return {"answer": answer, "run_id": RUN, "step": "apply_credit", **more}


def reported(observation: dict[str, Any]) -> dict[str, Any]:
    result = json.loads(observation["body"]) if observation.get("body") else None
    return {"answer": "result", "step": "s", "outcome": "ok", "reason_code": "completed", "result": result}


def verdict(answer: str, outcome: str, reason: str, **more: Any) -> dict[str, Any]:
    return {"answer": answer, "step": "apply_credit", "outcome": outcome, "reason_code": reason, **more}


def error(code: str, message: str = "No.", **more: Any) -> dict[str, Any]:
    return {"code": code, "message": message, **more}


def document(
    state: str = "completed", outcome: str | None = "ok", reason: str | None = "completed"
) -> dict[str, Any]:
    return {"run_id": RUN, "workflow": "billing", "state": state, "outcome": outcome, "reason_code": reason}


def resumed(**more: Any) -> dict[str, Any]:
    ordinary = {"run_id": RUN, "workflow": "billing", "workflow_id": "w-1", "state": "executing", "ready": True}
    return {**ordinary, "intent": "Refund the double charge.", **more}


def problem(status: int, title: str = "Refused", **more: Any) -> httpx.Response:
    document = {"type": "about:blank", "title": title, "status": status, **more}
    return httpx.Response(status, json=document, headers={"content-type": "application/problem+json"})
