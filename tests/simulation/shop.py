"""The workflows that the simulator plays: what each tool promises, and what its requests and records look like."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from steadyhand.contract import Observation
from steadyhand.manifest import Compensate, Manifest

from tests.simulation.remote import Effect, Exchange, Job, Reply

TENANT = uuid.UUID(int=(7 << 76) | (2 << 62) | 0xA11CE)
OWNER_TEAM = "billing-support"
IN_FLIGHT, LAG, TIMEOUT, LEASE = 60.0, 10.0, 10.0, 25.0
AMOUNT, THRESHOLD = 12_000, 50_000
WRITES = ("credit", "ship", "void", "recall", "export", "notify", "pay")
UNDO_ATTEMPTS = int(Compensate.model_fields["max_attempts"].default)
"""What the manifest allows an undo, which is not what it allows its run."""
_BASE = "http://127.0.0.1:9"


@dataclass(frozen=True)
class Flavour:
    """What the provider promises, and the record therefore may rest on.

    keyed      a repeat under our key is one effect, for `retention` seconds or for ever
    bounded    no request lands later than IN_FLIGHT, nothing stays unseen for longer than LAG
    looks      effects can be looked up at all
    fee        what the provider keeps of an effect that is taken back; `batch` whether it takes many items at once
    """

    keyed: bool = False
    retention: float | None = None
    bounded: bool = True
    looks: bool = True
    proof: Literal["reply", "look", "look_final"] = "reply"
    threshold: bool = False
    max_attempts: int = 3
    max_looks: int = 6
    max_calls: int = 20
    max_turns: int = 12
    deadline: float | None = None
    approval: int | None = None
    requires: tuple[str, ...] = ()
    tokens: int | None = None
    fee: int = 0
    batch: bool = False


@lru_cache(maxsize=256)
def manifest_of(flavour: Flavour) -> tuple[uuid.UUID, dict[str, Any]]:
    """The workflow's id and its manifest as it is stored; a flavour is one version of one workflow."""
    tools = [_find(), _status(), *(_write(name, flavour) for name in ("credit", "ship", "void", "recall")),
             _export(flavour), _notify(flavour), *([_pay()] if flavour.batch else [])]  # fmt: skip
    plain: dict[str, Any] = {
        "title": "Billing case",
        "tools": tools,
        "connectors": {"shop": {"kind": "http", "base_url": _BASE}},
        "owner_team": OWNER_TEAM,
        "budgets": {
            "max_turns": flavour.max_turns,
            "max_tool_calls": flavour.max_calls,
            "max_attempts_per_step": flavour.max_attempts,
            "max_elapsed_seconds": 3 * 3600,
        },
    }
    optional = {
        "value_threshold_minor": THRESHOLD if flavour.threshold else None,
        "deadline_seconds": flavour.deadline,
        "approval_seconds": flavour.approval,
    }
    if flavour.tokens is not None:
        plain["budgets"] |= {"max_input_tokens": flavour.tokens, "turn_input_tokens": flavour.tokens // 2}
    if flavour.requires:
        plain["required_effects"] = list(flavour.requires)
    plain |= {name: value for name, value in optional.items() if value is not None}
    stored = Manifest.model_validate(plain).model_dump(mode="json", exclude_defaults=True)
    return uuid.uuid5(TENANT, json.dumps(stored, sort_keys=True)), stored


def _find() -> dict[str, Any]:
    return {
        "name": "find", "effect": "read", "timeout_seconds": TIMEOUT,
        "output_schema": {"type": "object", "required": ["found"]}, "identity_fields": ["found"],
    }  # fmt: skip


def _status() -> dict[str, Any]:
    return {
        "name": "export_status", "effect": "read", "timeout_seconds": TIMEOUT,
        "send": {"connector": "shop", "method": "GET", "path": "/jobs/{arguments.job}"},
    }  # fmt: skip


def _write(name: str, flavour: Flavour) -> dict[str, Any]:
    tool: dict[str, Any] = {
        "name": name, "effect": "write", "timeout_seconds": TIMEOUT,
        "output_schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
        "identity_fields": ["id"], **_promises(flavour),
    }  # fmt: skip
    if name in ("credit", "ship"):
        tool |= {"proof": flavour.proof if flavour.looks else "reply", "value_field": "amount", "currency": "EUR"}
        tool["input_schema"] = {"type": "object", "properties": {"amount": {"type": "integer", "minimum": 0}}}
        undo = {"credit": "void", "ship": "recall"}[name]
        tool["compensate"] = {"tool": undo, "arguments": {"effect": "id"}}
        if flavour.fee:
            tool["compensate"]["cost_minor"] = flavour.fee
    if name != "credit":
        tool["send"] = {"connector": "shop", "path": f"/{name}"}
    if name == "ship":
        tool["dispatch"] = "host"
    return tool


def _promises(flavour: Flavour) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if flavour.looks:
        found["reconcile"] = {
            "connector": "shop", "max_looks": flavour.max_looks, "first_look_seconds": 5,
            "look": {"path": "/effects", "query": {"reference": "{action_id}"}, "items": "items",
                     "ours": {"reference": "{action_id}"}, "match": {"stamp": "whole"}, "external_id": "id"},
        }  # fmt: skip
        if flavour.bounded:
            found["reconcile"] |= {"max_in_flight_seconds": IN_FLIGHT, "max_visibility_lag_seconds": LAG}
    if flavour.keyed:
        kept = "unlimited" if flavour.retention is None else flavour.retention
        found["conflict_codes"] = {"idempotency_key_reused": "key_conflict", "exists": "already_done"}
        found["idempotency"] = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": kept}
    return found


def _export(flavour: Flavour) -> dict[str, Any]:
    poll = {
        "tool": "export_status", "arguments": {"job": "job"}, "state": "state", "succeeded": ["succeeded"],
        "failed": ["failed"], "external_id": "id", "every_seconds": 20,
    }  # fmt: skip
    return {
        "name": "export", "effect": "write", "timeout_seconds": TIMEOUT, "async_statuses": [202], "poll": poll,
        **_promises(flavour),
    }  # fmt: skip


def _notify(flavour: Flavour) -> dict[str, Any]:
    return {
        "name": "notify", "effect": "write", "timeout_seconds": TIMEOUT, "async_statuses": [202],
        "completes_by": "callback",
        "callback": {"source": "shop", "reference": "reference", "state": "state", "succeeded": ["succeeded"],
                     "failed": ["failed"], "order": ["processing", "succeeded|failed"]},
        **_promises(flavour),
    }  # fmt: skip


def _pay() -> dict[str, Any]:
    """Many payouts in one call, each with an end of its own."""
    return {
        "name": "pay", "effect": "write", "timeout_seconds": TIMEOUT,
        "batch": {"items": "items", "key": "payee", "results": "results", "result_key": "payee",
                  "ok": {"path": "state", "equals": "done"}, "external_id": "id"},
    }  # fmt: skip


# --- what comes back ------------------------------------------------------------------------------------------


def observed(exchange: Exchange, reply: Reply | None, latency: float, *, says: str = "") -> Observation:
    """What the sender of a request sees of it; `says` is prose that the provider puts into every answer."""
    ms = int(latency * 1000)
    if not exchange.left:
        return Observation(kind="not_sent", message="connection refused", latency_ms=ms)
    if reply is None:
        return Observation(kind="timeout", bytes_sent=400, latency_ms=ms)
    headers = {"retry-after": str(int(reply.asks))} if reply.asks is not None else {}
    text = _body(exchange, reply)
    if says and text.endswith("}"):
        text = json.dumps({**json.loads(text), "note": says})
    return Observation(
        kind="reply", status=reply.status, headers=headers, body=text, body_bytes=len(text), latency_ms=ms
    )


def _body(exchange: Exchange, reply: Reply) -> str:
    call, name = exchange.call, reply.effect
    if reply.answer == "truncated":
        return '{"id": "'
    if reply.answer in ("refused", "mismatch", "error_object", "conflict_done"):
        code = {"mismatch": "idempotency_key_reused", "conflict_done": "exists"}.get(reply.answer, "rule_broken")
        return json.dumps({"error": {"code": code}} | ({"id": name} if reply.answer == "conflict_done" else {}))
    if reply.answer == "no_identity":
        return json.dumps({"status": "done"})
    if reply.answer == "wrong_types":
        return json.dumps({"id": 5, "found": None})
    if reply.answer == "foreign":
        return json.dumps({"id": "ef_other", "reference": "somebody-elses", "amount": 1})
    if not call.write:
        return json.dumps({"found": "INV-1", "status": "open"})
    if call.items:
        ends = {item: "done" if item in reply.items else "failed" for item in call.items}
        return json.dumps(
            {"results": [{"payee": item, "state": end, "id": f"{name}-{item}"} for item, end in ends.items()]}
        )
    if reply.answer == "accepted":
        return json.dumps({"job": reply.job, "state": "processing"})
    return json.dumps({"id": name, "reference": call.reference, "status": "done"})


def listed(effects: list[Effect]) -> dict[str, Any]:
    """What a look-up answers."""
    return {"items": [_record(one) for one in effects], "has_more": False}


def _record(effect: Effect) -> dict[str, Any]:
    stamp = "whole" if effect.whole else None
    if effect.id.startswith("tw_"):
        stamp = "another"
    return {"id": effect.id, "reference": effect.call.reference, "stamp": stamp}


def job_told(job: Job) -> dict[str, Any]:
    """What a poll answers, and what a callback carries."""
    return {"state": job.state, "id": job.effect or None, "reference": job.call.reference, "job": job.id}
