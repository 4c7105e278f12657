"""A client inside the tool that retries by itself is stopped before its second request leaves."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests
from steadyhand.repeats import SentTwice, guarded


class Counting(BaseHTTPRequestHandler):
    arrived: list[str]

    def do_POST(self) -> None:
        self.arrived.append(self.path)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def counting() -> Iterator[tuple[int, list[str]]]:
    handler = type("Handler", (Counting,), {"arrived": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield server.server_port, handler.arrived
    server.shutdown()
    server.server_close()


def by_http_client(port: int, body: str, method: str = "POST") -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, "/charge", body)
        connection.getresponse().read()
    finally:
        connection.close()


def by_requests(port: int, body: str, method: str = "POST") -> None:
    requests.request(method, f"http://127.0.0.1:{port}/charge", data=body, timeout=5)


Send = Callable[..., None]
CLIENTS = pytest.mark.parametrize("send", [by_http_client, by_requests])


@CLIENTS
def test_F107_the_same_request_leaves_once_under_one_permit(send: Send, counting: tuple[int, list[str]]) -> None:
    port, arrived = counting
    with guarded() as sends:
        send(port, "amount=1")
        for _ in range(2):
            with pytest.raises(SentTwice):
                send(port, "amount=1")
    assert len(arrived) == 1
    assert sends.stopped == 2


@CLIENTS
def test_F107_other_requests_of_the_same_tool_may_leave(send: Send, counting: tuple[int, list[str]]) -> None:
    port, arrived = counting
    with guarded() as sends:
        send(port, "amount=1")
        send(port, "amount=1000")
        send(port, "", method="GET")
        send(port, "", method="GET")
    assert len(arrived) == 4
    assert sends.stopped == 0


def test_F107_a_new_permit_may_send_what_the_last_one_sent(counting: tuple[int, list[str]]) -> None:
    port, arrived = counting
    for _ in range(2):
        with guarded():
            by_http_client(port, "amount=1")
    by_http_client(port, "amount=1")
    assert len(arrived) == 3
