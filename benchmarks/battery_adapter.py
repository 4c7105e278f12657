"""Steadyhand in the battery: the naive tool behind `run.call` (basic), or sent by our own worker (full).

One order is one run, found again by its reference, so any process that comes later goes on where the record stands.
The world ignores keys unless it is told to honour them, so what proves an effect is a counting look at its list.
"""

import os

from steadyhand import Boundary, Refused, Stopped, Suspended, Tool

IN_FLIGHT_SECONDS, LAG_SECONDS = 4, 0.3  # the world commits at most three seconds after it has cut the connection
WORKFLOW = "charges"


def manifest(dispatch):
    look = {
        "path": "/find",
        "query": {"order": "{arguments.order}"},
        "items": "found",
        "ours": {"order": "{arguments.order}"},
        "match": {"amount": "{arguments.amount}"},
        "external_id": "id",
    }
    charge = {
        "name": "charge", "effect": "write", "proof": "look", "timeout_seconds": 2, "once_per": ["order"],
        "input_schema": {"type": "object", "required": ["order", "amount"],
                         "properties": {"order": {"type": "string"}, "amount": {"type": "integer"}}},
        "output_schema": {"type": "object", "required": ["id", "amount"]}, "identity_fields": ["id"],
        "error_when": [{"path": "error", "nonempty": True}],
        "idempotency": {"kind": "key", "header": "Idempotency-Key", "retention_seconds": 86400,
                        "compares_arguments": False},
        "reconcile": {"connector": "world", "look": look, "first_look_seconds": 0, "max_looks": 20,
                      "max_in_flight_seconds": IN_FLIGHT_SECONDS, "max_visibility_lag_seconds": LAG_SECONDS},
        "dispatch": dispatch, "send": {"connector": "world", "path": "/charge"},
    }  # fmt: skip
    return {
        "tools": [charge],
        "connectors": {"world": {"base_url": os.environ["BATTERY_WORLD"], "timeout_seconds": 2}},
        "budgets": {"max_tool_calls": 100, "max_turns": 100},
    }


class Guard:
    def __init__(self, state, charge, find, full):
        self.boundary = Boundary(os.environ["STEADYHAND_URL"], os.environ["STEADYHAND_TOKEN"], max_wait=20)
        self.charge, self.workflow = charge, f"{WORKFLOW}-{'full' if full else 'basic'}"
        self.boundary.register(self.workflow, manifest("host" if full else "agent"))

    def run(self, order):
        ref = f"{self.workflow}/{order}"
        return self.boundary.run(workflow=self.workflow, intent=f"Charge {order}", client_ref=ref)

    def call(self, order, amount):
        def charge(arguments, call):
            return self.charge(arguments["order"], arguments["amount"], call.idempotency_key)

        run = self.run(order)
        try:
            return run.call(Tool("charge", charge), {"order": order, "amount": amount})
        finally:
            run.close()

    def is_unknown(self, error):
        return isinstance(error, (Suspended, Stopped)) and not isinstance(error, Refused)

    def recover(self, order):
        """Nothing to do: the worker looks by itself. What the record says now."""
        document = self.run(order).outcome()
        return {"state": document.state, "outcome": document.outcome, "reason": document.reason_code}
