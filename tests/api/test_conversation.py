"""Agents and the real record: a whole conversation over HTTP, and what bad input leaves behind, which is nothing."""

import json
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import close_old_connections, connection
from django.test.utils import CaptureQueriesContext

from recovery.clients import issue_client
from runs import hot, vault, wall
from runs.models import AgentClient, Tenant
from runs.querysets import read_clock
from tests.api.bodies import BODIES, BODILESS
from tests.api.conftest import RUN, Agent, problem

MANIFEST: dict[str, Any] = {
    "title": "Billing",
    "tools": [
        {
            "name": "billing.credit",
            "effect": "write",
            "proof": "reply",
            "identity_fields": ["id"],
            "value_field": "amount_minor",
            "currency": "EUR",
        },
        {"name": "crm.read", "effect": "read"},
    ],
}
CREDIT = {"customer": "C-1", "amount_minor": 500}
TABLES = (
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace "
    "AND (relname LIKE 'runs_%' OR relname LIKE 'recovery_%') ORDER BY relname"
)


def hire(slug: str, **changes: Any) -> Agent:
    """An agent of a tenant of its own, known to the record."""
    tenant = Tenant(slug=slug, name=slug.title(), sealed_key=vault.new_sealed_key())
    with wall.within(tenant.pk):
        tenant.save(force_insert=True)
        client, token = issue_client(tenant=tenant, name=f"{slug}-agent", workflows=[], days=30)
        AgentClient.objects.filter(pk=client.pk).update(**changes)
    return Agent(token)


@pytest.fixture
def alices(fresh_database: str) -> Agent:
    return hire("alice")


@pytest.fixture
def charlies(fresh_database: str) -> Agent:
    return hire("charlie")


def said(response: Any, status: int = 200) -> dict[str, Any]:
    assert response.status_code == status, response.content
    answer: dict[str, Any] = json.loads(response.content)
    return answer


def open_run(agent: Agent) -> dict[str, Any]:
    said(agent.put("/workflows/billing", MANIFEST), 201)
    return said(agent.post("/runs", {"workflow": "billing", "client_ref": "case-1", "intent": "Credit."}), 201)


def propose(agent: Agent, run: dict[str, Any], **changes: Any) -> Any:
    body = {"workflow_id": run["workflow_id"], "tool": "billing.credit", "arguments": CREDIT, "step": "credit"}
    return agent.post(f"/runs/{run['run_id']}/proposals", {**body, **changes})


def report(agent: Agent, permit: dict[str, Any], body: dict[str, Any], **changes: Any) -> Any:
    observation = {"kind": "reply", "status": 200, "body": json.dumps(body), "latency_ms": 12}
    told = {"attempt_id": permit["attempt_id"], "fence": permit["fence"], "observation": observation}
    return agent.post(f"/runs/{permit['run_id']}/reports", {**told, "tool": "billing.credit", **changes})


def test_an_agent_registers_opens_proposes_reports_and_finishes(alices: Agent) -> None:
    version = said(alices.put("/workflows/billing", MANIFEST), 201)
    assert said(alices.put("/workflows/billing", MANIFEST), 200) == version
    wish = {"workflow": "billing", "client_ref": "case-1", "intent": "Credit."}
    run = said(alices.post("/runs", wish), 201)
    assert said(alices.post("/runs", wish), 200)["run_id"] == run["run_id"]
    path = f"/runs/{run['run_id']}"

    assert said(alices.post(f"{path}/turns", {"usage": {"input_tokens": 10, "output_tokens": 5}}))["answer"] == "go"
    permit = said(propose(alices, run))
    assert permit["answer"] == "execute"
    beat = {"attempt_id": permit["attempt_id"], "fence": permit["fence"]}
    assert "lease_until" in said(alices.post(f"{path}/heartbeats", beat))
    told = said(report(alices, permit, {"id": "cr_1", "note": None}))
    assert (told["answer"], told["result"]) == ("result", {"id": "cr_1", "note": None})
    replay = said(propose(alices, run))
    assert (replay["answer"], replay["result"]) == ("replay", {"id": "cr_1", "note": None})

    assert [step["step"] for step in said(alices.post(f"{path}/resume", b""))["steps"]] == ["credit"]
    outcome = said(alices.post(f"{path}/finish", {"claim": "The credit is booked."}))
    assert (outcome["outcome"], outcome["completed_effects"]) == ("ok", ["credit"])
    assert said(alices.get(path)) == outcome
    assert said(alices.get("/actions"))["items"][0]["effect"] == "proven"

    page = said(alices.get("/events?limit=2"))
    later = said(alices.get(f"/events?after={page['next']}"))
    assert len(page["items"]) == 2
    assert not {item["id"] for item in page["items"]} & {item["id"] for item in later["items"]}
    assert later["items"][-1]["kind"] == "completed"


