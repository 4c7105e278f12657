"""A call that the worker makes itself: one request, as the manifest describes it, and what came back (DESIGN: who
sends again).

One request, no redirects, no retries, no proxies, a deadline and a size cap. What came back is an observation like an
agent's: it claims nothing about the effect.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
from steadyhand import observe
from steadyhand.contract import Observation
from steadyhand.templates import fill, filled

from recovery.connectors import guard, line
from recovery.connectors.base import Outgoing
from recovery.connectors.templates import path_of, secret_of


def send(outgoing: Outgoing) -> Observation:
    """Make the call once and say what came back."""
    return observed(lambda: _exchange(outgoing))


def observed(exchange: Callable[[], line.Reply]) -> Observation:
    """What one exchange comes to; an address that may not be asked is a call that did not leave."""
    started = time.monotonic()
    try:
        reply = exchange()
    except guard.Forbidden as refused:
        return observe.not_sent(str(refused))
    except httpx.HTTPError as wrong:
        return observe.from_exception(wrong, latency_ms=_since(started))
    seen = observe.from_result(reply.response, latency_ms=_since(started))
    return seen.model_copy(update={"altered": True, "body_bytes": None}) if reply.cut else seen


def _exchange(outgoing: Outgoing) -> line.Reply:
    how, base = outgoing.send, (outgoing.connector.base_url or "").rstrip("/")
    path = path_of(how.path or "", outgoing, whole=True)
    target = guard.check(base + path, allow_hosts=outgoing.connector.allow_hosts)
    query = {name: str(fill(value, outgoing)) for name, value in how.query.items()}
    return line.exchange(
        how.method, target, headers=_call_headers(outgoing), timeout_seconds=outgoing.timeout_seconds, params=query,
        json=_call_body(outgoing),
    )  # fmt: skip


def _call_headers(outgoing: Outgoing) -> dict[str, str]:
    """Our key goes where the contract wants it, so that the remote takes a repeat for what it is."""
    key = outgoing.idempotency
    own = {key.header: outgoing.key} if key.kind == "key" and key.header else {}
    return {**own, **secret_of(outgoing.connector)}


def _call_body(outgoing: Outgoing) -> Any:
    """The template filled, or the arguments as they are; a GET has none."""
    if outgoing.send.method == "GET":
        return None
    body = outgoing.arguments if outgoing.send.body is None else filled(outgoing.send.body, outgoing)
    key = outgoing.idempotency
    return {**body, key.field: outgoing.key} if key.kind == "key" and key.field else body


def _since(started: float) -> int:
    return int((time.monotonic() - started) * 1000)
