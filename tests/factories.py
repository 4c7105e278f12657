"""Tenants, people, agents and runs for tests; every run is driven through recovery.intake, as an agent would."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection
from steadyhand.contract import (
    Finish,
    Observation,
    OpenRun,
    OutcomeDocument,
    Permit,
    Proposal,
    Report,
    Reported,
    Scope,
    Turn,
    Usage,
)
from steadyhand.manifest import Manifest

from recovery import clients, intake, permissions
from recovery.clients import Credentials
from recovery.models import HumanTask
from runs import vault, wall
from runs.ids import new_id
from runs.models import Action, AgentClient, Person, Run, Tenant

PASSWORD = "quiet-harbour-lantern-42"
WORKFLOW = "billing-case"
INVOICE, ACCOUNT, AMOUNT = "INV-20931", "acct_8841", 12_000
SCOPE: dict[str, Any] = {"ids": {"account": [ACCOUNT]}, "max_amount_minor": 15_000, "currency": "EUR"}
CLAIM = "The credit has been applied and the customer is all set."

_TEXT = {"type": "string", "minLength": 1}


@dataclass(frozen=True)
class Agent:
    """A machine with a token for one tenant."""

    tenant: Tenant
    client: AgentClient
    token: str

    @property
    def who(self) -> Credentials:
        return clients.parse_token(self.token)


@dataclass(frozen=True)
class Case:
    """One open run in the hands of its agent."""

    agent: Agent
    run_id: uuid.UUID
    workflow_id: str

    @property
    def tenant(self) -> Tenant:
        return self.agent.tenant

    @property
    def run(self) -> Run:
        with wall.within(self.tenant.pk):
            return Run.objects.select_related("workflow").get(pk=self.run_id)

    def action(self, tool: str = "apply_credit") -> Action:
        with wall.within(self.tenant.pk):
            return Action.objects.filter(run_id=self.run_id, tool=tool).latest("id")

    def task(self, **lookup: Any) -> HumanTask:
        """The latest task of this run that fits."""
        with wall.within(self.tenant.pk):
            return HumanTask.objects.filter(run_id=self.run_id, **lookup).latest("id")


# --- who ----------------------------------------------------------------------------------------------------


def make_tenant(slug: str, name: str = "") -> Tenant:
    tenant = Tenant(pk=new_id(), slug=slug, name=name or slug.capitalize(), sealed_key=vault.new_sealed_key())
    with wall.within(tenant.pk):
        tenant.save(force_insert=True)
    return tenant


def make_person(name: str, tenant: Tenant | None = None, role: str = "support") -> Person:
    """Somebody who can sign in with PASSWORD at <name>@people.example; without a tenant, somebody with no rights."""
    person = Person.objects.create_user(f"{name}@people.example", name.capitalize(), PASSWORD)
    if tenant is not None:
        permissions.grant_role(person, tenant, role)
    return person


def make_client(tenant: Tenant, name: str = "billing-agent") -> Agent:
    with wall.within(tenant.pk):
        client, token = clients.issue_client(tenant=tenant, name=name, workflows=[])
    return Agent(tenant, client, token)


# --- what -----------------------------------------------------------------------------------------------------


def billing_manifest(
    *,
    base_url: str = "http://127.0.0.1:9",
    in_flight_seconds: float | None = 600,
    lag_seconds: float | None = 60,
    first_look_seconds: float = 5,
    max_looks: int = 6,
    idempotency: dict[str, Any] | None = None,
    reconcile: bool = True,
    value_threshold: int | None = None,
    requires_approval: bool = False,
    irreversible: bool = False,
    proof: str = "reply",
    sla_seconds: int = 3600,
    deadline_seconds: float | None = None,
    owner_team: str = "billing-support",
    budgets: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Load an invoice, credit the account, draft the reply; `None` for a bound leaves it undeclared."""
    credit: dict[str, Any] = {
        "name": "apply_credit",
        "effect": "write",
        "title": "Credit an account",
        "version": 3,
        "input_schema": _object(account=_TEXT, invoice=_TEXT, amount_minor={"type": "integer"}, currency=_TEXT),
        "output_schema": {"type": "object", "required": ["credit_id"]},
        "identity_fields": ["credit_id"],
        "value_field": "amount_minor",
        "currency_field": "currency",
        "requires_approval": requires_approval,
        "irreversible": irreversible,
        "proof": proof,
    }
    if idempotency is not None:
        credit["idempotency"] = idempotency
    if not irreversible:
        credit["compensate"] = {
            "tool": "void_credit",
            "arguments": {"credit": "credit_id"},
            "window_seconds": 2592000,
        }
    if reconcile:
        credit["reconcile"] = {
            **_look("payments", "/payments/credits", "credit_id", ("account", "amount_minor", "currency")),
            "max_looks": max_looks,
            "first_look_seconds": first_look_seconds,
            "max_in_flight_seconds": in_flight_seconds,
            "max_visibility_lag_seconds": lag_seconds,
        }
    manifest = {
        "title": "Billing case",
        "tools": [_load_invoice(), credit, _draft_reply(), _void_credit()],
        "connectors": {name: {"kind": "http", "base_url": base_url} for name in ("payments", "mail")},
        "required_effects": ["apply_credit", "draft_reply"],
        "owner_team": owner_team,
        "sla_seconds": sla_seconds,
        "budgets": {"max_turns": 12, "max_tool_calls": 20, "max_attempts_per_step": 3, **(budgets or {})},
    }
    optional = {"value_threshold_minor": value_threshold, "deadline_seconds": deadline_seconds}
    return manifest | {name: value for name, value in optional.items() if value is not None}


