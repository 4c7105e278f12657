"""The page holds the world against what Steadyhand believes, and says when it cannot."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from sandbox.beliefs import judge
from sandbox.client import Process, Sandbox, start
from tests.sandbox.wire import CREDIT, post_credit


@pytest.mark.parametrize(
    ("effect", "effects", "pending", "words"),
    [
        ("proven", 1, 0, "Agrees"),
        ("proven", 0, 0, "Does not agree"),
        ("proven", 0, 1, "Does not agree"),
        ("proven", 2, 0, "Does not agree"),
        ("proven", 1, 1, "Not settled"),
        ("none", 0, 0, "Agrees"),
        ("none", 1, 0, "Does not agree"),
        ("none", 0, 1, "Does not agree"),
        ("unknown", 0, 0, "Not settled"),
        ("unknown", 1, 0, "Not settled"),
        ("unknown", 2, 0, "Not settled"),
        ("something new", 1, 0, "Not settled"),
    ],
)
def test_only_a_settled_belief_agrees_or_disagrees(effect: str, effects: int, pending: int, words: str) -> None:
    assert judge({"effect": effect}, reachable=True, effects=effects, pending=pending).words == words


def test_an_effect_that_steadyhand_does_not_know_is_a_disagreement() -> None:
    assert judge(None, reachable=True, effects=1, pending=0).words == "Does not agree"
    assert judge(None, reachable=True, effects=0, pending=0).words == "Not settled"
    assert judge(None, reachable=False, effects=1, pending=0).words == "Not checked"


class Steadyhand(ThreadingHTTPServer):
    """Stands in for the console: answers with whatever the test puts in ``reply``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Believer)
        self.reply: tuple[int, dict[str, str], bytes] = (200, {}, b'{"items": []}')
        self.seen: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Believer(BaseHTTPRequestHandler):
    server: Steadyhand

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        status, headers, body = self.server.reply
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def steadyhand() -> Iterator[Steadyhand]:
    server = Steadyhand()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def watched(steadyhand: Steadyhand, tmp_path: Path) -> Iterator[Process]:
    token = tmp_path / "token"
    token.write_text("sesame\n")
    extra = ["--beliefs", f"{steadyhand.url}/beliefs", "--beliefs-token", str(token), "--steadyhand", steadyhand.url]
    with start(tmp_path / "world", extra=extra) as process:
        yield process


def page(process: Process) -> str:
    reply = httpx.get(process.url, trust_env=False)
    assert reply.status_code == 200
    return reply.text


def test_the_page_shows_arrivals_effects_belief_and_verdict(watched: Process, steadyhand: Steadyhand) -> None:
    post_credit(watched.port, X_Action_Id="act-1")
    watched.sandbox.fault("payments", "credits", [{"do": "late_commit", "seconds": 60}])
    post_credit(watched.port, X_Action_Id="act-2")
    items = [
        {"reference": "act-1", "state": "succeeded", "outcome": "ok", "effect": "proven", "run_id": "r1"},
        {"reference": "act-2", "state": "unknown", "outcome": None, "effect": "unknown", "run_id": "r2"},
    ]
    steadyhand.reply = (200, {}, json.dumps({"items": items}).encode())
    text = page(watched)
    [effect] = watched.sandbox.effects()
    for shown in ("act-1", effect["effect_id"], "42.00 EUR", "Effect proven", "Agrees", "Under way", "Not settled"):
        assert shown in text
    assert steadyhand.seen[0] == ("/beliefs", "Bearer sesame")
    assert "sesame" not in text


def test_an_unreachable_steadyhand_is_said_and_nothing_is_judged(watched: Process, steadyhand: Steadyhand) -> None:
    post_credit(watched.port)
    steadyhand.reply = (503, {}, b"")
    text = page(watched)
    assert f"Steadyhand not reachable at {steadyhand.url}/beliefs, checked " in text
    assert "Not checked" in text
    assert "Agrees" not in text


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"items": 5}', b'{"items": [1]}', b"x" * 1_100_000])
def test_an_answer_that_is_no_list_of_beliefs_counts_as_not_reachable(
    watched: Process, steadyhand: Steadyhand, body: bytes
) -> None:
    steadyhand.reply = (200, {}, body)
    assert "Steadyhand not reachable" in page(watched)


def test_the_token_follows_no_redirect(watched: Process, steadyhand: Steadyhand) -> None:
    steadyhand.reply = (302, {"Location": "/elsewhere"}, b"")
    assert "Steadyhand not reachable" in page(watched)
    assert [path for path, _ in steadyhand.seen] == ["/beliefs"]


def test_everything_from_outside_is_escaped(watched: Process, steadyhand: Steadyhand) -> None:
    nasty = "<script>alert(1)</script>"
    post_credit(watched.port, X_Action_Id=nasty)
    belief = {"reference": nasty, "state": nasty, "outcome": "\ud800" + nasty, "effect": nasty}
    steadyhand.reply = (200, {}, json.dumps({"items": [belief]}).encode())
    text = page(watched)
    assert "<script" not in text
    assert text.count("&lt;script&gt;") == 4


def test_the_page_works_without_steadyhand_and_without_scripts(world: Sandbox, http: httpx.Client) -> None:
    reply = http.get("/")
    assert "No write has arrived yet." in reply.text
    assert "No address of Steadyhand was given." in reply.text
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
    assert "<script" not in reply.text
    assert "style=" not in reply.text
    css = http.get("/sandbox.css")
    assert css.headers["Content-Type"].startswith("text/css")
    assert "#6734b6" in css.text
    http.post("/payments/credits", json=CREDIT)
    assert "without a reference, arrival 1" in http.get("/").text
