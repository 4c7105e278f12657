"""What the worker sends, and what comes back: answers that are written down in place of the network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from steadyhand.contract import Observation

from recovery.connectors.base import Outgoing
from recovery.work import sending
from tests.factories import reply, timed_out

LOST = timed_out()
DOWN = reply({"error": "down"}, status=503)
REFUSED = reply({"error": {"code": "too_late"}}, status=422)


@dataclass
class Sends:
    """Answers in order, the last one for ever; what was sent, and what happens on our side meanwhile."""

    answers: list[Observation] = field(default_factory=lambda: [LOST])
    sent: list[Outgoing] = field(default_factory=list)
    meanwhile: Callable[[], object] = lambda: None

    def say(self, *answers: Observation) -> None:
        self.answers = list(answers)

    @property
    def tools(self) -> list[str]:
        return [one.tool for one in self.sent]

    def __call__(self, outgoing: Outgoing) -> Observation:
        self.sent.append(outgoing)
        self.meanwhile()
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def script_sends(monkeypatch: pytest.MonkeyPatch) -> Sends:
    """Replace the door through which the worker sends, and nothing else."""
    sends = Sends()
    monkeypatch.setattr(sending, "transmit", sends)
    return sends


def stand_manifest(
    *, refund: dict[str, Any] | None = None, pay: dict[str, Any] | None = None, **whole: Any
) -> dict[str, Any]:
    """Reserve a stand, pay for it, order its furniture; the first two can be taken back by the worker."""
    return {
        "tools": [
            _write("reserve", "reservation", undo="release"),
            _write("pay", "payment", undo="refund", value_field="amount_minor", currency="EUR", **(pay or {})),
            _write("furnish", "furniture"),
            _undo("release", "reservation"),
            {**_undo("refund", "payment"), **(refund or {})},
        ],
        "connectors": {"fair": {"kind": "http", "base_url": "http://127.0.0.1:9"}},
        **whole,
    }


def _write(name: str, result: str, *, undo: str = "", **more: Any) -> dict[str, Any]:
    taken_back = {"compensate": {"tool": undo, "arguments": {result: f"{result}_id"}}} if undo else {}
    return {
        "name": name,
        "effect": "write",
        "output_schema": {"type": "object", "required": [f"{result}_id"]},
        "identity_fields": [f"{result}_id"],
        **taken_back,
        **more,
    }


def _undo(name: str, takes: str) -> dict[str, Any]:
    return {
        "name": name,
        "effect": "write",
        "input_schema": {"type": "object", "required": [takes], "properties": {takes: {"type": "string"}}},
        "output_schema": {"type": "object", "required": ["undo_id"]},
        "identity_fields": ["undo_id"],
        "idempotency": {"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"},
        "send": {"connector": "fair", "path": f"/{name}"},
    }
