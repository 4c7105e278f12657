"""Batches over HTTP: a list or lines, bounded, and read record by record so that a bad one costs no other."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.conftest import Agent, problem
from tests.factories import ARGUMENTS, RESULTS, WORKFLOW, make_client, make_tenant, register

pytestmark = pytest.mark.django_db
LINES = "application/x-ndjson"
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
INVOICE = {"step": "load_invoice", "tool": "load_invoice", "arguments": ARGUMENTS["load_invoice"]}
SEEN = {"kind": "reply", "status": 200, "body": json.dumps(RESULTS["load_invoice"])}


@pytest.fixture
def told(db: None) -> Agent:
    """An agent with a real token, whose workflow is registered."""
    client = make_client(make_tenant("north"))
    register(client)
    return Agent(token=client.token)


def a_record(kind: str, second: int, **fields: Any) -> dict[str, Any]:
    at = (START + timedelta(seconds=second)).isoformat()
    return {"kind": kind, "id": f"{kind}-{second}", "run": "elsewhere-1", "at": at} | fields


def a_batch() -> list[dict[str, Any]]:
    return [
        a_record("run", 0, workflow=WORKFLOW, intent="Load an invoice"),
        a_record("turn", 1, usage={"input_tokens": 10, "output_tokens": 1}),
        a_record("call", 2, **INVOICE),
        a_record("dispatch", 3, step="load_invoice"),
        a_record("observation", 4, step="load_invoice", observation=SEEN),
        a_record("finish", 5, claim="done"),
    ]


def lines(*records: Any) -> bytes:
    return b"\n".join(one if isinstance(one, bytes) else json.dumps(one).encode() for one in records)


def answer(response: HttpResponse) -> dict[str, Any]:
    assert response.status_code == 200, response.content
    assert response.headers["Content-Type"] == "application/json"
    return dict(json.loads(response.content))


def test_a_list_of_records_lands_and_lands_once(told: Agent) -> None:
    first = answer(told.post("/ingest", a_batch()))
    assert (first["accepted"], first["duplicates"], first["errors"]) == (6, 0, [])
    again = answer(told.post("/ingest", a_batch()))
    assert (again["accepted"], again["duplicates"]) == (0, 6)
    [run_id] = first["runs"]
    assert answer(told.get(f"/runs/{run_id}"))["outcome"] == "needs_human"  # two effects that the workflow demands


def test_lines_are_read_one_by_one_and_a_broken_one_is_named_by_its_number(told: Agent) -> None:
    batch = a_batch()
    body = lines(batch[0], b"", b'{"kind": "turn", "id"', batch[2], b"[1]", batch[3], batch[4], b"nonsense")
    heard = answer(told.post("/ingest", body, content_type=LINES))
    assert heard["accepted"] == 4
    assert [(fault["item"], fault["field"]) for fault in heard["errors"]] == [(3, "body"), (5, "body"), (8, "body")]
    assert "send valid JSON" in heard["errors"][0]["remedy"]


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"at": "2026-03-01T09:00:00"}, "at", "offset from UTC"),
        ({"at": None}, "at", "offset"),
        ({"kind": "prayer"}, "kind", ""),
        ({"surprise": 1}, "surprise", "remove this field"),
        ({"id": ""}, "id", "at least 1"),
        ({"step": 7}, "step", "send text"),
        ({"attempt": 0}, "attempt", "1 or more"),
        ({"step": "a\x00b"}, "step", "NUL"),
        ({"step": "\ud800"}, "step", "surrogate"),
        ({"step": "x" * 20_000}, "step", "at most"),
    ],
)
def test_a_bad_record_is_named_with_its_field_and_its_remedy(
    change: dict[str, Any], field: str, words: str, told: Agent
) -> None:
    batch = a_batch()
    batch[3] |= change
    heard = answer(told.post("/ingest", batch))
    first = heard["errors"][0]
    assert (first["item"], first["field"].split(".")[-1]) == (3, field)
    assert words in first["remedy"]
    assert heard["accepted"] == 4  # the observation has no dispatch to speak about, and is named too
    assert [fault["item"] for fault in heard["errors"]] == [3, 4]


def test_a_field_that_stands_twice_is_a_fault_of_its_record_only(told: Agent) -> None:
    text = json.dumps(a_batch()).replace('"kind": "turn"', '"kind": "turn", "kind": "turn"')
    heard = answer(told.post("/ingest", text.encode()))
    assert [(fault["item"], fault["remedy"]) for fault in heard["errors"]] == [(1, "send each field once")]
    assert heard["accepted"] == 5


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"[{]", "application/json", 400),
        (b"{}", "application/json", 400),
        (b"\xff", LINES, 400),
        (b"[" * 200_000, "application/json", 400),
        (b"[]", "text/plain", 415),
        (b"[" + b" " * 1024 * 1024 + b"]", "application/json", 413),
        (b"\n".join([b"1"] * 1001), LINES, 413),
        (b"[" + b",".join([b"1"] * 1001) + b"]", "application/json", 413),
    ],
)
def test_F095_what_is_no_batch_is_refused_whole(body: bytes, kind: str, status: int, told: Agent) -> None:
    problem(told.post("/ingest", body, content_type=kind), status)


def test_an_empty_batch_is_no_fault(told: Agent) -> None:
    assert answer(told.post("/ingest", [])) == {"accepted": 0, "duplicates": 0, "runs": [], "errors": []}
    assert answer(told.post("/ingest", b"\n \n", content_type=LINES))["errors"] == []


def test_a_batch_may_be_larger_than_any_other_body(told: Agent) -> None:
    batch = a_batch()
    batch[4]["observation"]["body"] = "x" * 60_000
    more = [
        a_record("observation", 10 + n, step="load_invoice", observation=batch[4]["observation"]) for n in range(8)
    ]
    assert answer(told.post("/ingest", [*batch, *more]))["errors"] == []


@pytest.mark.security
def test_SEC17_a_batch_needs_a_token(told: Agent) -> None:
    problem(told.post("/ingest", a_batch(), headers={"authorization": "Bearer x"}), 401)
    problem(Agent(token=Agent().token).post("/ingest", a_batch()), 401)


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=[]), max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.security
@settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(place=st.integers(0, 5), name=st.sampled_from(["id", "run", "at", "kind", "step", "observation"]), value=ANY)
def test_F096_whatever_stands_in_a_record_gets_an_answer(place: int, name: str, value: Any, told: Agent) -> None:
    batch = a_batch()
    batch[place][name] = value
    assert told.post("/ingest", batch).status_code in (200, 400)
    assert told.post("/ingest", lines(*batch), content_type=LINES).status_code in (200, 400)
