"""Whatever a batch or a provider's message carries: never a 500, and a broken record is named by its place."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery import callback_secrets
from recovery.rules import signatures
from runs import wall
from runs.models import Tenant
from tests.api.conftest import Agent
from tests.api.test_anything import FEW, JSON
from tests.api.test_callbacks import PATH, post
from tests.factories import billing_manifest, make_client, make_tenant, open_run, propose, register

pytestmark = [pytest.mark.django_db, pytest.mark.security]
HOSTILE = {
    "nul": b'"a\\u0000b"',
    "surrogate": b'"\\ud800"',
    "deep": b"[" * 1000 + b"]" * 1000,
    "wide": b"{" + b",".join(b'"k%d":1' % n for n in range(100_000)) + b"}",
    "long": b'"' + b"x" * 1_000_000 + b'"',
    "not a number": b"NaN",
    "too large": b"1e999",
    "digits": b"9" * 9000,
    "twice": b'{"a": 1, "a": 2}',
}
RECORD = (
    b'{"kind": "call", "id": "r-1", "run": "elsewhere-1", "at": "2026-03-01T09:00:00Z", "step": "s",'
    b' "tool": "apply_credit", "arguments": {"account": %s}}'
)


@pytest.fixture
def north(db: None) -> Tenant:
    return make_tenant("north")


@pytest.fixture
def told(north: Tenant) -> Agent:
    client = make_client(north)
    register(client)
    return Agent(token=client.token)


@pytest.fixture
def secret(north: Tenant) -> bytes:
    """The provider's secret, and a run whose credit listens to it."""
    client, manifest = make_client(north), billing_manifest()
    listens = {
        "source": "payments",
        "identity": "credit_id",
        "reference": "metadata.action_id",
        "state": "state",
        "succeeded": ["succeeded"],
    }
    next(tool for tool in manifest["tools"] if tool["name"] == "apply_credit")["callback"] = listens
    register(client, manifest)
    propose(open_run(client))
    with wall.within(north.pk):
        return signatures.read(callback_secrets.create(north, "payments"))


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_F096_a_hostile_record_is_named_or_the_batch_is_refused(told: Agent, kind: str, value: bytes) -> None:
    record = RECORD % value
    body = b"[%s]" % record if kind == "application/json" else record
    answered = told.send("/ingest", body, content_type=kind)
    assert answered.status_code in (200, 400, 413), answered.content
    if answered.status_code == 200:
        assert [fault["item"] for fault in json.loads(answered.content)["errors"]] in ([0], [1])


@FEW
@given(records=st.lists(JSON, max_size=4))
def test_F096_any_records_get_an_answer(records: list[Any], told: Agent) -> None:
    assert told.post("/ingest", records).status_code < 500


def signed(secret: bytes, body: bytes, message: str = "evt_1") -> int:
    stamp = str(int(time.time()))
    return post(PATH, body, signatures.sign(secret, message, stamp, body), message=message, stamp=stamp).status_code


@pytest.mark.parametrize("field", ["credit_id", "state", "metadata", "note"])
@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_F096_a_genuine_message_with_hostile_content_gets_an_answer(field: str, value: bytes, secret: bytes) -> None:
    assert signed(secret, b'{"state": "succeeded", "%s": %s}' % (field.encode(), value)) in (200, 202, 400, 413)


@FEW
@given(payload=st.dictionaries(st.sampled_from(["credit_id", "state", "metadata", "note"]), JSON))
def test_F096_any_genuine_message_gets_an_answer(payload: dict[str, Any], secret: bytes) -> None:
    assert signed(secret, json.dumps(payload).encode(), f"evt_{hash(str(payload))}") < 500