def test_a_run_can_be_cancelled(alices: Agent) -> None:
    run = open_run(alices)
    outcome = said(alices.post(f"/runs/{run['run_id']}/cancel", {"reason": "The customer called."}))
    assert outcome["outcome"] == "cancelled"


@pytest.mark.security
def test_SEC09_another_tenants_run_does_not_exist(alices: Agent, charlies: Agent) -> None:
    run = open_run(alices)["run_id"]
    missing = charlies.get(f"/runs/{uuid.uuid4()}").content
    for method, path in [*BODIES, *BODILESS]:
        if RUN in path:
            body = BODIES.get((method, path), b"")
            response = charlies.send(path.replace(RUN, run), body, method=method)
            assert (path, response.status_code, response.content) == (path, 404, missing)
    assert said(charlies.get("/events")) == {"items": []}
    assert said(charlies.get("/actions")) == {"items": []}


@pytest.mark.security
@pytest.mark.parametrize("change", ["revoked_at", "expires_at", "secret_hash"])
def test_SEC17_a_token_that_no_longer_holds_opens_nothing(change: str, fresh_database: str) -> None:
    with wall.within():
        ended = read_clock() - timedelta(seconds=1)
    agent = hire("alice", **{change: b"\0" * 32 if change == "secret_hash" else ended})
    for method, path in [*BODIES, *BODILESS]:
        response = agent.send(path, BODIES.get((method, path), b""), method=method)
        assert (path, response.status_code) == (path, 401)


@pytest.fixture
def counted(dsn_super: str) -> Iterator[Any]:
    """Rows of every table of ours, as nobody's wall hides them."""
    with psycopg.connect(dsn_super, autocommit=True) as session:
        tables = [name for (name,) in session.execute(TABLES).fetchall()]

        def count() -> dict[str, int]:
            return {name: session.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}

        yield count


