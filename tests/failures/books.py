"""One outside system behind every kind of connector: it keeps what it did, and counts what arrived."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from steadyhand.connector import Answer, Ask

from recovery import callback_secrets
from recovery.rules import signatures
from recovery.rules.signatures import Signed
from runs import wall
from runs.models import Tenant
from tests.factories import billing_manifest
from tests.recovery.installed import installed
from tests.sdk.counting_server import Counted, counting, drop, plainly

KINDS = ("http", "webhook", "python")
NAME = "payments"
FIELDS = ("account", "amount_minor", "currency")


class Lost(ConnectionError):
    """It was done, and nobody heard so."""


@dataclass
class Books:
    """Credits as the outside system holds them. `loses`: how many of the next sends get no answer."""

    secret: bytes = b""
    credits: list[dict[str, Any]] = field(default_factory=list)
    arrived: list[tuple[str, str]] = field(default_factory=list)
    loses: int = 0

    def sends(self) -> list[str]:
        return [what for what, _ in self.arrived if what != "reconcile"]

    def looks(self) -> int:
        return len(self.arrived) - len(self.sends())

    def do(self, what: str, ref: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.arrived.append((what, ref))
        if what == "compensate":
            self.credits = [one for one in self.credits if one["credit_id"] != arguments["credit"]]
            made = {"void_id": f"v_{len(self.arrived)}"}
        else:
            made = {"credit_id": f"cr_{len(self.arrived)}", "action_id": ref, **arguments}
            self.credits.append(made)
        if self.loses:
            self.loses -= 1
            raise Lost
        return made

    def ours(self, ref: str) -> list[dict[str, Any]]:
        self.arrived.append(("reconcile", ref))
        return [one for one in self.credits if one["action_id"] == ref]


def answer_of(found: list[dict[str, Any]]) -> Answer:
    if not found:
        return Answer("absent", 0)
    return Answer("present", len(found), found[0]["credit_id"], found[0])


class InPython:
    def __init__(self, books: Books) -> None:
        self._books = books

    def reconcile(self, ask: Ask) -> Answer:
        return answer_of(self._books.ours(ask.action_id))

    def execute(self, ask: Ask) -> Any:
        return self._books.do("execute", ask.action_id, ask.arguments)

    def compensate(self, ask: Ask) -> Any:
        return self._books.do("compensate", ask.action_id, ask.arguments)


def _serve(books: Books) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        try:
            said: Any = _read(books, handler)
        except Lost:
            return drop(handler)
        return plainly(200, body=json.dumps(said).encode())(handler)

    return answer


def _read(books: Books, handler: BaseHTTPRequestHandler) -> Any:
    parts, body = urlsplit(handler.path), handler.body  # type: ignore[attr-defined]
    if parts.path == "/steadyhand":
        return _asked(books, handler, json.loads(body), body)
    if handler.command == "GET":
        return {"items": books.ours(parse_qs(parts.query)["action_id"][0])}
    what = "compensate" if parts.path.endswith("voids") else "execute"
    sent = json.loads(body)
    return books.do(what, sent.pop("action_id"), sent)


def _asked(books: Books, handler: BaseHTTPRequestHandler, asked: dict[str, Any], body: bytes) -> Any:
    told = {name.lower(): value for name, value in handler.headers.items()}
    signed = Signed(told["webhook-id"], told["webhook-timestamp"], told["webhook-signature"])
    assert signatures.holds(signed, body, [books.secret]), "the endpoint asks who is there"
    if asked["ask"] == "reconcile":
        found = answer_of(books.ours(asked["action_id"]))
        return {name: getattr(found, name) for name in ("verdict", "count", "external_id", "record")}
    return books.do(asked["ask"], asked["action_id"], asked["arguments"])


@contextmanager
def opened(kind: str, tenant: Tenant, folder: Path, settings: Any) -> Iterator[tuple[Books, dict[str, Any]]]:
    """The books, and the connector of a manifest through which they are reached."""
    books = Books()
    with counting(answer=_serve(books)) as served, installed(folder, NAME, InPython(books)):
        settings.TRUSTED_ENDPOINTS = (served.url.removeprefix("http://"),)
        with wall.within(tenant.pk):
            shown = callback_secrets.create(tenant, f"{callback_secrets.OF_CONNECTOR}{NAME}")
        books.secret = signatures.read(shown)
        yield books, _connector(kind, served)


def _connector(kind: str, served: Counted) -> dict[str, Any]:
    if kind == "python":
        return {"kind": "python"}
    return {"kind": kind, "base_url": served.url if kind == "http" else f"{served.url}/steadyhand"}


def manifest(connector: dict[str, Any], *, host: bool = False, **changes: Any) -> dict[str, Any]:
    """The billing manifest with its credits behind this connector; with `host`, the worker makes the call."""
    made = billing_manifest(in_flight_seconds=20, lag_seconds=5, **changes)
    tools = {tool["name"]: tool for tool in made["tools"]}
    credit, void = tools["apply_credit"], tools["void_credit"]
    over_http = connector["kind"] == "http"
    if not over_http:
        del credit["reconcile"]["look"]
        credit["reconcile"]["match"] = {name: f"{{arguments.{name}}}" for name in FIELDS}
    if host:
        credit |= {"dispatch": "host", "send": _send(over_http, "/credits", FIELDS)}
    void |= {
        "send": _send(over_http, "/voids", ("credit",)),
        "output_schema": {"type": "object", "required": ["void_id"]},
        "identity_fields": ["void_id"],
    }
    made["connectors"][NAME] = connector
    return made


def _send(over_http: bool, path: str, fields: tuple[str, ...]) -> dict[str, Any]:
    if not over_http:
        return {"connector": NAME}
    body = {"action_id": "{action_id}", **{name: f"{{arguments.{name}}}" for name in fields}}
    return {"connector": NAME, "path": path, "body": body}
