"""The line to the outside: one request at a time, no redirects, no proxies from the environment, a deadline.

A client lives for one request, so that nothing of one tenant's connection is left for the next. The certificates that
it trusts are read once: reading them takes longer than most look-ups.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
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
    """Send one request and read its answer, within its deadline and its cap. Raises httpx.HTTPError (F040), and
    guard.Forbidden for what cannot be sent at all.
    """
    deadline = time.monotonic() + timeout_seconds
    plain = {"Host": target.host, "Accept": "application/json", "Accept-Encoding": "identity"}
    with client(timeout_seconds) as opened, _ended_in(timeout_seconds) as watched:
        request |= {"headers": {**plain, **headers}, "extensions": {**target.extensions, "trace": watched}}
        made = _made(opened, method, target.url, **request)
        with closing(_sent(opened, made)) as reply:
            return _read(reply, deadline)


def _made(opened: httpx.Client, method: str, url: str, **request: Any) -> httpx.Request:
    """The request before anything of it has left: only here does an address that is none prove that nothing did."""
    try:
        return opened.build_request(method, url, **request)
    except httpx.InvalidURL as wrong:
        raise guard.Forbidden("With what was filled in, its address is too long or is none.") from wrong


def _sent(opened: httpx.Client, made: httpx.Request) -> httpx.Response:
    """The client reads where an answer points to though nobody goes there; by then the request was sent."""
    try:
        return opened.send(made, stream=True)
    except httpx.InvalidURL as wrong:
        raise httpx.RemoteProtocolError("the answer points to no address", request=made) from wrong


def _read(reply: httpx.Response, deadline: float) -> Reply:
    body, cut = _whole(reply, deadline)
    kept = {name: value for name, value in reply.headers.items() if name != "content-encoding"}
    return Reply(httpx.Response(reply.status_code, headers=kept, content=body, request=reply.request), cut)


@contextmanager
def _ended_in(seconds: float) -> Iterator[Callable[[str, dict[str, Any]], None]]:
    """Hang up after so long, wherever the exchange is by then: the client's own timeout begins anew with each byte,
    so that the head of an answer could drip for days. What the block is given learns which connection is meant."""
    lines: list[Any] = []
    deadline = time.monotonic() + seconds

    def watch(event: str, told: dict[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            lines[:] = [told["return_value"].get_extra_info("socket")]

    def hang_up() -> None:
        for one in lines:
            with suppress(OSError):  # it is closed already
                socket.socket.shutdown(one, socket.SHUT_RDWR)

    timer = threading.Timer(seconds, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield watch
    except (httpx.ReadError, httpx.RemoteProtocolError) as wrong:
        if time.monotonic() < deadline:
            raise
        raise httpx.ReadTimeout("the reply did not begin in time", request=wrong.request) from wrong
    finally:
        timer.cancel()


def _whole(reply: httpx.Response, deadline: float) -> tuple[bytes, bool]:
    """The body as it is sent; an endless one is cut, a slow one is a reply that never came (F040)."""
    body = b""
    for chunk in reply.iter_raw():
        body += chunk
        if time.monotonic() > deadline:
            break
        if len(body) > guard.MAX_REPLY_BYTES:
            return body[: guard.MAX_REPLY_BYTES], True
    # A body without a declared length also ends where we hung up on it.
    if time.monotonic() > deadline:
        raise httpx.ReadTimeout("the reply did not end in time", request=reply.request)
    return body, False


@cache
def _trusted() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)