def faulty(run: dict[str, Any]) -> dict[str, tuple[str, str, Any, int, str]]:
    """Bad input of every sort: (method, path, body, status, the field that is named)."""
    path = f"/runs/{run['run_id']}"
    proposal = {"workflow_id": run["workflow_id"], "tool": "billing.credit", "arguments": CREDIT, "step": "credit"}

    def bent(**changes: Any) -> Any:
        return "POST", f"{path}/proposals", {**proposal, **changes}

    def raw(arguments: bytes) -> Any:
        body = (
            json.dumps({**proposal, "arguments": 0}).encode().replace(b'"arguments": 0', b'"arguments": ' + arguments)
        )
        return "POST", f"{path}/proposals", body

    wish = {"workflow": "billing", "client_ref": "case-2", "intent": "Credit."}
    three = {"tools": [{"name": "x", "effect": "maybe", "colour": 1, "poll": "nobody"}]}
    return {
        "unknown field": (*bent(colour="red"), 422, "colour"),
        "duplicate field": (*raw(b'{"customer": "a", "customer": "b"}'), 400, "arguments.customer"),
        "NUL": (*raw(b'{"customer": "\\u0000"}'), 400, "arguments.customer"),
        "lone surrogate": (*raw(b'{"customer": "\\ud83d"}'), 400, "arguments.customer"),
        "depth": (*raw(b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}"), 400, "body"),
        "size": (*bent(step="x" * 300_000), 413, "body"),
        "19 digits": (*raw(b'{"customer": 1234567890123456789}'), 400, "arguments.customer"),
        "NaN": (*raw(b'{"amount_minor": NaN}'), 400, "arguments.amount_minor"),
        "no step name": (*bent(step=""), 422, "step"),
        "naive time": ("POST", "/runs", {**wish, "deadline_at": "2026-03-01T09:00:00"}, 422, "deadline_at"),
        "negative money": (
            "POST",
            "/runs",
            {**wish, "scope": {"max_amount_minor": -1}},
            422,
            "scope.max_amount_minor",
        ),
        "float money": ("POST", "/runs", {**wish, "scope": {"max_amount_minor": 0.5}}, 422, "scope.max_amount_minor"),
        "three faults": ("PUT", "/workflows/other", three, 422, "tools.0.poll"),
        "a schema that is none": (
            "PUT",
            "/workflows/other",
            {"tools": [{"name": "x", "effect": "read", "input_schema": {"type": 7}}]},
            422,
            "tools.0.input_schema",
        ),
        "no claim": ("POST", f"{path}/finish", {"claim": 5}, 422, "claim"),
        "no reason": ("POST", f"{path}/cancel", {"reason": ""}, 422, "reason"),
        "negative tokens": ("POST", f"{path}/turns", {"usage": {"input_tokens": -1}}, 422, "usage.input_tokens"),
    }


@pytest.mark.security
def test_bad_input_names_field_and_remedy_and_stores_nothing(alices: Agent, counted: Any) -> None:
    run = open_run(alices)
    before = counted()
    for name, (method, path, body, status, field) in faulty(run).items():
        faults = problem(alices.send(path, body, method=method), status)
        assert field in faults, name
        assert faults[field], name
    assert counted() == before


def test_negative_and_float_money_in_a_call_is_never_permitted(alices: Agent, counted: Any) -> None:
    run = open_run(alices)
    for number, amount in enumerate([-1, 0.5, "500"]):
        arguments = {"customer": "C-1", "amount_minor": amount}
        permit = said(propose(alices, run, arguments=arguments, step=f"credit {number}"))
        assert permit["answer"] == "deny"
        assert permit["error"]["field"]
    assert counted()["runs_attempt"] == 0


def test_a_proposal_and_a_report_run_their_one_statement_and_nothing_else(
    alices: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No session, no user, no savepoint: whatever Django would send is counted, and it sends nothing."""
    run = open_run(alices)
    hot_statements: list[str] = []
    round_trip = hot._round_trip

    def noted(statement: str, params: dict[str, Any]) -> Any:
        hot_statements.append("permit" if statement is hot.PERMIT else "settle")
        return round_trip(statement, params)

    monkeypatch.setattr(hot, "_round_trip", noted)
    with CaptureQueriesContext(connection) as others:
        permit = said(propose(alices, run))
        assert said(report(alices, permit, {"id": "cr_1"}))["answer"] == "result"
    assert [query["sql"] for query in others.captured_queries] == []
    assert hot_statements == ["permit", "settle"]


def test_a_database_that_goes_away_is_a_503_and_comes_back(alices: Agent, dsn_super: str) -> None:
    run = open_run(alices)
    assert said(propose(alices, run))["answer"] == "execute"
    with psycopg.connect(dsn_super, autocommit=True) as session:
        session.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    response = propose(alices, run, step="second")
    problem(response, 503)
    assert response.headers["Retry-After"] == "2"
    # The test client leaves out what ends every request on a server.
    close_old_connections()
    assert said(propose(alices, run, step="third", arguments={"customer": "C-2"}))["answer"] == "execute"
