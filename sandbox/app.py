"""From a request to how it ends: recorded as an arrival, checked, then played by the script."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.parse import parse_qsl

from sandbox import control, page
from sandbox.beliefs import Beliefs
from sandbox.calls import Answer, Call, Cut, Ending, Forgotten, Refused, json_answer, parse_json_object
from sandbox.faults import next_fault
from sandbox.ledger import Ledger
from sandbox.plays import Stage, play
from sandbox.services import SERVICES, Route, check_write, find_route

LIMITS = {"reference": 200, "action_id": 200, "key": 255}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What came over the wire; ``whole`` is false when the body ended before its announced length."""

    method: str
    path: str
    query: str
    headers: Message
    raw: bytes
    whole: bool = True


class App:
    """The sandbox without its sockets."""

    def __init__(self, ledger: Ledger, *, stopping: threading.Event, beliefs: Beliefs) -> None:
        self.ledger = ledger
        self.stopping = stopping
        self.beliefs = beliefs

    def answer(self, request: Request) -> Ending:
        """How this request ends; for a service, with its arrival recorded and marked."""
        first = request.path.strip("/").split("/")[0]
        try:
            if first in SERVICES:
                return self._serve(first, request)
            if first == "_control":
                query, body = _query(request), _body(request)
                return control.answer(self.ledger, request.method, request.path, query, body)
            return self._page(request)
        except Refused as refused:
            return json_answer(refused.status, refused.body)

    def _page(self, request: Request) -> Answer:
        if request.method != "GET" or request.path not in page.FILES:
            raise Refused(404, "not_found", "Nothing lives at this path.")
        return page.FILES[request.path](self.ledger, self.beliefs)

    def _serve(self, service: str, request: Request) -> Ending:
        reading = _Reading(service, request)
        call = self.ledger.arrive(reading.call())
        if not request.whole:
            return self._end(call, Cut(how="rst", outcome="truncated"))
        if reading.refused is not None or reading.route is None:
            refused = reading.refused or Refused(404, "not_found", "Nothing lives at this path.")
            return self._end(call, json_answer(refused.status, refused.body))
        fault = next_fault(self.ledger, call)
        self.ledger.mark(call.arrival_id, "received", fault=fault.do)
        try:
            return self._end(call, play(Stage(self.ledger, reading.route, self.stopping), call, fault))
        except Forgotten:
            return Cut(how="rst")

    def _end(self, call: Call, ending: Ending) -> Ending:
        """Mark before the first byte leaves, so that who has the reply also finds it in the ledger."""
        if isinstance(ending, Cut):
            self.ledger.mark(call.arrival_id, ending.outcome)
        else:
            outcome = "sent" if ending.sent_bytes is None else "cut"
            self.ledger.mark(call.arrival_id, outcome, status=ending.status)
        return ending


class _Reading:
    """A request taken apart; what is wrong with it is kept, because the arrival is recorded all the same."""

    def __init__(self, service: str, request: Request) -> None:
        self.service = service
        self.request = request
        self.route: Route | None = None
        self.refused: Refused | None = None
        self.fields: dict[str, Any] = {}
        self.marks = {
            "reference": request.headers.get("X-Action-Id", ""),
            "action_id": request.headers.get("X-Action-Id", ""),
            "key": request.headers.get("Idempotency-Key", ""),
        }
        try:
            self._read()
        except Refused as refused:
            self.refused = refused

    def _read(self) -> None:
        self.route, params = find_route(self.request.method, self.request.path)
        if self.route.kind == "read":
            self.fields = {**_query(self.request), **params}
            self._mark("reference", self.fields.get("reference"))
            self._check_marks()
            return
        body = _body(self.request)
        self._mark("reference", body.pop("reference", None))
        self._mark("key", body.pop("idempotency_key", None))
        self._check_marks()
        self.fields = {**params, **body}
        if self.route.write is not None:
            self.fields = check_write(self.route.write, params, body)

    def _mark(self, name: str, value: Any) -> None:
        if value is None:
            return
        if not isinstance(value, str):
            raise Refused(422, "invalid_request", f"The field {name} must be text.", field=name)
        self.marks[name] = value

    def _check_marks(self) -> None:
        for name, most in LIMITS.items():
            if len(self.marks[name]) > most:
                message = f"The {name} may have at most {most} characters."
                raise Refused(422, "invalid_request", message, field=name)

    def call(self) -> Call:
        """What is recorded; an unknown path is a call of the operation ``unknown``."""
        request = self.request
        return Call(
            service=self.service,
            operation=self.route.operation if self.route else "unknown",
            kind=self.route.kind if self.route else ("read" if request.method == "GET" else "write"),
            method=request.method,
            path=request.path + (f"?{request.query}" if request.query else ""),
            fields=self.fields,
            body_sha256=hashlib.sha256(request.raw).hexdigest(),
            reference=self._recorded("reference"),
            action_id=self._recorded("action_id"),
            key=self._recorded("key"),
        )

    def _recorded(self, name: str) -> str:
        return self.marks[name][: LIMITS[name]]


def _query(request: Request) -> dict[str, str]:
    pairs = parse_qsl(request.query, keep_blank_values=True)
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Refused(400, "invalid_filter", "A filter is given twice.")
    return made


def _body(request: Request) -> dict[str, Any]:
    if request.method == "GET":
        return {}
    kind = request.headers.get("Content-Type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, "unsupported_media_type", "Send the body as application/json.")
    return parse_json_object(request.raw)
