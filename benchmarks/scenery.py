"""An ordinary tenant with one agent and one workflow: what a call passes through when nothing is wrong."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

from steadyhand.contract import Manifest, Observation, OpenRun, Scope

from recovery import intake
from recovery.clients import Credentials, issue_client, parse_token
from runs import vault, wall
from runs.models import Tenant

WORKFLOW = "billing"
TOOL = "billing.credit"
MANIFEST = Manifest.model_validate(
    {
        "title": "Billing corrections",
        "tools": [
            {
                "name": TOOL,
                "effect": "write",
                "input_schema": {
                    "type": "object",
                    "required": ["customer", "amount_minor", "currency", "note"],
                    "additionalProperties": False,
                    "properties": {
                        "customer": {"type": "string", "maxLength": 60},
                        "invoice": {"type": "string", "maxLength": 60},
                        "amount_minor": {"type": "integer", "minimum": 1},
                        "currency": {"type": "string", "enum": ["EUR", "USD"]},
                        "note": {"type": "string", "maxLength": 400},
                    },
                },
                "output_schema": {
                    "type": "object",
                    "required": ["id", "status"],
                    "properties": {"id": {"type": "string"}, "status": {"type": "string"}, "ok": {"type": "boolean"}},
                },
                "identity_fields": ["id"],
                "idempotency": {"kind": "key", "header": "Idempotency-Key", "retention_seconds": 86400},
                "value_field": "amount_minor",
                "currency_field": "currency",
                "timeout_seconds": 10,
            }
        ],
        "budgets": {"max_tool_calls": 10000},
    }
)
LOOKED_UP = Manifest.model_validate(
    {
        **MANIFEST.model_dump(mode="json", exclude_defaults=True),
        "tools": [
            {
                **MANIFEST.tools[0].model_dump(mode="json", exclude_defaults=True, exclude={"idempotency"}),
                "reconcile": {
                    "connector": "payments",
                    "look": {
                        "path": "/credits",
                        "items": "items",
                        "ours": {"reference": "{action_id}"},
                        "match": {"amount": "{arguments.amount_minor}"},
                        "external_id": "id",
                    },
                    "first_look_seconds": 1800,
                    "max_in_flight_seconds": 600,
                    "max_visibility_lag_seconds": 60,
                },
            }
        ],
        "connectors": {"payments": {"kind": "http", "base_url": "http://127.0.0.1:9"}},
        "budgets": {"max_tool_calls": 10000, "max_elapsed_seconds": 864000},
    }
)
"""The same tool without a key: what a look-up says is all that can settle a call whose answer was lost."""
NOTE = "The May invoice was charged twice; the customer was told that it is corrected."
SCOPE = Scope(ids={"customer": ["cus_000123"]}, max_amount_minor=10_000, currency="EUR")


@dataclass(frozen=True)
class Scenery:
    """Who calls, and under which registered workflow."""

    token: str
    who: Credentials
    workflow_id: uuid.UUID

    def open_run(self) -> uuid.UUID:
        """A new run of the workflow, with a scope that its calls are checked against."""
        request = OpenRun(workflow=WORKFLOW, client_ref=uuid.uuid4().hex, intent="Credit a customer.", scope=SCOPE)
        return uuid.UUID(intake.open_run(self.who, request, request_id="bench").run_id)


def build(manifest: Manifest = MANIFEST) -> Scenery:
    """Write the scenery into the migrated database."""
    tenant = Tenant(slug="bench", name="Bench", sealed_key=vault.new_sealed_key())
    with wall.within(tenant.pk):
        tenant.save()
        _, token = issue_client(tenant=tenant, name="agent", workflows=[])
    who = parse_token(token)
    workflow, _ = intake.register_workflow(who, WORKFLOW, manifest, request_id="bench")
    return Scenery(token, who, workflow.pk)


def arguments(number: int) -> dict[str, Any]:
    """Arguments of ordinary size, different for every call."""
    return {
        "customer": "cus_000123",
        "invoice": f"in_{number:06d}",
        "amount_minor": 4200,
        "currency": "EUR",
        "note": NOTE,
    }


def reply(number: int) -> dict[str, Any]:
    """What the tool answers: it does nothing, so that the boundary alone is measured."""
    return {"id": f"re_{number:06d}", "status": "succeeded", "ok": True}


def observation(number: int) -> Observation:
    return Observation(kind="reply", status=200, body=json.dumps(reply(number)), latency_ms=3)
