"""The line to the outside: one request at a time, no redirects, no proxies from the environment, a deadline.

A client lives for one request, so that nothing of one tenant's connection is left for the next. The certificates that
it trusts are read once: reading them takes longer than most look-ups.
"""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx

from recovery.connectors import guard
from recovery.connectors.guard import Target


@dataclass(frozen=True)
class Reply:
    """What came back within the deadline: `cut` says that its body was longer than what is read of one."""

    response: httpx.Response
    cut: bool


def client(timeout_seconds: float) -> httpx.Client:
    return httpx.Client(follow_redirects=False, trust_env=False, timeout=timeout_seconds, verify=_trusted())


def exchange(
    method: str, target: Target, *, headers: dict[str, str], timeout_seconds: float, **request: Any
) -> Reply:
    """Send one request and read its answer, within its deadline and its cap. Raises httpx.HTTPError (F040)."""
    deadline = time.monotonic() + timeout_seconds
    plain = {"Host": target.host, "Accept": "application/json", "Accept-Encoding": "identity"}
    with (
        client(timeout_seconds) as opened,
        opened.stream(
            method, target.url, headers={**plain, **headers}, extensions=target.extensions, **request
        ) as reply,
    ):
        body, cut = _whole(reply, deadline)
        kept = {name: value for name, value in reply.headers.items() if name != "content-encoding"}
        return Reply(httpx.Response(reply.status_code, headers=kept, content=body, request=reply.request), cut)


def _whole(reply: httpx.Response, deadline: float) -> tuple[bytes, bool]:
    """The body as it is sent; an endless one is cut, a slow one is a reply that never came (F040)."""
    body = b""
    for chunk in reply.iter_raw():
        body += chunk
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("the reply did not end in time", request=reply.request)
        if len(body) > guard.MAX_REPLY_BYTES:
            return body[: guard.MAX_REPLY_BYTES], True
    return body, False


@cache
def _trusted() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)
