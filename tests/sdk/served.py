"""The scripted server behind a real socket, for what only a real socket shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import httpx

from tests.sdk.counting_server import Counted, counting, plainly
from tests.sdk.fake_server import FakeServer


@contextmanager
def served(server: FakeServer) -> Iterator[Counted]:
    """`server` on loopback; the client's port of each request stands in `ports`."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        url = f"http://{handler.headers['host']}{handler.path}"
        request = httpx.Request(handler.command, url, content=handler.body)  # type: ignore[attr-defined]
        answered = server.answer(request)
        plainly(answered.status_code, {"content-type": answered.headers["content-type"]}, answered.content)(handler)

    with counting(answer=answer) as counted:
        yield counted
