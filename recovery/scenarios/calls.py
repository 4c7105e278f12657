"""A call that a scenario's agent wants, from its first proposal to its end. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from steadyhand.contract import Permit, Proposal

from recovery.scenarios.format import Event


@dataclass
class Call:
    """One call that the agent wants: `stage` is waiting, in_flight or done."""

    event: Event
    step: str
    tool: str
    arguments: dict[str, Any]
    stage: str = "waiting"
    retry_at: datetime | None = None
    seen: int | None = None
    permit: Permit | None = None
    awaits: Event | None = None
    unreadable: Any = None

    def proposal(self, workflow_id: str, layer: str) -> Proposal:
        """An empty name is what some models send; the contract wants a word, so the boundary says what it was."""
        return Proposal(
            workflow_id=workflow_id,
            tool=self.tool[:120] or "(no name)",
            arguments=self.arguments,
            step=self.step[:120],
            layer=layer,
            unreadable=self.unreadable,
        )


def was_cut(broken: ValueError, raw: str) -> bool:
    """Whether the text simply ends too early."""
    if not isinstance(broken, json.JSONDecodeError):
        return False
    return broken.pos >= len(raw.rstrip()) - 1 or broken.msg.startswith("Unterminated string")
