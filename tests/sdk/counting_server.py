"""A real HTTP server on loopback that counts what arrives and answers as it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Counted:
    def __init__(self) -> None:
        self.url = ""
        self.paths: list[str] = []
        self.ports: list[int] = []

    @property
    def arrivals(self) -> int:
        return len(self.paths)


Answer = Callable[[BaseHTTPRequestHandler], None]


def plainly(status: int, headers: dict[str, str] | None = None, body: bytes = b"{}") -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"content-length": str(len(body)), **(headers or {})}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def drop(handler: BaseHTTPRequestHandler) -> None:
    """Read the request, then close without a word (F026)."""
    handler.close_connection = True


def cut(handler: BaseHTTPRequestHandler) -> None:
    """Promise more than is sent (F030)."""
    plainly(200, {"content-length": "100"}, b'{"id": "cr_')(handler)
    handler.close_connection = True


@contextmanager
def counting(status: int = 200, answer: Answer | None = None) -> Iterator[Counted]:
    counted = Counted()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            self.body = self.rfile.read(int(self.headers.get("content-length") or 0))
            counted.paths.append(self.path)
            counted.ports.append(self.client_address[1])
            (answer or plainly(status))(self)

        do_GET = do_POST = do_PUT = _serve  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    counted.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield counted
    finally:
        server.shutdown()
        server.server_close()
