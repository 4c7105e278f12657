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
    told = [(event["at"], _line(event, start)) for event in found.events]
    told += [(fact["at"], _learned(fact, start)) for fact in found.facts]
    yield from (line for _, line in sorted(told, key=lambda one: one[0]))
    yield from _end(found)


def _learned(fact: dict[str, Any], start: datetime) -> str:
    """What was found out, in its own sentence: it says why a look failed."""
    seconds = (fact["at"] - start).total_seconds()
    return f"{seconds:10.1f} s  {fact['source']}  {fact['verdict']}  {fact['step']}  {fact['fact']}"[:400]


def _line(event: dict[str, Any], start: datetime) -> str:
    moved = f"{event['from']} → {event['to']}" if event["from"] or event["to"] else ""
    facts = {name: value for name, value in event["data"].items() if name not in ("step", "tool", "customer_message")}
    told = " ".join(f"{name}={value}" for name, value in facts.items() if not isinstance(value, (dict, list)))
    seconds = (event["at"] - start).total_seconds()
    parts = (f"{seconds:10.1f} s", event["actor_kind"], event["kind"], event["step"], moved, event["reason"], told)
    return "  ".join(part for part in parts if part)[:400]


def _end(found: Seen) -> Iterator[str]:
    at = f" at {found.failed_step}" if found.failed_step else ""
    yield f"ends {found.outcome}/{found.reason}{at}" if found.ended else f"goes on: {found.state}{at}"
    yield f"effects {found.effects}; states {found.states}"
    for task in found.tasks:
        word = "open" if task["open"] else "resolved"
        yield f"task {task['kind']} ({task['reason']}) {word}{', paged' if task['paged'] else ''}"
