"""What a scripted answer is to its receiver: an observation for the boundary, a finding for a look-up. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import httpx
from steadyhand import observe
from steadyhand.contract import Observation

from recovery.connectors.base import Finding, failed
from recovery.rules import foreign
from recovery.scenarios import hints
from recovery.scenarios.format import Event

_NEVER_LEFT = ("ConnectError", "ConnectTimeout", "NewConnectionError", "gaierror", "ConnectionRefusedError",
               "NameResolutionError", "PoolTimeout")  # fmt: skip
_LOST = ("Connection", "Reset", "Protocol", "Disconnected", "BrokenPipe", "EOF", "ChunkedEncoding", "ReadError",
         "WriteError", "IncompleteRead")  # fmt: skip
_UNDER_WAY = ("processing", "pending", "running", "accepted", "queued", "in_progress", "created", "scheduled")
_LISTS = ("items", "results", "data", "records", "matches", "effects", "list")


def observation(event: Event | None, *, latency_ms: int) -> Observation:
    """What the agent's side saw; None is an answer that never came."""
    if event is None:
        return Observation(kind="timeout", latency_ms=latency_ms)
    if event.type == "response":
        return observe.from_result(_response(event), latency_ms=latency_ms)
    if event.type == "timeout":
        kind = "not_sent" if event.get("phase") == "connect" else "timeout"
        name = "ConnectTimeout" if kind == "not_sent" else "ReadTimeout"
        return _seen(kind, event, name, latency_ms)
    return _seen(_kind(event), event, str(event.get("exc_type") or "Exception"), latency_ms)


def _response(event: Event) -> httpx.Response:
    body = event.get("body")
    raw = (body if isinstance(body, str) else "").encode("utf-8", "surrogatepass")
    headers = {str(name): str(value) for name, value in (event.get("headers") or {}).items()}
    headers = {name: value for name, value in headers.items() if name.lower() != "content-encoding"}
    return httpx.Response(int(event.get("status", 200)), headers=headers, content=raw)


def _seen(kind: Any, event: Event, name: str, latency_ms: int) -> Observation:
    return Observation(
        kind=kind,
        status=event.get("status"),
        exc_type=name[:200],
        message=observe.clean(str(event.get("message") or ""), observe.MAX_MESSAGE),
        bytes_sent=event.get("bytes_sent") if kind == "connection_lost" else None,
        latency_ms=latency_ms,
        declared=event.get("declared"),
        declared_field=event.get("declared_field"),
    )


def _kind(event: Event) -> str:
    name, sent = str(event.get("exc_type") or ""), event.get("bytes_sent")
    if any(part in name for part in _NEVER_LEFT) and sent in (None, 0):
        return "not_sent"
    if "Timeout" in name:
        return "timeout"
    return "connection_lost" if any(part in name for part in _LOST) else "exception"


# --- look-ups -------------------------------------------------------------------------------------------------


def finding(event: Event | None, tool: dict[str, Any], arguments: dict[str, Any], *, final: bool) -> Finding:
    """What a scripted look-up proves. `final`: the file calls such answers authoritative, so an answer that is not
    proves nothing where it finds nothing (ruling 6)."""
    if event is None:
        return failed("Nobody answered the look-up.")
    status = event.get("status")
    if event.get("exc_type") or event.get("phase") or (isinstance(status, int) and status not in (200, 404, 410)):
        return failed(f"The look-up failed: {status or event.get('exc_type') or event.get('phase')}.")
    body = foreign.parse(str(event.get("body") or "null"))
    records = [] if status in (404, 410) else _records(body)
    if records is None:
        return failed("The look-up's answer cannot be read.")
    told = _judge(records, body, event.get("query") or {}, tool, arguments)
    if told.verdict == "absent" and final and hints.said_authoritative(event.data) is False:
        return failed("The look-up found nothing, and is not authoritative.")
    return told


def _records(body: Any) -> list[dict[str, Any]] | None:
    """What was found; None for an answer that says neither."""
    if isinstance(body, list):
        return [one for one in body if isinstance(one, dict)]
    if not isinstance(body, dict):
        return None
    if body.get("found") is False or body.get("exists") is False or body.get("count") == 0:
        return []
    for name in _LISTS:
        if isinstance(body.get(name), list):
            return [one for one in body[name] if isinstance(one, dict)]
    lists = [value for value in body.values() if isinstance(value, list) and all(isinstance(v, dict) for v in value)]
    inner = next((body[n] for n in ("record", "result", "effect", "match") if isinstance(body.get(n), dict)), None)
    return [inner] if inner else lists[0] if len(lists) == 1 else [body]


def _judge(
    records: list[dict[str, Any]], body: Any, query: dict[str, Any], tool: dict[str, Any], arguments: dict[str, Any]
) -> Finding:
    ours = [record for record in records if not _differs(record, query, _plain(query))]
    count = body.get("count") if isinstance(body, dict) else None
    number = count if isinstance(count, int) and not isinstance(count, bool) else len(ours)
    if not ours:
        return Finding("absent", f"{len(records)} records listed, none of them is ours.", count=0, raw=records[:3])
    whole = [record for record in ours if not _differs(record, arguments, _plain(arguments))]
    if len(whole) > 1 or (number > 1 and not isinstance(count, bool) and count is not None):
        return Finding("conflict", f"{number} records carry our reference.", count=number, raw=ours[:10])
    return _judge_one((whole or ours)[0], tool, arguments)


def _judge_one(record: dict[str, Any], tool: dict[str, Any], arguments: dict[str, Any]) -> Finding:
    name = _identity(record, tool)
    state = str(record.get("state", record.get("status", ""))).lower()
    if state in _UNDER_WAY and name:
        return Finding("processing", f"{name} is still being processed.", 1, name, record, record)
    if record.get("partial") is True or record.get("missing") or state in ("partial", "partially_applied"):
        return Finding("partial", f"{name or 'A record'} holds a part of it only.", 1, name, record, record)
    differing = _differs(record, arguments, _plain(arguments))
    if differing:
        fact = f"{name or 'A record'} carries our reference with other values: {', '.join(differing)}."
        return Finding("conflict", fact, 1, name, record, record)
    return Finding("present", f"One record is ours: {name or 'unnamed'}.", 1, name or "found", record, record)


def _differs(record: dict[str, Any], wanted: dict[str, Any], names: Iterable[str]) -> list[str]:
    return [name for name in names if name in record and str(record[name]) != str(wanted[name])]


def _plain(fields: dict[str, Any]) -> list[str]:
    return [name for name, value in fields.items() if isinstance(value, (str, int)) and not isinstance(value, bool)]


def _identity(record: dict[str, Any], tool: dict[str, Any]) -> str:
    ids = [*hints.result_identity(tool), *(name for name in record if name == "id" or name.endswith("_id"))]
    return next((foreign.name(record[name]) for name in ids if record.get(name) not in (None, "")), "")
