"""The connector under test, as the kit gets hold of it: an object of a module, or the declarations of a manifest."""

from __future__ import annotations

import importlib
import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from steadyhand import judging, templates
from steadyhand.connector import Answer, Ask
from steadyhand.manifest import Connector, Look, Manifest, Send, Tool
from steadyhand.paths import MISSING, dig


class Unfit(ValueError):
    """What was named cannot be tested; the message says why."""


@dataclass(frozen=True)
class Promises:
    """What a connector claims, as its manifest will: the kit holds it to that.

    arguments     one ordinary write, against a test account. `other` the same with another value in a field that
                  matters; made up from the first number where it is left out.
    undo          the undo's tool, and which of its arguments come from which path of the write's result.
    """

    tool: str
    arguments: dict[str, Any]
    other: dict[str, Any] | None = None
    counts: bool = True
    key: bool = False
    compares_arguments: bool = True
    retention_seconds: float | str | None = None
    max_in_flight_seconds: float | None = None
    max_visibility_lag_seconds: float | None = None
    timeout_seconds: float = 10
    undo: str = ""
    undo_arguments: dict[str, str] = field(default_factory=dict)
    lists: bool = False

    def has(self, what: str) -> bool:
        return bool({"key": self.key, "undo": self.undo, "lists": self.lists, "counts": self.counts}[what])

    def changed(self) -> dict[str, Any]:
        """Other arguments than `arguments`, in one field."""
        if self.other is not None:
            return self.other
        for name, value in self.arguments.items():
            if isinstance(value, int) and not isinstance(value, bool):
                return {**self.arguments, name: value + 1}
        raise Unfit("none of the arguments is a number: name `other` arguments yourself")


@dataclass(frozen=True)
class Subject:
    """`at(address)` makes the connector that asks there; `base_url` is the real one."""

    at: Callable[[str], Any]
    base_url: str
    promises: Promises

    def ask(self, **changes: Any) -> Ask:
        """A new call of the write, with an identity and a key that nobody used before."""
        one = uuid.uuid4().hex
        usual = Ask(self.promises.tool, f"act{one}", f"run{one[:8]}", f"key{one}", dict(self.promises.arguments))
        return replace(usual, **changes)

    def undo_of(self, result: Any) -> Ask:
        arguments = {name: dig(result, path) for name, path in self.promises.undo_arguments.items()}
        lacking = next((name for name, value in arguments.items() if value is MISSING), None)
        if lacking is not None:
            raise Unfit(f"the write's result does not hold what the undo's {lacking} is taken from")
        return self.ask(tool=self.promises.undo, arguments=arguments)


def load(what: str, base_url: str, *, tool: str | None, arguments: dict[str, Any] | None) -> Subject:
    """The subject behind `module:object` or the path of a manifest. Raises Unfit."""
    if Path(what).suffix in (".json", ".yaml", ".yml"):
        return _declared(Path(what), base_url, tool, arguments)
    module, _, name = what.partition(":")
    if not name:
        raise Unfit("write it as module:object, or name a manifest's file")
    made = getattr(importlib.import_module(module), name)
    promises = _promises(made(base_url) if callable(made) else made, made)
    return Subject(made if callable(made) else lambda _: made, base_url, _with(promises, arguments))


def _promises(connector: Any, made: Any) -> Promises:
    told = getattr(connector, "promises", None) or getattr(made, "promises", None)
    if isinstance(told, Mapping):
        told = Promises(**told)
    if not isinstance(told, Promises):
        raise Unfit("it has no `promises` (steadyhand.testing.subject.Promises)")
    lists = callable(getattr(connector, "list_effects", None))
    return replace(told, lists=lists)


def _with(promises: Promises, arguments: dict[str, Any] | None) -> Promises:
    return promises if arguments is None else replace(promises, arguments=arguments, other=None)


