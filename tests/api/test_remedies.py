"""Every fault that a model finds is told at once, in our words, without the values that were sent."""

from typing import Any

import pytest

from tests.api.bodies import BODIES, MANIFEST, OPEN, PROPOSAL, REPORT
from tests.api.conftest import RUN, Agent, Notes, problem


def test_a_manifest_with_three_faults_reports_all_three(agent: Agent, notes: Notes) -> None:
    tools = [
        {"name": "a", "effect": "sometimes"},
        {"name": "b", "effect": "read", "value_field": "amount", "input_schema": 7},
        {"name": "c", "effect": "write", "proof": "look", "after": ["nobody"]},
    ]
    faults = problem(agent.put("/workflows/billing", {"tools": tools}), 422)
    assert faults["tools.0.effect"] == "send 'read' or 'write'"
    assert faults["tools.2.proof"] == "proof look needs a reconcile look-up"
    assert faults["tools.2.after.0"] == "nobody is not a declared tool"
    assert "tools.1.input_schema" in faults
    assert notes.calls == []


def tool(**extra: Any) -> dict[str, Any]:
    return {"tools": [{**MANIFEST["tools"][0], **extra}]}


BAD = {
    "an unknown field": ("/runs", {**OPEN, "colour": "red"}, "colour", "remove this field"),
    "an unknown field below": ("/runs", {**OPEN, "scope": {"colour": 1}}, "scope.colour", "remove this field"),
    "a missing field": ("/runs", {"workflow": "billing", "intent": "x"}, "client_ref", "add this field"),
    "a naive time": ("/runs", {**OPEN, "deadline_at": "2026-03-01T09:00:00"}, "deadline_at", "offset from UTC"),
    "a date": ("/runs", {**OPEN, "deadline_at": "2026-03-01"}, "deadline_at", "offset from UTC"),
    "a time as number": ("/runs", {**OPEN, "deadline_at": 1772355600}, "deadline_at", "offset from UTC"),
    "negative money": ("/runs", {**OPEN, "scope": {"max_amount_minor": -1}}, "scope.max_amount_minor", "0 or more"),
    "float money": ("/runs", {**OPEN, "scope": {"max_amount_minor": 1.5}}, "scope.max_amount_minor", "whole number"),
    "whole float money": ("/runs", {**OPEN, "scope": {"max_amount_minor": 5.0}}, "scope.max_amount_minor", "whole"),
    "money as text": ("/runs", {**OPEN, "scope": {"max_amount_minor": "5"}}, "scope.max_amount_minor", "whole"),
    "a small currency": ("/runs", {**OPEN, "scope": {"currency": "eur"}}, "scope.currency", "use the form"),
    "a bad key": ("/runs", {**OPEN, "scope": {"ids": {"Bad Key": []}}}, "scope.ids.Bad Key", "rename this field"),
    "an empty intent": ("/runs", {**OPEN, "intent": ""}, "intent", "at least 1 character"),
    "a long intent": ("/runs", {**OPEN, "intent": "x" * 2001}, "intent", "at most 2000"),
    "a number for text": ("/runs", {**OPEN, "intent": 5}, "intent", "send text"),
    "a list for an object": (f"/runs/{RUN}/proposals", {**PROPOSAL, "arguments": []}, "arguments", "an object"),
    "a fence as text": (f"/runs/{RUN}/reports", {**REPORT, "fence": "1"}, "fence", "whole number"),
    "a truth as text": (
        f"/runs/{RUN}/reports",
        {**REPORT, "observation": {"kind": "reply", "altered": "yes"}},
        "observation.altered",
        "true or false",
    ),
    "an unknown kind": (
        f"/runs/{RUN}/reports",
        {**REPORT, "observation": {"kind": "rumour"}},
        "observation.kind",
        "'reply'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_fault_is_told_with_its_path_and_a_remedy(name: str, agent: Agent, notes: Notes) -> None:
    path, body, field, words = BAD[name]
    assert words in problem(agent.post(path, body), 422)[field]
    assert notes.calls == []


MANIFESTS = {
    "two alternatives": (
        tool(idempotency={"kind": "key", "header": "K", "retention_seconds": "ever"}),
        "tools.0.idempotency.retention_seconds",
        "send a number, or send 'unlimited'",
    ),
    "a rule between fields": (tool(idempotency={"kind": "key"}), "tools.0.idempotency", "name exactly one of"),
    "a missing promise": (tool(proof="look_final"), "tools.0.proof", "needs both reconcile bounds"),
    "no tools": ({"tools": []}, "tools", "at least 1 item"),
    "negative cost": (
        tool(compensate={"tool": "x", "arguments": {"a": "b"}, "cost_minor": -5}),
        "tools.0.compensate.cost_minor",
        "greater than or equal to 0",
    ),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_is_explained_field_by_field(name: str, agent: Agent, notes: Notes) -> None:
    body, field, words = MANIFESTS[name]
    assert words in problem(agent.put("/workflows/billing", body), 422)[field]


@pytest.mark.parametrize(("method", "path"), BODIES)
def test_what_was_sent_is_never_sent_back(method: str, path: str, agent: Agent, notes: Notes) -> None:
    secret = "hunter2-4111111111111111"
    body = dict.fromkeys([*BODIES[method, path], "other"], secret)
    response = agent.send(path, body, method=method)
    problem(response, 422)
    assert secret.encode() not in response.content


def test_a_long_list_of_faults_is_cut_and_counted(agent: Agent, notes: Notes) -> None:
    response = agent.post("/runs", {**OPEN, **{f"x{n}": n for n in range(300)}})
    assert len(problem(response, 422)) == 100
    assert b"first 100 of 300" in response.content


def test_a_body_of_the_wrong_shape_everywhere_is_told_everywhere(agent: Agent, notes: Notes) -> None:
    faults = problem(agent.post("/runs", {"workflow": 1, "client_ref": None, "intent": [], "scope": 3}), 422)
    assert set(faults) == {"workflow", "client_ref", "intent", "scope"}
