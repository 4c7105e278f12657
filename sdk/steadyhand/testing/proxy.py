"""A way to a system that counts each request which passes it, and breaks as it is told: the kit's measuring point."""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Literal
from urllib.parse import urlsplit

Trouble = Literal["", "error", "busy", "page", "empty", "nothing", "drop", "cut", "hang", "lost"]
BEFORE: tuple[Trouble, ...] = ("error", "busy", "page", "empty", "drop", "cut")
"""Troubles in which the system behind is never reached."""
_ANSWERS = {
    "error": (500, b'{"error": "internal"}'),
    "busy": (503, b'{"error": "busy"}'),
    "page": (200, b"<html>Sign in</html>"),
    "empty": (200, b"{}"),
    "nothing": (200, b""),
}
_OWN = {"connection", "host", "content-length", "transfer-encoding", "keep-alive"}


class Proxy:
    """`url` leads to the system. `arrivals` is every request as (method, path, body)."""

    def __init__(self, base_url: str) -> None:
        self._target = urlsplit(base_url)
        self.trouble: Trouble = ""
        self.hang_seconds = 30.0
        self.arrivals: list[tuple[str, str, bytes]] = []
        self._ended = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}{self._target.path.rstrip('/')}"

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()

    def repeats(self) -> list[tuple[str, str]]:
        """Requests that arrived more than once, alike in everything."""
        seen = [one for one in self.arrivals if self.arrivals.count(one) > 1]
        return sorted({(method, path) for method, path, _ in seen})

    def serve(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Note the request and answer it: by the system behind, or by the trouble that is planned."""
        self.arrivals.append((handler.command, handler.path, body))
        handler.close_connection = True
        if self.trouble == "hang":
            self._ended.wait(self.hang_seconds)
        elif self.trouble == "cut":
            _send(handler, 200, [("Content-Length", "100")], b'{"items": [')
        elif self.trouble in _ANSWERS:
            status, answer = _ANSWERS[self.trouble]
            _send(handler, status, [("Content-Length", str(len(answer)))], answer)
        elif self.trouble != "drop":
            self._pass_on(handler, body, lost=self.trouble == "lost")

    def _pass_on(self, handler: BaseHTTPRequestHandler, body: bytes, *, lost: bool) -> None:
        kind = http.client.HTTPSConnection if self._target.scheme == "https" else http.client.HTTPConnection
        there = kind(self._target.hostname or "", self._target.port, timeout=20)
        headers = {name: value for name, value in handler.headers.items() if name.lower() not in _OWN}
        try:
            there.request(handler.command, handler.path, body or None, headers)
            answer = there.getresponse()
            content = answer.read()
        finally:
            there.close()
        if not lost:
            kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in _OWN]
            _send(handler, answer.status, [*kept, ("Content-Length", str(len(content)))], content)


def _send(handler: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
    handler.send_response_only(status)
    for name, value in headers:
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            proxy.serve(self, self.rfile.read(int(self.headers.get("content-length") or 0)))

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler
