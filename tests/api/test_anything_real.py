"""The same flood against the real record: bent bodies of a real run come to an answer, never to a 500."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.api.conftest import Agent
from tests.api.test_anything import FEW, JSON, places
from tests.api.test_conversation import CREDIT, MANIFEST, alices, open_run, propose, said

__all__ = ["alices"]


def sound(run: dict[str, Any], permit: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Bodies that would be taken, for a run and an attempt that exist."""
    path = f"/runs/{run['run_id']}"
    held = {"attempt_id": permit["attempt_id"], "fence": permit["fence"]}
    proposal = {"workflow_id": run["workflow_id"], "tool": "billing.credit", "arguments": CREDIT, "step": "credit"}
    return {
        ("POST", f"{path}/proposals"): proposal,
        ("POST", f"{path}/reports"): {**held, "observation": {"kind": "reply", "status": 200, "body": '{"id": 1}'}},
        ("POST", f"{path}/turns"): {"usage": {"input_tokens": 1, "cost_minor": 1}, "text": "hm"},
        ("POST", f"{path}/heartbeats"): held,
        ("POST", "/runs"): {
            "workflow": "billing",
            "client_ref": "case-2",
            "intent": "x",
            "scope": {"ids": {"a": ["b"]}},
        },
        ("PUT", "/workflows/billing"): MANIFEST,
        ("POST", f"{path}/resume"): {"workflow_id": run["workflow_id"]},
        ("POST", "/ingest"): told_elsewhere(),
        ("POST", f"{path}/finish"): {"claim": "done"},
        ("POST", f"{path}/cancel"): {"reason": "asked to"},
        ("POST", f"{path}/rollback"): {"reason": "taken back"},
    }


def told_elsewhere() -> list[dict[str, Any]]:
    """One record of each kind, of a run that happened elsewhere."""
    seen = {"kind": "reply", "status": 200, "body": '{"id": 1}'}
    parts: list[dict[str, Any]] = [
        {"kind": "run", "workflow": "billing", "intent": "Credit the customer"},
        {"kind": "turn", "usage": {"input_tokens": 1}},
        {"kind": "call", "step": "credit", "tool": "billing.credit", "arguments": CREDIT, "key": "k-1"},
        {"kind": "dispatch", "step": "credit", "attempt": 1},
        {"kind": "observation", "step": "credit", "attempt": 1, "observation": seen},
        {"kind": "cancel", "reason": "asked to"},
        {"kind": "finish", "claim": "done"},
    ]
    common = {"run": "elsewhere-1", "at": "2026-03-01T09:00:00Z"}
    return [{"id": f"r-{number}", **common, **part} for number, part in enumerate(parts)]


@FEW
@given(data=st.data())
def test_a_bent_body_never_breaks_the_record(data: st.DataObject, alices: Agent) -> None:
    if not hasattr(alices, "run"):
        alices.run = open_run(alices)  # type: ignore[attr-defined]
        alices.permit = said(propose(alices, alices.run))  # type: ignore[attr-defined]
    bodies = sound(alices.run, alices.permit)  # type: ignore[attr-defined]
    # Ending the run would make the rest of the flood trivial; it comes rarely, at the end of the list.
    method, path = data.draw(st.sampled_from([*bodies][:8] * 20 + [*bodies][8:]))
    body = json.loads(json.dumps(bodies[method, path]))
    container, key = data.draw(st.sampled_from(places(body)))
    container[key] = data.draw(JSON | st.text(max_size=5))
    response = alices.send(path, body, method=method)
    assert response.status_code < 500, (method, path, body, response.content)
