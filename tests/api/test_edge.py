"""The way in: who is asked, what an id is, and how every refusal looks."""

import json
import uuid
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import OperationalError
from django.test import Client
from steadyhand.identity import BadInput

from recovery.intake import Conflict, NotAuthenticated, NotFound
from tests.api.bodies import BODIES, BODILESS, MANIFEST, OPEN, PROPOSAL
from tests.api.conftest import RUN, TOKEN, Agent, Notes, problem

EVERY = [*BODIES, *BODILESS]
PROPOSALS = f"/runs/{RUN}/proposals"


@pytest.mark.parametrize(("method", "path"), EVERY)
def test_every_operation_calls_intake_once_and_answers_json(
    method: str, path: str, agent: Agent, notes: Notes
) -> None:
    response = agent.send(path, BODIES.get((method, path), b""), method=method)
    assert response.status_code in (200, 201)
    assert response.headers["Content-Type"] == "application/json"
    [(_, args, kwargs)] = notes.calls
    assert args[0].__class__.__name__ == "Credentials"
    assert kwargs.get("request_id", response.headers["X-Request-Id"]) == response.headers["X-Request-Id"]


def test_what_is_unknown_is_left_out_but_a_recorded_null_stays(agent: Agent, notes: Notes) -> None:
    answer = json.loads(agent.post(PROPOSALS, PROPOSAL).content)
    assert answer == {"answer": "execute", "run_id": RUN, "step": "credit", "result": {"nothing": None}}


@pytest.mark.security
@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer sh_1_2_3", f"Basic {TOKEN}", TOKEN, "Bearer é"])
@pytest.mark.parametrize(("method", "path"), EVERY)
def test_SEC17_without_a_token_nothing_is_read(
    header: str, method: str, path: str, agent: Agent, notes: Notes
) -> None:
    response = agent.send(path, b"{", method=method, headers={"authorization": header})
    problem(response, 401)
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="steadyhand"'
    assert notes.calls == []


@pytest.mark.security
def test_SEC10_a_session_opens_nothing_and_is_not_even_looked_at(notes: Notes) -> None:
    browser = Client(raise_request_exception=False)
    browser.cookies[settings.SESSION_COOKIE_NAME] = "x" * 32
    response = browser.post(f"/api/v1{PROPOSALS}", json.dumps(PROPOSAL), content_type="application/json")
    problem(response, 401)
    assert not response.cookies
    assert "Cookie" not in response.headers.get("Vary", "")


@pytest.mark.security
def test_SEC11_a_form_of_another_site_finds_no_way_in_and_a_token_needs_no_csrf(notes: Notes) -> None:
    strict = Client(enforce_csrf_checks=True, headers={"authorization": f"Bearer {TOKEN}"})
    response = strict.post(f"/api/v1{PROPOSALS}", json.dumps(PROPOSAL), content_type="application/json")
    assert response.status_code == 200


@pytest.mark.security
@pytest.mark.parametrize("ident", ["1", "x" * 300, "%00", RUN[:-1], f"{RUN}0", "..", "%27%20or%201=1"])
@pytest.mark.parametrize(("method", "tail"), [("GET", ""), ("POST", "/proposals"), ("POST", "/resume")])
def test_a_malformed_id_is_as_missing_as_a_foreign_one(
    ident: str, method: str, tail: str, agent: Agent, notes: Notes
) -> None:
    notes.fails = NotFound()
    missing = agent.send(f"/runs/{uuid.uuid4()}{tail}", PROPOSAL if tail == "/proposals" else b"", method=method)
    problem(missing, 404)
    malformed = agent.send(f"/runs/{ident}{tail}", PROPOSAL if tail == "/proposals" else b"", method=method)
    assert (malformed.status_code, malformed.content) == (404, missing.content)


@pytest.mark.parametrize("path", ["/", "/nothing", "/runs/", f"/runs/{RUN}/", f"/runs/{RUN}/secrets"])
def test_an_unknown_address_is_a_problem_not_a_page(path: str, agent: Agent, notes: Notes) -> None:
    problem(agent.get(path), 404)


def test_a_wrong_method_names_the_right_one(agent: Agent, notes: Notes) -> None:
    response = agent.get(PROPOSALS)
    problem(response, 405)
    assert response.headers["Allow"] == "POST"


@pytest.mark.parametrize("name", ["Billing", "9", "a" * 81, "b%20c", "b%00"])
def test_a_workflow_has_a_plain_name(name: str, agent: Agent, notes: Notes) -> None:
    assert "use the form" in problem(agent.put(f"/workflows/{name}", MANIFEST), 422)["name"]


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("limit=0", "limit", "1 or more"),
        ("limit=501", "limit", "500 or less"),
        ("limit=ten", "limit", "whole number"),
        ("limit=1e2", "limit", "whole number"),
        ("limit=" + "9" * 5000, "limit", ""),
        ("after=yesterday", "after", "the id"),
        ("afer=" + RUN, "afer", "remove this parameter"),
        ("limit=1&limit=2", "limit", "once"),
    ],
)
def test_a_query_is_checked_too(query: str, field: str, words: str, agent: Agent, notes: Notes) -> None:
    assert words in problem(agent.get(f"/events?{query}"), 422)[field]
    assert notes.calls == []