def _load_invoice() -> dict[str, Any]:
    return {
        "name": "load_invoice",
        "effect": "read",
        "title": "Load an invoice",
        "input_schema": _object(invoice=_TEXT),
        "output_schema": {"type": "object", "required": ["invoice_id"]},
        "identity_fields": ["invoice_id"],
    }


def _draft_reply() -> dict[str, Any]:
    return {
        "name": "draft_reply",
        "effect": "write",
        "title": "Draft the reply to the customer",
        "input_schema": _object(to=_TEXT, subject=_TEXT, body=_TEXT),
        "output_schema": {"type": "object", "required": ["draft_id"]},
        "identity_fields": ["draft_id"],
        "reconcile": _look("mail", "/mail/drafts", "draft_id", ("to",)),
    }


def _void_credit() -> dict[str, Any]:
    return {"name": "void_credit", "effect": "write", "input_schema": _object(credit=_TEXT)}


def _look(connector: str, path: str, identity: str, fields: tuple[str, ...]) -> dict[str, Any]:
    look = {
        "path": path,
        "query": {"action_id": "{action_id}"},
        "items": "items",
        "ours": {"action_id": "{action_id}"},
        "match": {field: f"{{arguments.{field}}}" for field in fields},
        "external_id": identity,
    }
    return {"connector": connector, "look": look}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": sorted(properties), "additionalProperties": False}


def register(agent: Agent, manifest: dict[str, Any] | None = None, name: str = WORKFLOW) -> None:
    """Store a manifest under a name; the billing manifest with its defaults if none is given."""
    parsed = Manifest.model_validate(manifest or billing_manifest())
    intake.register_workflow(agent.who, name, parsed, request_id="test")


# --- runs, driven ---------------------------------------------------------------------------------------------


def open_run(
    agent: Agent,
    *,
    intent: str = f"Refund the double charge on invoice {INVOICE}",
    ref: str = "",
    workflow: str = WORKFLOW,
    scope: dict[str, Any] | None = None,
    **more: Any,
) -> Case:
    """A run of a workflow that was registered before; `scope={}` grants without limits."""
    granted = Scope(**(SCOPE if scope is None else scope))
    request = OpenRun(workflow=workflow, client_ref=ref or uuid.uuid4().hex, intent=intent, scope=granted, **more)
    opened = intake.open_run(agent.who, request, request_id="test")
    return Case(agent, uuid.UUID(opened.run_id), opened.workflow_id)


def turn(case: Case, input_tokens: int = 900, output_tokens: int = 120) -> None:
    """One turn of the model."""
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    intake.turn(case.agent.who, case.run_id, Turn(usage=usage), request_id="test")


def propose(
    case: Case, tool: str = "apply_credit", arguments: dict[str, Any] | None = None, step: str = ""
) -> Permit:
    proposal = Proposal(
        workflow_id=case.workflow_id, tool=tool, arguments=arguments or ARGUMENTS[tool], step=step or tool
    )
    return intake.propose(case.agent.who, case.run_id, proposal, request_id="test")


