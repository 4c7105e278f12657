"""A scenario that happened elsewhere, told as records: as they stand, doubled and out of order."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from pydantic import TypeAdapter
from steadyhand.contract import Record

from recovery import intake
from recovery.clients import Credentials
from recovery.scenarios import answers, usages
from recovery.scenarios.format import ANSWERS, Event, Scenario

NOT_TOLD = ("callback", "approval", "operator_action", "deadline")
"""What still happens here, after the records came."""
_RECORD: TypeAdapter[Any] = TypeAdapter(Record)


def tell(scenario: Scenario, who: Credentials, scope: dict[str, Any]) -> uuid.UUID:
    """Send the records in the file's order; returns the run that they made."""
    plain = [_opening(scenario, scope), *_records(scenario)]
    records = [(number, _RECORD.validate_python(one)) for number, one in enumerate(plain)]
    told = intake.ingest(who, records, request_id="scenario")
    return uuid.UUID(told.runs[0])


def _opening(scenario: Scenario, scope: dict[str, Any]) -> dict[str, Any]:
    return {
        **_common(scenario, "run", 0.0, "run"),
        "workflow": scenario.workflow,
        "intent": scenario.intent[:2000],
        "scope": scope,
    }


def _records(scenario: Scenario) -> Iterator[dict[str, Any]]:
    ids: dict[str, str] = {}
    for event in scenario.events:
        record = _record(scenario, event)
        if record is not None:
            same = json.dumps({k: v for k, v in event.data.items() if k != "duplicate_record"}, sort_keys=True)
            yield record | {"id": ids.setdefault(same, str(record["id"]))}


def _record(scenario: Scenario, event: Event) -> dict[str, Any] | None:
    kind = _KINDS.get(event.type)
    if kind is None:
        return None
    common = _common(scenario, str(event.index), event.t, kind)
    if kind == "turn":
        used = usages.of(event)
        return {**common, **({"usage": used.model_dump()} if used else {})}
    if kind == "call":
        key = {"key": event.get("action_key")} if event.get("action_key") else {}
        return {
            **common,
            "step": event.step,
            "tool": event.get("tool"),
            "arguments": event.get("arguments") or {},
            **key,
        }
    if kind == "dispatch":
        return {**common, "step": event.step, "attempt": int(event.get("attempt", 1))}
    if kind == "observation":
        return {**common, **_observed(scenario, event)}
    return {**common, **({"claim": event.get("text")} if kind == "finish" and event.get("text") else {})}


def _observed(scenario: Scenario, event: Event) -> dict[str, Any]:
    sent = [one for one in scenario.of_type("dispatch") if one.step == event.step and one.t <= event.t]
    number = event.get("attempt") or (sent[-1].get("attempt", len(sent)) if sent else 1)
    took = max(0.0, event.t - sent[-1].t) if sent else 0.0
    return {
        "step": event.step,
        "attempt": int(number),
        "observation": answers.observation(event, latency_ms=int(took * 1000)).model_dump(),
        "synthetic": bool(event.get("synthetic")),
    }


def _common(scenario: Scenario, name: str, t: float, kind: str) -> dict[str, Any]:
    at = scenario.started_at + timedelta(seconds=t)
    return {"id": f"{scenario.id}:{name}", "run": f"{scenario.id}-told", "at": at, "kind": kind}


_KINDS = {
    "model_turn": "turn",
    "tool_call": "call",
    "dispatch": "dispatch",
    **dict.fromkeys(ANSWERS, "observation"),
    "cancel": "cancel",
    "run_finished": "finish",
}
