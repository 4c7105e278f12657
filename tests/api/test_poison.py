"""Over the wire: no answer of a tool, no manifest and no name that an agent sends comes to a 500."""

import json
from typing import Any

import pytest

from recovery.clients import parse_token
from runs import wall
from runs.models import Run
from tests.api.conftest import Agent
from tests.api.test_conversation import MANIFEST, alices, open_run, propose, said

__all__ = ["alices"]

BODIES = [
    '{"id": "a\\u0000b"}', '{"id": "a\\ud800b"}', '{"id": "x", "n": "\\u0000"}', '{"id": "x", "n": "\\ud800"}',
    '{"id": "x", "n": 1e999}', '{"id": "x", "n": ' + "9" * 400 + "}", '{"id": ' + "9" * 4000 + "}",
    '{"id": ' + "9" * 9000 + "}", '{"id": "x", "d": ' + "[" * 90 + "]" * 90 + "}",
    '{"id": "x", "d": ' + "[" * 300 + "]" * 300 + "}", '{"id": "x", "d": ' + "[" * 900 + "]" * 900 + "}",
    "[" * 9000 + "]" * 9000, '{"id": "x", "id": "y"}', json.dumps({"id": "x", **{f"k{i}": i for i in range(4000)}}),
]  # fmt: skip
REFUSALS = ['{"error": {"field": "a\\u0000"}}', '{"error": {"field": "\\ud800"}}', '{"code": "\\u0000"}', "[" * 900]


@pytest.mark.parametrize(
    ("status", "body"), [*((200, body) for body in BODIES), *((422, body) for body in [*BODIES, *REFUSALS])],
    ids=range(2 * len(BODIES) + len(REFUSALS)),
)  # fmt: skip
def test_I6_whatever_a_tool_answers_can_be_reported_and_asked_for_again(
    alices: Agent, status: int, body: str
) -> None:
    run = open_run(alices)
    permit = said(propose(alices, run))
    seen = {"kind": "reply", "status": status, "body": body}
    told = {"attempt_id": permit["attempt_id"], "fence": permit["fence"], "tool": "billing.credit"}
    first = said(alices.post(f"/runs/{run['run_id']}/reports", {**told, "observation": seen}))
    for _ in range(2):
        again = said(propose(alices, run))
        assert again["answer"] == {"result": "replay", "error": "deny", "suspend": "wait"}[first["answer"]]
        assert again.get("result") == first.get("result")
    said(alices.get(f"/runs/{run['run_id']}"))
    said(alices.post(f"/runs/{run['run_id']}/finish", {}))


SCHEMAS: list[dict[str, Any]] = [
    {"properties": {"a": {"pattern": "a{99999999999}"}}},
    {"$schema": "http://json-schema.org/draft-04/schema#", "id": 5},
    {"properties": {"a": {"pattern": "("}}}, {"patternProperties": {"*": {}}}, {"$ref": "http://127.0.0.1:1/"},
    {"$schema": "foo"}, {"type": "banana"}, {"multipleOf": 0}, {"properties": {"a": {"pattern": "(?x)(a+) +$"}}},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
@pytest.mark.parametrize("field", ["input_schema", "output_schema"])
def test_SEC_16_a_manifest_with_a_bad_schema_is_refused_by_field(
    alices: Agent, schema: dict[str, Any], field: str
) -> None:
    manifest = {**MANIFEST, "tools": [{**MANIFEST["tools"][0], field: schema}]}
    refused = alices.put("/workflows/billing", manifest)
    assert refused.status_code in (400, 422), refused.content
    assert f"tools.0.{field}" in refused.content.decode()


SECRET = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"


@pytest.mark.parametrize(
    "changes",
    [
        {"client_ref": SECRET},
        {"client_ref": "ref 4111 1111 1111 1111"},
        {"client_ref": "a\u202eb"},
        {"scope": {"ids": {"account": [SECRET]}}},
        {"scope": {"ids": {"account": ["4111111111111111"]}}},
    ],
)
def test_SEC_34_a_name_that_looks_like_a_secret_opens_no_run(alices: Agent, changes: dict[str, Any]) -> None:
    open_run(alices)
    body = {"workflow": "billing", "client_ref": "case-9", "intent": "Credit."}
    refused = alices.post("/runs", {**body, **changes})
    assert refused.status_code in (400, 422), refused.content
    assert "4eC39" not in refused.content.decode()
    said(alices.post("/runs", body), 201)


def test_SEC_34_what_describes_a_run_is_stored_without_secrets(alices: Agent) -> None:
    open_run(alices)
    names = dict.fromkeys(("model", "prompt_version", "trace_id", "requester", "customer_ref"), f"x {SECRET}")
    said(alices.post("/runs", {"workflow": "billing", "client_ref": "c-9", "intent": f"Use {SECRET}", **names}), 201)
    with wall.within(parse_token(alices.token).tenant_id):
        run = Run.objects.get(client_ref="c-9")
    kept = [getattr(run, name) for name in (*names, "intent")]
    assert all("4eC39" not in text and "redacted" in text for text in kept)
