"""Where a look-up may go, and how little of it may go wrong (SEC-19, F039, F040, F107)."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pytest_django.fixtures import Settings
from steadyhand.manifest import Connector, Look

from recovery.connectors import guard, http
from recovery.connectors.base import Finding, Question
from recovery.connectors.guard import Forbidden, check, is_public
from recovery.work import worker

CLOSED = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.1.2.3",
    "127.255.255.254", "169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255",
    "192.0.0.1", "192.0.0.8", "192.0.0.170", "192.0.2.1", "192.88.99.1", "192.168.0.1", "192.168.255.255",
    "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1",
    "255.255.255.255", "::", "::1", "::2", "::127.0.0.1", "::10.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "::ffff:7f00:1", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1",
    "64:ff9b::169.254.169.254", "64:ff9b:1::1", "64:ff9b:1:7f00:0:100:808:808", "100::1", "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "2001:10::1", "2001:20::1", "2002:7f00:1::",
    "2002:a00:1::", "2002:c0a8:101::1", "3fff::1", "5f00::1", "fc00::1", "fd00::1", "fd00:ec2::254",
    "fdff:ffff::1", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "feff::1", "ff00::1", "ff02::1", "ff05::2",
    "4000::1", "8000::1", "e000::1",
]  # fmt: skip
OPEN = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "172.32.0.1", "2606:4700::1111", "2a00:1450::1", "64:ff9b::8.8.8.8"]


def test_the_table_is_long_enough() -> None:
    assert len(set(CLOSED)) >= 60


@pytest.mark.parametrize("address", CLOSED)
def test_SEC_19_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", OPEN)
def test_SEC_19_a_public_address_is_allowed(address: str) -> None:
    assert is_public(address)


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """A resolver that gives these addresses, one list after the other; returns the names it was asked for."""
    asked: list[str] = []

    def resolve(host: str, port: int, **_: Any) -> Any:
        asked.append(host)
        return [(0, 0, 0, "", (address, port)) for address in answers[min(len(asked), len(answers)) - 1]]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


def test_SEC_19_the_address_is_pinned_and_the_name_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = resolving(monkeypatch, ["93.184.216.34"], ["127.0.0.1"])
    target = check("https://api.example.org/v1/x?y=1", allow_hosts=["api.example.org"])
    assert target.url == "https://93.184.216.34:443/v1/x?y=1"
    assert (target.host, target.extensions) == ("api.example.org", {"sni_hostname": "api.example.org"})
    assert asked == ["api.example.org"]


def test_SEC_19_one_private_address_among_public_ones_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, ["93.184.216.34", "10.0.0.1"])
    with pytest.raises(Forbidden, match="private"):
        check("https://api.example.org/", allow_hosts=["api.example.org"])


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "169.254.169.254", "::ffff:127.0.0.1", "fd00::1"])
def test_SEC_19_a_name_that_points_inside_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    resolving(monkeypatch, [address])
    with pytest.raises(Forbidden):
        check("https://api.example.org/", allow_hosts=["api.example.org"])


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.org/",
        "ftp://api.example.org/",
        "https://evil.example/",
        "https://api.example.org.evil.example/",
        "https://api.example.org@evil.example/",
        "https://api.example.org%00.evil.example/",
        "https://api.example.org./",
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::1/",
        "https://api.example.org:99999/",
        "https://api.example.org:x/",
        "https:///x",
        "//api.example.org/",
        "",
    ],
)
def test_SEC_19_an_url_that_is_not_exactly_allowed_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    resolving(monkeypatch, ["93.184.216.34"])
    with pytest.raises(Forbidden):
        check(url, allow_hosts=["api.example.org"])


def test_SEC_19_a_literal_address_is_checked_even_when_it_was_allowed() -> None:
    for host in ("127.0.0.1", "2130706433", "localhost"):
        with pytest.raises(Forbidden):
            check(f"https://{host}/", allow_hosts=[host])


def test_SEC_19_a_trusted_endpoint_is_exactly_one_host_and_port(settings: Settings) -> None:
    settings.TRUSTED_ENDPOINTS = ("127.0.0.1:8123",)
    assert check("http://127.0.0.1:8123/x", allow_hosts=[]).url == "http://127.0.0.1:8123/x"
    for url in ("http://127.0.0.1:8124/", "http://localhost:8123/", "http://127.0.0.2:8123/"):
        with pytest.raises(Forbidden):
            check(url, allow_hosts=["127.0.0.1", "localhost"])


# --- a real provider that misbehaves ------------------------------------------------------------------------

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Provider:
    """A server on this machine; `arrivals` holds every request line and its headers."""

    url: str
    answer: Answer = lambda handler: say(handler, b'{"items": []}')
    arrivals: list[tuple[str, dict[str, str]]] = field(default_factory=list)


def say(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture
def provider(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.arrivals.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            provider.answer(self)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    place = f"127.0.0.1:{server.server_port}"
    provider = Provider(f"http://{place}")
    settings.TRUSTED_ENDPOINTS = (place,)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("STEADYHAND_SECRET_PAYMENTS", "quiet-harbour")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield provider
    server.shutdown()
    server.server_close()
    thread.join()


def ask(provider: Provider, timeout: float = 5) -> Finding:
    connector = Connector(
        base_url=provider.url, timeout_seconds=timeout, secret_header="X-Key", secret_name="payments"
    )
    look = Look(
        path="/credits", query={"ref": "{action_id}"}, items="items", ours={"ref": "{action_id}"}, external_id="id"
    )
    return worker.ask(Question("a 1&x", "run", "key", {}, connector, look))


def test_F107_one_look_is_one_request(provider: Provider) -> None:
    assert ask(provider).verdict == "absent"
    (path, headers), *more = provider.arrivals
    assert more == []
    assert path == "/credits?ref=a+1%26x"
    assert headers["x-key"] == "quiet-harbour"
    assert headers["host"] == provider.url.removeprefix("http://")


@pytest.mark.parametrize("status", [204, 301, 302, 307, 308, 400, 401, 404, 429, 500, 502, 503])
def test_F039_F107_neither_a_redirect_nor_an_error_makes_a_second_request(provider: Provider, status: int) -> None:
    provider.answer = lambda handler: say(handler, b"", status, Location="/elsewhere")
    seen = ask(provider)
    assert (seen.verdict, str(status) in seen.fact) == ("probe_failed", True)
    assert len(provider.arrivals) == 1


def test_F107_a_broken_connection_is_not_tried_again(provider: Provider) -> None:
    provider.answer = lambda handler: handler.connection.shutdown(socket.SHUT_RDWR)
    assert ask(provider).verdict == "probe_failed"
    assert len(provider.arrivals) == 1


def test_F042_nobody_listening_is_a_failed_look(provider: Provider, settings: Settings) -> None:
    settings.TRUSTED_ENDPOINTS = ("127.0.0.1:9",)
    provider.url = "http://127.0.0.1:9"
    assert ask(provider).verdict == "probe_failed"


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"items": [', b"\xff\xfe", b"[" * 100_000, gzip.compress(b"{}")])
def test_an_answer_that_is_no_json_is_a_failed_look(provider: Provider, body: bytes) -> None:
    provider.answer = lambda handler: say(handler, body)
    assert ask(provider).verdict == "probe_failed"


@pytest.mark.parametrize(
    ("header", "verdict"),
    [
        ('<https://api.example.org/c?page=2>; rel="next"', "probe_failed"),
        ('<https://api.example.org/c?page=9>; rel="last", </c?page=2>; rel="Next"', "probe_failed"),
        ('</c?page=1>; rel="prev"', "absent"),
        (";;,<>;=;rel", "absent"),
    ],
)
def test_F042_a_next_page_in_the_headers_makes_an_absence_unproven(
    provider: Provider, header: str, verdict: str
) -> None:
    provider.answer = lambda handler: say(handler, b'{"items": []}', Link=header)
    assert ask(provider).verdict == verdict


@pytest.mark.parametrize("body", [b'{"items": null}', b"{}", b'{"items": {}}', b'{"items": "none"}'])
def test_F042_an_answer_without_its_list_is_a_failed_look(provider: Provider, body: bytes) -> None:
    provider.answer = lambda handler: say(handler, body)
    assert ask(provider).verdict == "probe_failed"


def test_F040_an_answer_over_the_size_cap_is_not_read_to_its_end(provider: Provider, monkeypatch: Any) -> None:
    monkeypatch.setattr(guard, "MAX_REPLY_BYTES", 1000)
    provider.answer = lambda handler: say(handler, b'{"items": [' + b" " * 2000 + b"]}")
    assert "too large" in ask(provider).fact


def test_F040_an_answer_that_does_not_come_is_given_up(provider: Provider) -> None:
    provider.answer = lambda handler: time.sleep(0.6)
    assert "in time" in ask(provider, timeout=0.15).fact


def test_F040_an_answer_that_drips_is_given_up(provider: Provider) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        for _ in range(40):
            try:
                handler.wfile.write(b" ")
                handler.wfile.flush()
            except OSError:
                return
            time.sleep(0.05)

    provider.answer = drip
    started = time.monotonic()
    assert "in time" in ask(provider, timeout=0.3).fact
    assert time.monotonic() - started < 1.5


def test_F040_an_answer_whose_head_drips_is_given_up(provider: Provider) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        for letter in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 40:
            try:
                handler.wfile.write(bytes([letter]))
                handler.wfile.flush()
            except OSError:
                return
            time.sleep(0.05)

    provider.answer = drip
    started = time.monotonic()
    seen = ask(provider, timeout=0.3)
    assert "in time" in seen.fact
    assert seen.fault
    assert time.monotonic() - started < 1.5
    assert len(provider.arrivals) == 1


def test_a_fault_that_nobody_foresaw_is_a_failed_look(monkeypatch: pytest.MonkeyPatch, provider: Provider) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("quiet-harbour")

    monkeypatch.setattr(http, "judge", broken)
    seen = ask(provider)
    assert seen.verdict == "probe_failed"
    assert "quiet-harbour" not in seen.fact