def test_a_page_of_events_is_asked_for_by_id_and_size(agent: Agent, notes: Notes) -> None:
    assert agent.get(f"/events?after={RUN}&limit=500").status_code == 200
    assert notes.calls[0][2] == {"after": uuid.UUID(RUN), "limit": 500}


def test_too_many_query_parameters_are_a_bad_request(agent: Agent, notes: Notes) -> None:
    problem(agent.get("/events?" + "&".join(f"a{n}=1" for n in range(600))), 400)


REFUSALS: list[tuple[Exception, int]] = [
    (NotAuthenticated(), 401),
    (NotFound(), 404),
    (Conflict("The run has ended."), 409),
    (BadInput("arguments.lines[2].id", "send text"), 422),
    (OperationalError("secret dsn"), 503),
    (psycopg.OperationalError("secret dsn"), 503),
    (psycopg.errors.AdminShutdown("secret dsn"), 503),
    (RuntimeError("secret detail"), 500),
    (TypeError("f() missing 1 required positional argument: 'secret'"), 500),
]


@pytest.mark.parametrize(("error", "status"), REFUSALS)
def test_every_error_of_intake_has_one_answer(error: Exception, status: int, agent: Agent, notes: Notes) -> None:
    notes.fails = error
    response = agent.post(PROPOSALS, PROPOSAL)
    problem(response, status)
    assert b"secret" not in response.content


def test_a_conflict_is_told_in_its_own_words(agent: Agent, notes: Notes) -> None:
    notes.fails = Conflict("The run has ended.")
    assert json.loads(agent.post(PROPOSALS, PROPOSAL).content)["detail"] == "The run has ended."


def test_a_fault_found_by_intake_has_the_same_kind_of_path(agent: Agent, notes: Notes) -> None:
    notes.fails = BadInput("arguments.lines[2].id", "send text")
    assert problem(agent.post(PROPOSALS, PROPOSAL), 422) == {"arguments.lines.2.id": "send text"}


def test_a_database_that_is_away_says_when_to_come_back(agent: Agent, notes: Notes) -> None:
    notes.fails = psycopg.OperationalError("connection refused")
    assert agent.post(PROPOSALS, PROPOSAL).headers["Retry-After"] == "2"


def test_our_own_fault_is_an_id_outside_and_a_trace_inside(
    agent: Agent, notes: Notes, caplog: pytest.LogCaptureFixture
) -> None:
    notes.fails = RuntimeError("the pepper is 4711")
    response = agent.post(PROPOSALS, PROPOSAL)
    ident = json.loads(response.content)["request_id"]
    assert ident == response.headers["X-Request-Id"]
    assert b"4711" not in response.content
    assert ident in caplog.text
    assert "RuntimeError" in caplog.text


@pytest.mark.parametrize("ident", ["abc-1.2_Z", "x" * 64])
def test_a_plain_request_id_is_kept(ident: str, agent: Agent, notes: Notes) -> None:
    response = agent.post("/runs", OPEN, headers={"x-request-id": ident})
    assert response.headers["X-Request-Id"] == ident
    assert notes.calls[0][2] == {"request_id": ident}


@pytest.mark.parametrize("ident", ["", "x" * 65, "a b", "ü", "a\tb", "a;b", "a\n"])
def test_any_other_request_id_is_replaced(ident: str, agent: Agent, notes: Notes) -> None:
    response = agent.post("/runs", OPEN, headers={"x-request-id": ident})
    assert uuid.UUID(response.headers["X-Request-Id"]).version == 4


def test_a_foreign_host_name_is_refused(agent: Agent, notes: Notes) -> None:
    problem(agent.post("/runs", OPEN, HTTP_HOST="evil.example.org"), 400)


@pytest.mark.security
@pytest.mark.parametrize(("path", "status"), [("/ping", 200), ("/nothing", 404), ("/openapi.json", 200)])
def test_SEC12_SEC13_every_answer_carries_the_headers(path: str, status: int, agent: Agent) -> None:
    response = agent.get(path)
    assert response.status_code == status
    assert response.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def openapi(agent: Agent) -> Any:
    return json.loads(agent.get("/openapi.json").content)


def test_the_openapi_document_knows_every_body_and_answer(agent: Agent) -> None:
    document = openapi(agent)
    listed = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    expected = {(m, "/api/v1" + p.replace(RUN, "{run_id}").replace("billing", "{name}")) for m, p in EVERY}
    elsewhere = {("POST", "/api/v1/callbacks/{tenant}/{source}"), ("POST", "/api/v1/ingest")}
    assert listed == expected | elsewhere | {("GET", "/api/v1/ping")}
    proposal = document["paths"]["/api/v1/runs/{run_id}/proposals"]["post"]
    body = proposal["requestBody"]["content"]["application/json"]["schema"]
    assert body["$ref"].endswith("/Proposal")
    assert proposal["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith("/Permit")
    assert proposal["security"] == [{"AgentToken": []}]
    assert {"Proposal", "Permit", "Observation", "Manifest"} <= set(document["components"]["schemas"])


def test_the_reference_is_a_page_without_scripts_from_elsewhere(agent: Agent) -> None:
    response = agent.get("/docs")
    page = response.content.decode()
    assert response.status_code == 200
    assert "/api/v1/runs/{run_id}/proposals" in page
    assert 'href="#Proposal"' in page
    assert 'id="Proposal"' in page
    assert "http://" not in page
    assert "https://" not in page
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
