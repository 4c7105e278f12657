"""The sockets: one request per connection, resets and half replies included."""

from __future__ import annotations

import contextlib
import os
import socket
import socketserver
import struct
import sys
import threading
import time
import traceback
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sandbox.app import App, Request
from sandbox.beliefs import Beliefs
from sandbox.calls import MAX_BODY_BYTES, Answer, Cut, Ending, Refused, json_answer
from sandbox.ledger import Ledger
from sandbox.plays import LateCommits

MAX_THREADS = 160
READ_SECONDS = 10
DRAIN_BYTES = 1024 * 1024
BROKEN = json_answer(500, {"error": {"code": "sandbox_broken", "message": "See the sandbox's log."}})
BUSY = json_answer(503, {"error": {"code": "sandbox_busy", "message": "Too many calls at once."}})


def to_bytes(answer: Answer) -> bytes:
    """The reply as it goes over the wire, cut short where the play says so."""
    try:
        phrase = HTTPStatus(answer.status).phrase
    except ValueError:
        phrase = "Unnamed"
    headers = {
        "Content-Type": answer.content_type,
        "Content-Length": str(len(answer.body)),
        "Connection": "close",
        **answer.headers,
    }
    lines = [f"HTTP/1.1 {answer.status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    return head + answer.body[: answer.sent_bytes]


class Handler(BaseHTTPRequestHandler):
    """Reads one request whole, has it answered, and ends the connection."""

    protocol_version = "HTTP/1.1"
    timeout = READ_SECONDS
    server: Server

    def serve_one(self) -> None:
        """Any verb: the app decides, this method only talks to the socket."""
        self.close_connection = True
        self._end(self._answer())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve_one  # noqa: N815

    def _answer(self) -> Ending:
        try:
            url = urlsplit(self.path)
            length = self._length()
            raw = self._read(length)
            return self.server.app.answer(
                Request(
                    method=self.command,
                    path=url.path,
                    query=url.query,
                    headers=self.headers,
                    raw=raw,
                    whole=len(raw) == length,
                )
            )
        except Refused as refused:
            self._drain()
            return json_answer(refused.status, refused.body)
        except Exception:
            if self.server.stopping.is_set():
                return Cut(how="rst")
            traceback.print_exc(file=sys.stderr)
            return BROKEN

    def _length(self) -> int:
        given = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers:
            raise Refused(411, "length_required", "Send the body with a Content-Length.")
        if not (given.isascii() and given.isdigit()):
            raise Refused(400, "invalid_length", "Content-Length must be a whole number.")
        if len(given) > 9 or int(given) > MAX_BODY_BYTES:
            raise Refused(413, "body_too_large", f"A body may have at most {MAX_BODY_BYTES} bytes.")
        return int(given)

    def _read(self, length: int) -> bytes:
        """The body, or as much of it as came before the caller went away or fell silent."""
        raw = b""
        with contextlib.suppress(OSError):
            while len(raw) < length:
                more = self.rfile.read1(min(65536, length - len(raw)))
                if not more:
                    break
                raw += more
        return raw

    def _drain(self) -> None:
        """Read a refused body away, within bounds: an unread one would turn our reply into a reset."""
        self.connection.settimeout(0.2)
        left = DRAIN_BYTES
        with contextlib.suppress(OSError):
            while left > 0 and (more := self.rfile.read1(65536)):
                left -= len(more)

    def _end(self, ending: Ending) -> None:
        if isinstance(ending, Answer):
            self.connection.sendall(to_bytes(ending))
        elif ending.how == "rst":
            reset(self.connection)

    def log_message(self, format: str, *args: Any) -> None:
        """The ledger is the log."""


def reset(connection: socket.socket) -> None:
    """End a connection with RST: without lingering, and without the FIN that a shutdown would send first."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(connection.detach())


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Accepts connections up to a cap of threads; beyond it the caller reads 503 and nothing has arrived."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], *, data: Path, beliefs: Beliefs) -> None:
        self.stopping = threading.Event()
        self._slots = threading.BoundedSemaphore(MAX_THREADS)
        self.ledger = Ledger(data)
        self.app = App(self.ledger, stopping=self.stopping, beliefs=beliefs)
        self._late = LateCommits(self.ledger, self.stopping)
        try:
            super().__init__(address, Handler)
        except BaseException:
            self.ledger.close()
            raise

    @property
    def url(self) -> str:
        """Where this world is."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"

    def run(self) -> None:
        """Serve until ``stop``; afterwards nothing is committed any more and the ledger is closed."""
        self._late.start()
        try:
            self.serve_forever(poll_interval=0.1)
        finally:
            self.stopping.set()
            self.ledger.changed.set()
            self.server_close()
            self._late.join(2)
            self._wait_for_calls(2)
            self.ledger.close()

    def stop(self) -> None:
        """Ask ``run`` to return; waits of calls under way end at once. Safe from a signal handler."""
        self.stopping.set()
        threading.Thread(target=self.shutdown, daemon=True).start()

    def _wait_for_calls(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        for _ in range(MAX_THREADS):
            if not self._slots.acquire(timeout=max(0.0, until - time.monotonic())):
                return

    def process_request(self, request: Any, client_address: Any) -> None:
        """Hand a connection to a thread, if one is free."""
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        with contextlib.suppress(OSError):
            request.sendall(to_bytes(BUSY))
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """One connection in its own thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that went away is ordinary here; anything else is printed."""
        if not isinstance(sys.exc_info()[1], OSError):
            traceback.print_exc(file=sys.stderr)