def _declared(path: Path, base_url: str, name: str | None, arguments: dict[str, Any] | None) -> Subject:
    manifest = Manifest.model_validate(_document(path))
    tool = manifest.tool(name or "")
    if tool is None or tool.send is None or tool.reconcile is None or tool.reconcile.look is None:
        raise Unfit("name a write with --connector-tool that has a `send` and a `reconcile.look`")
    if arguments is None:
        raise Unfit("give its --connector-arguments")
    undo = manifest.tool(tool.compensate.tool) if tool.compensate else None
    sendable = undo is not None and undo.send is not None
    rule, key = tool.reconcile, tool.idempotency
    return Subject(
        at=lambda url: Declared(manifest, url),
        base_url=base_url,
        promises=Promises(
            tool=tool.name,
            arguments=arguments,
            counts=rule.counts,
            key=key.kind == "key",
            compares_arguments=key.compares_arguments,
            retention_seconds=key.retention_seconds,
            max_in_flight_seconds=rule.max_in_flight_seconds,
            max_visibility_lag_seconds=rule.max_visibility_lag_seconds,
            timeout_seconds=manifest.connectors[rule.connector].timeout_seconds,
            undo=undo.name if undo is not None and sendable else "",
            undo_arguments=tool.compensate.arguments if tool.compensate and sendable else {},
        ),
    )


def _document(path: Path) -> Any:
    text = path.read_text()
    if path.suffix == ".json":
        return json.loads(text)
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise Unfit("a YAML file takes PyYAML; name a JSON file instead") from None
    return yaml.safe_load(text)


class RemoteRefusal(Exception):
    """The system refused a call."""


class Declared:
    """What a manifest declares, as a connector: the worker makes the same requests, through its own guards."""

    def __init__(self, manifest: Manifest, base_url: str) -> None:
        self._manifest, self._url = manifest, base_url.rstrip("/")

    def reconcile(self, ask: Ask) -> Answer:
        tool = self._tool(ask)
        if tool.reconcile is None or tool.reconcile.look is None:
            raise Unfit(f"{tool.name} has no look-up")
        look = tool.reconcile.look
        query = {name: str(templates.fill(value, ask)) for name, value in look.query.items()}
        reply = self._send("GET", self._connector(tool.reconcile.connector), look.path, ask, params=query)
        return _seen(reply, ask, look)

    def execute(self, ask: Ask) -> Any:
        tool = self._tool(ask)
        if tool.send is None:
            raise Unfit(f"{tool.name} has no send")
        reply = self._call(tool, tool.send, ask)
        if not 200 <= reply.status_code < 300:
            raise RemoteRefusal(f"{reply.status_code}")
        return reply.json()

    compensate = execute

    def _call(self, tool: Tool, how: Send, ask: Ask) -> httpx.Response:
        key = tool.idempotency
        header = {key.header: ask.key} if key.kind == "key" and key.header else {}
        body = ask.arguments if how.body is None else templates.filled(how.body, ask)
        if key.kind == "key" and key.field:
            body = {**body, key.field: ask.key}
        query = {name: str(templates.fill(value, ask)) for name, value in how.query.items()}
        more = {"params": query} if how.method == "GET" else {"params": query, "json": body}
        return self._send(how.method, self._connector(how.connector), how.path or "", ask, headers=header, **more)

    def _send(self, method: str, connector: Connector, path: str, ask: Ask, **request: Any) -> httpx.Response:
        url = self._url + templates.path_of(path, ask)
        with httpx.Client(follow_redirects=False, trust_env=False, timeout=connector.timeout_seconds) as client:
            return client.request(method, url, **request)

    def _tool(self, ask: Ask) -> Tool:
        found = self._manifest.tool(ask.tool)
        if found is None:
            raise Unfit(f"{ask.tool} is not in the manifest")
        return found

    def _connector(self, name: str) -> Connector:
        return self._manifest.connectors[name]


def _seen(reply: httpx.Response, ask: Ask, look: Look) -> Answer:
    if reply.status_code != 200:
        return judging.failed(f"The look-up answered {reply.status_code}.")
    try:
        document = reply.json()
    except ValueError:
        return judging.failed("The look-up's answer is not JSON.")
    more = any("next" in (rel or "").lower().split() for rel in reply.links)
    return judging.judge(document, ask, look, more=more)
