"""Sound bodies for every operation; tests break one thing at a time."""

from typing import Any

from tests.api.conftest import RUN

PROPOSAL: dict[str, Any] = {
    "workflow_id": "0196f5b0-0000-7000-8000-000000000002",
    "tool": "billing.credit",
    "arguments": {"customer": "C-1", "amount_minor": 500, "note": "für Ärger 👋"},
    "step": "credit",
}
REPORT: dict[str, Any] = {
    "attempt_id": "0196f5b0-0000-7000-8000-000000000003",
    "fence": 1,
    "observation": {"kind": "reply", "status": 200, "body": "{}"},
}
OPEN: dict[str, Any] = {"workflow": "billing", "client_ref": "case-1", "intent": "Credit the customer."}
MANIFEST: dict[str, Any] = {"tools": [{"name": "billing.credit", "effect": "write"}]}

BODIES: dict[tuple[str, str], Any] = {
    ("PUT", "/workflows/billing"): MANIFEST,
    ("POST", "/runs"): OPEN,
    ("POST", f"/runs/{RUN}/proposals"): PROPOSAL,
    ("POST", f"/runs/{RUN}/reports"): REPORT,
    ("POST", f"/runs/{RUN}/turns"): {"usage": {"input_tokens": 10}},
    ("POST", f"/runs/{RUN}/heartbeats"): {"attempt_id": REPORT["attempt_id"], "fence": 1},
    ("POST", f"/runs/{RUN}/finish"): {"claim": "done"},
    ("POST", f"/runs/{RUN}/cancel"): {"reason": "asked to"},
    ("POST", f"/runs/{RUN}/rollback"): {"reason": "the stand is gone"},
    ("POST", f"/runs/{RUN}/resume"): {"workflow_id": "0196f5b0-0000-7000-8000-000000000002"},
}
BODILESS = [
    ("GET", f"/runs/{RUN}"),
    ("GET", f"/runs/{RUN}/memory"),
    ("GET", "/events"),
    ("GET", "/actions"),
]
