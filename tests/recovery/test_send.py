"""What the worker sends: exactly one request, as the manifest says, seen like an agent's (F107, SEC-19)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from pydantic import ValidationError
from pytest_django.fixtures import Settings
from steadyhand.contract import MAX_REPLY_BYTES
from steadyhand.manifest import Connector, Idempotency, Look, Manifest, Send

from recovery.connectors import calls, http
from recovery.connectors.base import Outgoing, Question
from recovery.connectors.guard import Forbidden
from recovery.connectors.templates import path_of
from tests.failures.outside import stand_manifest
from tests.sdk.counting_server import Answer, Counted, counting, cut, drop, plainly

KEY = Idempotency(kind="key", header="Idempotency-Key", retention_seconds="unlimited")


class Seen:
    """What arrived, as the other side saw it."""

    def __init__(self) -> None:
        self.method, self.headers, self.body = "", {}, b""

    def answering(self, answer: Answer) -> Answer:
        def note(handler: BaseHTTPRequestHandler) -> None:
            self.method, self.headers = handler.command, dict(handler.headers)
            self.body = handler.body  # type: ignore[attr-defined]
            answer(handler)

        return note


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def server(seen: Seen, settings: Settings) -> Iterator[Counted]:
    with counting(answer=seen.answering(plainly(201, body=b'{"id": "u_1"}'))) as counted:
        settings.TRUSTED_ENDPOINTS = (counted.url.removeprefix("http://"),)
        yield counted


def outgoing(url: str, *, idempotency: Idempotency = KEY, timeout: float = 5, **send: Any) -> Outgoing:
    return Outgoing(
        action_id="a1", run_id="r1", key="k1", tool="refund", attempt=1,
        arguments={"payment": "p/1", "amount_minor": 500},
        send=Send(connector="fair", **{"path": "/refunds", **send}), connector=Connector(base_url=url),
        idempotency=idempotency, timeout_seconds=timeout,
    )  # fmt: skip


def test_the_arguments_are_the_body_and_the_key_is_in_its_header(server: Counted, seen: Seen) -> None:
    answer = calls.send(outgoing(server.url))
    assert (answer.kind, answer.status, json.loads(answer.body or "")) == ("reply", 201, {"id": "u_1"})
    assert json.loads(seen.body) == {"payment": "p/1", "amount_minor": 500}
    assert (seen.method, seen.headers["Idempotency-Key"]) == ("POST", "k1")
    assert server.arrivals == 1


def test_a_template_fills_path_query_and_body_and_keeps_the_kinds_of_values(server: Counted, seen: Seen) -> None:
    body = {"of": {"id": "{arguments.payment}"}, "minor": "{arguments.amount_minor}", "why": ["undo of {action_id}"]}
    how = {"method": "PUT", "path": "/p/{arguments.payment}", "query": {"ref": "{action_id}"}, "body": body}
    calls.send(outgoing(server.url, **how))
    assert server.paths == ["/p/p%2F1?ref=a1"]
    assert json.loads(seen.body) == {"of": {"id": "p/1"}, "minor": 500, "why": ["undo of a1"]}


def test_a_key_may_be_a_field_of_the_body(server: Counted, seen: Seen) -> None:
    calls.send(outgoing(server.url, idempotency=Idempotency(kind="key", field="request_id")))
    assert json.loads(seen.body)["request_id"] == "k1"


def test_a_get_has_no_body(server: Counted, seen: Seen) -> None:
    calls.send(outgoing(server.url, method="GET"))
    assert (seen.method, seen.body) == ("GET", b"")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_F107_whatever_comes_back_there_was_one_request(settings: Settings, status: int) -> None:
    with counting(status) as server:
        settings.TRUSTED_ENDPOINTS = (server.url.removeprefix("http://"),)
        assert calls.send(outgoing(server.url)).status == status
        assert server.arrivals == 1


@pytest.mark.parametrize(("answer", "kind"), [(drop, "connection_lost"), (cut, "connection_lost")])
def test_F107_a_lost_reply_is_unknown_and_not_asked_for_again(settings: Settings, answer: Answer, kind: str) -> None:
    with counting(answer=answer) as server:
        settings.TRUSTED_ENDPOINTS = (server.url.removeprefix("http://"),)
        assert calls.send(outgoing(server.url)).kind == kind
        assert server.arrivals == 1


def test_F039_a_redirect_is_not_followed(settings: Settings) -> None:
    with counting(answer=plainly(302, {"location": "/elsewhere"})) as server:
        settings.TRUSTED_ENDPOINTS = (server.url.removeprefix("http://"),)
        assert calls.send(outgoing(server.url)).status == 302
        assert server.paths == ["/refunds"]


def test_F040_an_endless_body_is_cut_and_marked(settings: Settings) -> None:
    with counting(answer=plainly(200, body=b"x" * 1_200_000)) as server:
        settings.TRUSTED_ENDPOINTS = (server.url.removeprefix("http://"),)
        answer = calls.send(outgoing(server.url))
    assert (len(answer.body or ""), answer.altered) == (MAX_REPLY_BYTES, True)


def test_F023_a_refused_connection_is_proven_not_sent(settings: Settings) -> None:
    with counting() as server:
        url = server.url
    settings.TRUSTED_ENDPOINTS = (url.removeprefix("http://"),)
    assert calls.send(outgoing(url)).kind == "not_sent"


LONG = "\u00e9" * 12_000


def test_F023_what_makes_no_address_is_proven_not_sent(server: Counted) -> None:
    order = outgoing(server.url, query={"note": "{arguments.note}"})
    observed = calls.send(replace(order, arguments={**order.arguments, "note": LONG}))
    assert (observed.kind, "too long" in (observed.message or ""), server.arrivals) == ("not_sent", True, 0)


def test_F042_a_look_that_makes_no_address_says_so(server: Counted) -> None:
    look = {"path": "/x", "query": {"q": "{arguments.note}"}, "ours": {"id": "a1"}, "external_id": "id"}
    asked = Question("a1", "r1", "k1", {"note": LONG}, Connector(base_url=server.url), Look.model_validate(look))
    found = http.reconcile(asked)
    assert (found.verdict, "too long" in found.fact, server.arrivals) == ("probe_failed", True, 0)


@pytest.mark.parametrize("where", ["/" + "a" * 65_530, "//\x01"])
def test_F039_an_answer_that_points_nowhere_proves_nothing(settings: Settings, where: str) -> None:
    with counting(answer=plainly(302, {"location": where})) as counted:
        settings.TRUSTED_ENDPOINTS = (counted.url.removeprefix("http://"),)
        observed = calls.send(outgoing(counted.url))
    assert (observed.kind, counted.arrivals) == ("connection_lost", 1)


@pytest.mark.parametrize("url", ["http://api.example.org", "https://127.0.0.1", "https://10.0.0.1"])
def test_SEC_19_nothing_is_sent_where_no_look_up_may_go(url: str) -> None:
    answer = calls.send(outgoing(url))
    assert (answer.kind, answer.declared) == ("not_sent", "not_sent")


def test_SEC_20_an_argument_that_is_empty_or_climbs_is_not_sent(server: Counted) -> None:
    for value in ("", ".", ".."):
        asked = replace(outgoing(server.url, path="/p/{arguments.payment}"), arguments={"payment": value})
        assert calls.send(asked).kind == "not_sent"
    assert server.arrivals == 0


def test_SEC_20_a_look_does_not_climb_either() -> None:
    with pytest.raises(Forbidden):
        path_of("/accounts/{arguments.payment}/credits", replace(outgoing("http://x"), arguments={"payment": ".."}))


def test_a_credential_comes_from_the_workers_environment(
    server: Counted, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEADYHAND_SECRET_FAIR", "Bearer quiet-harbour")
    connector = Connector(base_url=server.url, secret_header="Authorization", secret_name="fair")
    calls.send(replace(outgoing(server.url), connector=connector))
    assert seen.headers["Authorization"] == "Bearer quiet-harbour"


# --- what a manifest has to say before the worker may send ---------------------------------------------------------


def faults(**changes: Any) -> dict[str, str]:
    made = stand_manifest()
    made["tools"][1] |= changes
    try:
        Manifest.model_validate(made)
    except ValidationError as wrong:
        return {".".join(map(str, one["loc"])): one["msg"] for one in wrong.errors()}
    return {}


LOOK = {"tool": "refund", "arguments": {"id": "id"}, "state": "state", "succeeded": ["done"]}


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"dispatch": "host"}, "dispatch"),
        ({"completes_by": "callback"}, "completes_by"),
        ({"async_statuses": [202]}, "async_statuses"),
        ({"poll": LOOK}, "poll.tool"),
        ({"send": {"connector": "nobody", "path": "/x"}}, "send.connector"),
        ({"send": {"connector": "fair", "path": "/x", "method": "GET", "body": {}}}, "send.body"),
    ],
)
def test_a_promise_that_cannot_be_kept_is_refused_at_registration(changes: dict[str, Any], place: str) -> None:
    assert list(faults(**changes)) == [f"tools.1.{place}"]


def test_a_manifest_that_keeps_its_promises_is_taken() -> None:
    assert faults() == {}
    assert faults(dispatch="host", send={"connector": "fair", "path": "/pay"}) == {}


@pytest.mark.parametrize("junk", [[1], {"a": 1}, 7, None])
def test_junk_for_a_name_is_a_fault_and_no_accident(junk: Any) -> None:
    assert faults(compensate={"tool": junk, "arguments": {"a": "b"}}) or junk is None