def report(case: Case, permit: Permit, observation: Observation, tool: str = "") -> Reported:
    told = Report(
        attempt_id=permit.attempt_id or "", fence=permit.fence or 0, observation=observation, tool=tool or permit.step
    )
    return intake.report(case.agent.who, case.run_id, told, request_id="test")


def finish(case: Case, claim: str = CLAIM) -> OutcomeDocument:
    return intake.finish(case.agent.who, case.run_id, Finish(claim=claim), request_id="test")


ARGUMENTS: dict[str, dict[str, Any]] = {
    "load_invoice": {"invoice": INVOICE},
    "apply_credit": {"account": ACCOUNT, "invoice": INVOICE, "amount_minor": AMOUNT, "currency": "EUR"},
    "draft_reply": {"to": "jo@customers.example", "subject": "Your invoice", "body": "We have credited 120.00 EUR."},
    "void_credit": {"credit": "cr_1"},
}
LETTER: dict[str, Any] = {
    "request": {"tool": "apply_credit", "step": "apply_credit", "arguments": {}, "arguments_hash": "0" * 64},
    "attempts": [{"number": 1, "at": "2026-03-14T10:00:00+00:00", "layer": "agent", "observed": "transient_reject",
                  "reason_code": "provider_unavailable", "status": 503, "latency_ms": 12}],
    "completed_effects": [],
    "failure_class": "retry_exhausted",
    "next_action": "Replay it once.",
    "owner_team": "support",
}  # fmt: skip
"""The least that a dead letter holds."""
RESULTS: dict[str, dict[str, Any]] = {
    "load_invoice": {"invoice_id": INVOICE, "account": ACCOUNT},
    "apply_credit": {"credit_id": "cr_1", "amount_minor": AMOUNT},
    "draft_reply": {"draft_id": "dr_1"},
    "void_credit": {"void_id": "vo_1"},
}


def reply(
    body: Any, *, status: int = 200, latency_ms: int = 210, headers: dict[str, str] | None = None
) -> Observation:
    text = json.dumps(body)
    return Observation(
        kind="reply", status=status, headers=headers or {}, body=text, body_bytes=len(text), latency_ms=latency_ms
    )


def timed_out(bytes_sent: int = 842, latency_ms: int = 30_000) -> Observation:
    return Observation(kind="timeout", bytes_sent=bytes_sent, latency_ms=latency_ms)


def succeed(case: Case, tool: str = "apply_credit") -> Reported:
    """One call that comes back well."""
    return report(case, propose(case, tool), reply(RESULTS[tool]))


def lose_the_reply(case: Case, tool: str = "apply_credit") -> HumanTask:
    """The call is sent in full and no answer comes: its outcome is unknown. Returns the task that this opens."""
    report(case, propose(case, tool), timed_out())
    return case.task()


def rate_limit(case: Case, tool: str = "load_invoice", retry_after: int = 30) -> Reported:
    limited = reply({"error": "busy"}, status=429, headers={"retry-after": str(retry_after)})
    return report(case, propose(case, tool), limited)


def refuse(case: Case, tool: str = "apply_credit", status: int = 422) -> Reported:
    return report(case, propose(case, tool), reply({"error": {"code": "invoice_closed"}}, status=status))


def complete(agent: Agent, **more: Any) -> Case:
    """A whole untroubled run."""
    case = open_run(agent, **more)
    for tool in ("load_invoice", "apply_credit", "draft_reply"):
        turn(case)
        succeed(case, tool)
    finish(case)
    return case


def unknown_credit(agent: Agent, **more: Any) -> Case:
    """The story of the product: the invoice was read, the credit was sent, and nobody knows whether it landed."""
    case = open_run(agent, **more)
    turn(case)
    succeed(case, "load_invoice")
    turn(case)
    lose_the_reply(case)
    return case


# --- time -----------------------------------------------------------------------------------------------------


def advance_clock(**shift: float) -> None:
    """Move the database's clock forward for the current transaction (a django_db test), e.g. `minutes=11`.

    Where other connections must see the new time (fresh_database), shift `rehearsal_clock` as the owner instead.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('app.now', (app_now() + %s)::text, true)", [timedelta(**shift)])
