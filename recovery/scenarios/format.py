"""A scenario file: what agents, tools and people did, in order of time, and what has to come of it.

Pure. Reading is strict about what the player cannot do without and lenient about the rest: hints that are not known
are kept in `unread`, so that a result can say what it did not take into account.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

ANSWERS = ("response", "exception", "timeout")
AGENTS = (
    "model_turn", "tool_call", "tokens", "question", "run_finished", "compensation_started", "subagent_started",
    "batch",
)  # fmt: skip
WORLDS = ("dispatch", *ANSWERS, "reconcile", "credential_refresh")
OTHERS = (
    "crash", "lease", "heartbeat", "redelivery", "recovery", "resume", "cancel", "callback", "approval", "deadline",
    "operator_action", "run_context", "foreign_attempt",
)  # fmt: skip
KNOWN = (*AGENTS, *WORLDS, *OTHERS)


class BadScenario(Exception):
    """A file that cannot be played; the message names the place and what would be accepted."""


@dataclass(frozen=True)
class Event:
    """One line of a script: `t` seconds after the start, `index` its place in the file."""

    index: int
    t: float
    type: str
    data: dict[str, Any]

    @property
    def step(self) -> str:
        return str(self.data.get("step") or "")

    def get(self, name: str, default: Any = None) -> Any:
        return self.data.get(name, default)


@dataclass(frozen=True)
class Scenario:
    """One file."""

    id: str
    title: str
    mode: str
    workflow: str
    tenant: str
    intent: str
    started_at: datetime
    budget: dict[str, Any]
    tools: list[dict[str, Any]]
    events: list[Event]
    expect: dict[str, Any]
    policy: dict[str, Any] = field(default_factory=dict)
    scope: dict[str, Any] = field(default_factory=dict)
    required_effects: list[str] = field(default_factory=list)
    tenants: list[str] = field(default_factory=list)

    def of_type(self, *types: str) -> list[Event]:
        return [event for event in self.events if event.type in types]

    def tool(self, name: str) -> dict[str, Any]:
        return next((tool for tool in self.tools if tool.get("name") == name), {})


def load(path: Path) -> Scenario:
    """Read one file. Raises BadScenario."""
    try:
        plain = json.loads(path.read_text("utf-8", "surrogatepass"))
    except (OSError, ValueError) as wrong:
        raise BadScenario(f"{path.name} is no JSON file: {wrong}") from wrong
    if not isinstance(plain, dict):
        raise BadScenario(f"{path.name} holds no object")
    try:
        _check(plain)
        return _scenario(plain)
    except BadScenario as wrong:
        raise BadScenario(f"{path.name}: {wrong}") from wrong
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as wrong:
        raise BadScenario(f"{path.name} has a field of another form than docs/scenarios.md says") from wrong


def _check(plain: dict[str, Any]) -> None:
    """Raises BadScenario for the first part that is missing, or of a kind that nobody can play."""
    for name, kind, words in _NEEDED:
        if name not in plain:
            raise BadScenario(f"{name} is missing: add {words}")
        if not isinstance(plain[name], kind):
            raise BadScenario(f"{name} has to be {words}")
    if not (plain.get("tenant") or plain.get("tenants")):
        raise BadScenario("tenant is missing: add a name")
    for index, line in enumerate(plain["events"]):
        _check_event(f"events.{index}", line)


def _check_event(place: str, line: Any) -> None:
    if not isinstance(line, dict):
        raise BadScenario(f"{place} has to be an object")
    if not isinstance(line.get("t"), (int, float)):
        raise BadScenario(f"{place}.t has to be a number of seconds after the start")
    if line.get("type") not in KNOWN:
        raise BadScenario(f"{place}.type {line.get('type')} is not known: use one of {', '.join(KNOWN)}")


_NEEDED: tuple[tuple[str, type, str], ...] = (
    ("id", str, "a text"),
    ("workflow", str, "a text"),
    ("intent", str, "a text"),
    ("started_at", str, "a time with its offset from UTC"),
    ("tools", list, "a list of tools"),
    ("events", list, "a list of events"),
    ("expect", dict, "an object that says what is right"),
)


def folder(path: Path) -> list[Path]:
    """The scenario files of a folder, by name."""
    found = sorted(path.glob("*.json"))
    if not found:
        raise BadScenario(f"{path} holds no scenario files (*.json)")
    return found


def _scenario(plain: dict[str, Any]) -> Scenario:
    tenants = [str(name) for name in plain.get("tenants") or []]
    lines = [line for event in plain["events"] for line in expanded(event)]
    return Scenario(
        id=str(plain["id"]),
        title=str(plain.get("title", "")),
        mode=str(plain.get("mode", "boundary")),
        workflow=str(plain["workflow"]),
        tenant=str(plain.get("tenant") or tenants[0]),
        intent=str(plain["intent"]),
        started_at=moment(plain["started_at"]),
        budget=dict(plain.get("budget") or {}),
        tools=list(plain["tools"]),
        events=[_event(index, line) for index, line in enumerate(lines)],
        expect=dict(plain["expect"]),
        policy=_object(plain.get("policy")),
        scope=_object(plain.get("scope")),
        required_effects=[_name(one) for one in plain.get("required_effects") or []],
        tenants=tenants,
    )


def _event(index: int, line: dict[str, Any]) -> Event:
    _check_event(f"events.{index}", line)
    return Event(index, float(line["t"]), line["type"], line)


def expanded(line: dict[str, Any]) -> list[dict[str, Any]]:
    """A batch written out: its items each as a call of their own, or its template once for every number."""
    if line.get("type") != "batch":
        return [line]
    items, step = line.get("items"), line.get("step", "batch")
    if isinstance(items, list) and line.get("tool"):
        call = {"t": line["t"], "type": "tool_call", "tool": line["tool"]}
        return [
            {**call, "step": f"{step}:{_item(one, n)}", "arguments": _arguments(one)} for n, one in enumerate(items)
        ]
    templates = line.get("events") or [line.get("template") or line.get("event")]
    count = next((line[name] for name in ("count", "n", "size", "repeat") if isinstance(line.get(name), int)), 0)
    return [_filled(one, number, line["t"]) for number in range(count) for one in templates if isinstance(one, dict)]


def _item(item: Any, number: int) -> str:
    names = [item.get(name) for name in ("id", "key", "ref", "step")] if isinstance(item, dict) else [item]
    return next((str(name) for name in names if isinstance(name, (str, int))), str(number))


def _arguments(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        return {"item": item}
    inner = item.get("arguments")
    return inner if isinstance(inner, dict) else item


def _filled(template: dict[str, Any], number: int, t: float) -> dict[str, Any]:
    text = json.dumps(template)
    for mark in ("{i}", "{n}", "{index}"):
        text = text.replace(mark, str(number))
    filled: dict[str, Any] = json.loads(text)
    return {"t": t, **filled}


def _name(said: Any) -> str:
    """A required effect by its step or its tool."""
    return str(said.get("step") or said.get("tool") or said.get("effect")) if isinstance(said, dict) else str(said)


def moment(text: str) -> datetime:
    """A time with its zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as wrong:
        raise BadScenario(f"{text} is no time: write it like 2026-05-04T08:00:00Z") from wrong
    if found.tzinfo is None:
        raise BadScenario(f"{text} names no time zone: write it like 2026-05-04T08:00:00Z")
    return found


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else ({"rules": value} if value else {})
