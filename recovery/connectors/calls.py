"""A call that the worker makes itself: one request, as the manifest describes it, and what came back (DESIGN: who
sends again).

One request, no redirects, no retries, no proxies, a deadline and a size cap. What came back is an observation like an
agent's: it claims nothing about the effect.
"""

from __future__ import annotations

import time
from typing import Any

import httpx
from steadyhand import observe
from steadyhand.contract import MAX_REPLY_BYTES, Observation

from recovery.connectors import guard, line
from recovery.connectors.base import Outgoing
from recovery.connectors.templates import fill, filled, path_of, secret_of


def send(outgoing: Outgoing) -> Observation:
    """Make the call once and say what came back."""
    started = time.monotonic()
    try:
        reply, cut = _exchange(outgoing, started + outgoing.timeout_seconds)
    except guard.Forbidden as refused:
        return observe.not_sent(str(refused))
    except httpx.HTTPError as wrong:
        return observe.from_exception(wrong, latency_ms=_since(started))
    seen = observe.from_result(reply, latency_ms=_since(started))
    return seen.model_copy(update={"altered": True, "body_bytes": None}) if cut else seen


def _exchange(outgoing: Outgoing, deadline: float) -> tuple[httpx.Response, bool]:
    """The whole reply, and whether its body was cut at what an observation keeps."""
    how, base = outgoing.send, (outgoing.connector.base_url or "").rstrip("/")
    target = guard.check(base + path_of(how.path, outgoing, whole=True), allow_hosts=outgoing.connector.allow_hosts)
    query = {name: str(fill(value, outgoing)) for name, value in how.query.items()}
    with (
        line.client(outgoing.timeout_seconds) as client,
        client.stream(
            how.method, target.url, params=query, headers=_call_headers(outgoing, target.host),
            json=_call_body(outgoing), extensions=target.extensions,
        ) as reply,
    ):  # fmt: skip
        body, cut = _whole(reply, deadline)
        kept = {name: value for name, value in reply.headers.items() if name != "content-encoding"}
        return httpx.Response(reply.status_code, headers=kept, content=body, request=reply.request), cut


def _whole(reply: httpx.Response, deadline: float) -> tuple[bytes, bool]:
    """The body as it is sent; an endless one is cut, a slow one is a reply that never came (F040)."""
    body = b""
    for chunk in reply.iter_raw():
        body += chunk
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("the reply did not end in time", request=reply.request)
        if len(body) > MAX_REPLY_BYTES:
            return body[:MAX_REPLY_BYTES], True
    return body, False


def _call_headers(outgoing: Outgoing, host: str) -> dict[str, str]:
    """Our key goes where the contract wants it, so that the remote takes a repeat for what it is."""
    key = outgoing.idempotency
    own = {key.header: outgoing.key} if key.kind == "key" and key.header else {}
    plain = {"Host": host, "Accept": "application/json", "Accept-Encoding": "identity"}
    return {**plain, **own, **secret_of(outgoing.connector)}


def _call_body(outgoing: Outgoing) -> Any:
    """The template filled, or the arguments as they are; a GET has none."""
    if outgoing.send.method == "GET":
        return None
    body = outgoing.arguments if outgoing.send.body is None else filled(outgoing.send.body, outgoing)
    key = outgoing.idempotency
    return {**body, key.field: outgoing.key} if key.kind == "key" and key.field else body


def _since(started: float) -> int:
    return int((time.monotonic() - started) * 1000)
