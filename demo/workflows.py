"""The demo's workflows, as manifests: what each tool promises, and how long its effect may take to show."""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string", "minLength": 1, "maxLength": 200}
MONEY = {"type": "integer", "minimum": 1}


def billing(
    sandbox: str, *, in_flight_seconds: float, lag_seconds: float, first_look_seconds: float
) -> dict[str, Any]:
    """A billing workflow: load the invoice, credit the account, draft the reply.

    The bounds (seconds) say how long after a lost reply a credit may still land, and still be invisible.
    """
    bounds = {
        "max_in_flight_seconds": in_flight_seconds,
        "max_visibility_lag_seconds": lag_seconds,
        "first_look_seconds": first_look_seconds,
    }
    return {
        "title": "Resolve a billing case",
        "tools": [load_invoice(), apply_credit(bounds), draft_reply(bounds), void_credit()],
        "connectors": {
            name: {"kind": "http", "base_url": sandbox, "timeout_seconds": 5} for name in ("payments", "mail")
        },
        "budgets": {"max_turns": 24, "max_tool_calls": 12, "max_attempts_per_step": 3, "max_elapsed_seconds": 86400},
        "required_effects": ["apply_credit", "draft_reply"],
        "owner_team": "Billing support",
        "sla_seconds": 1800,
    }


def load_invoice() -> dict[str, Any]:
    return {
        "name": "load_invoice",
        "effect": "read",
        "title": "Load an invoice",
        "input_schema": _object({"invoice": TEXT}),
        "output_schema": {"type": "object", "required": ["invoice_id", "account", "amount_minor"]},
        "identity_fields": ["invoice_id"],
        "timeout_seconds": 10,
    }


def apply_credit(bounds: dict[str, float]) -> dict[str, Any]:
    return {
        "name": "apply_credit",
        "effect": "write",
        "title": "Credit an account",
        "input_schema": _object({"account": TEXT, "invoice": TEXT, "amount_minor": MONEY, "currency": TEXT}),
        "output_schema": {"type": "object", "required": ["credit_id", "amount_minor"]},
        "identity_fields": ["credit_id"],
        "value_field": "amount_minor",
        "currency_field": "currency",
        "timeout_seconds": 10,
        "error_when": [{"path": "error", "present": True}],
        "compensate": {"tool": "void_credit", "arguments": {"credit": "credit_id"}, "window_seconds": 30 * 86400},
        "reconcile": {
            "connector": "payments",
            "look": {
                "path": "/payments/credits",
                "query": {"action_id": "{action_id}"},
                "items": "items",
                "ours": {"action_id": "{action_id}"},
                "match": {
                    "account": "{arguments.account}",
                    "invoice": "{arguments.invoice}",
                    "amount_minor": "{arguments.amount_minor}",
                    "currency": "{arguments.currency}",
                },
                "external_id": "credit_id",
            },
            **bounds,
        },
    }


def draft_reply(bounds: dict[str, float]) -> dict[str, Any]:
    return {
        "name": "draft_reply",
        "effect": "write",
        "title": "Draft the reply to the customer",
        "input_schema": _object({"to": TEXT, "subject": TEXT, "body": {"type": "string", "maxLength": 4000}}),
        "output_schema": {"type": "object", "required": ["draft_id"]},
        "identity_fields": ["draft_id"],
        "timeout_seconds": 10,
        "reconcile": {
            "connector": "mail",
            "look": {
                "path": "/mail/drafts",
                "query": {"action_id": "{action_id}"},
                "items": "items",
                "ours": {"action_id": "{action_id}"},
                "match": {"to": "{arguments.to}"},
                "external_id": "draft_id",
            },
            **bounds,
        },
    }


def void_credit() -> dict[str, Any]:
    return {
        "name": "void_credit",
        "effect": "write",
        "title": "Void a credit",
        "input_schema": _object({"credit": TEXT}),
        "output_schema": {"type": "object", "required": ["void_id"]},
        "identity_fields": ["void_id"],
        "timeout_seconds": 10,
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }
