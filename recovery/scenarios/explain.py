"""The decision path of a run: each event with its time, who brought it, the rule and what it rested on."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from recovery.scenarios import seen
from recovery.scenarios.seen import Seen


def lines(run_id: uuid.UUID, tenant_id: uuid.UUID) -> Iterator[str]:
    """One line an event, seconds after the first; then how it ended."""
    found = seen.read(run_id, tenant_id, [])
    start = found.events[0]["at"]
    yield from (_line(event, start) for event in found.events)
    yield from _end(found)


def _line(event: dict[str, Any], start: datetime) -> str:
    moved = f"{event['from']} → {event['to']}" if event["from"] or event["to"] else ""
    facts = {name: value for name, value in event["data"].items() if name not in ("step", "tool", "customer_message")}
    told = " ".join(f"{name}={value}" for name, value in facts.items() if not isinstance(value, (dict, list)))
    seconds = (event["at"] - start).total_seconds()
    parts = (f"{seconds:10.1f} s", event["actor_kind"], event["kind"], event["step"], moved, event["reason"], told)
    return "  ".join(part for part in parts if part)[:400]


def _end(found: Seen) -> Iterator[str]:
    yield f"ends {found.outcome}/{found.reason} at {found.failed_step}"
    yield f"effects {found.effects}; states {found.states}"
    for task in found.tasks:
        word = "open" if task["open"] else "resolved"
        yield f"task {task['kind']} ({task['reason']}) {word}{', paged' if task['paged'] else ''}"
