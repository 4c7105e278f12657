"""Idempotency keys: honoured only on request, for a time, and compared by arguments."""

import httpx
import pytest

from sandbox.client import Process, Sandbox
from tests.sandbox.wire import CREDIT, post_credit

KEY = {"Idempotency-Key": "k-1"}


def test_a_key_means_nothing_unless_the_service_honours_it(world: Sandbox, http: httpx.Client) -> None:
    for _ in range(2):
        assert http.post("/payments/credits", json=CREDIT, headers=KEY).status_code == 201
    assert len(world.effects(key="k-1")) == 2


def test_the_same_key_gives_the_stored_result(world: Sandbox, http: httpx.Client) -> None:
    world.mode("payments", keys="honour")
    first = http.post("/payments/credits", json=CREDIT, headers=KEY)
    second = http.post("/payments/credits", json=CREDIT, headers=KEY)
    assert (second.status_code, second.json()) == (first.status_code, first.json())
    assert "Idempotent-Replayed" not in first.headers
    assert second.headers["Idempotent-Replayed"] == "true"
    assert (len(world.effects()), len(world.arrivals())) == (1, 2)


def test_a_key_may_also_stand_in_the_body(world: Sandbox, http: httpx.Client) -> None:
    world.mode("payments", keys="honour")
    for _ in range(2):
        http.post("/payments/credits", json=CREDIT | {"idempotency_key": "k-1"})
    assert len(world.effects()) == 1
    found = http.get("/payments/credits", params={"idempotency_key": "k-1"}).json()
    assert found["count"] == 1


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/payments/credits", CREDIT | {"amount_minor": 4201}),
        ("/payments/refunds", {"charge": "ch_1", "amount_minor": 4200, "currency": "EUR"}),
    ],
)
def test_F047_the_same_key_with_other_arguments_is_a_mismatch(
    world: Sandbox, http: httpx.Client, path: str, body: dict[str, object]
) -> None:
    world.mode("payments", keys="honour")
    http.post("/payments/credits", json=CREDIT, headers=KEY)
    refused = http.post(path, json=body, headers=KEY)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "idempotency_key_mismatch")
    assert len(world.effects()) == 1


def test_F046_a_key_is_forgotten_after_its_retention(world: Sandbox, http: httpx.Client) -> None:
    world.mode("payments", keys="honour", retention_seconds=60)
    http.post("/payments/credits", json=CREDIT, headers=KEY)
    world.advance(59)
    http.post("/payments/credits", json=CREDIT, headers=KEY)
    assert len(world.effects()) == 1
    world.advance(2)
    http.post("/payments/credits", json=CREDIT, headers=KEY)
    assert len(world.effects()) == 2


def test_a_key_also_covers_a_commit_whose_reply_was_lost(
    world: Sandbox, process: Process, http: httpx.Client
) -> None:
    world.mode("payments", keys="honour")
    world.fault("payments", "credits", [{"do": "commit_then_drop"}])
    post_credit(process.port, Idempotency_Key="k-1")
    again = http.post("/payments/credits", json=CREDIT, headers=KEY)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len(world.effects()) == 1


@pytest.mark.parametrize(("keys", "effects"), [("honour", 1), ("ignore", 2)])
def test_F027_a_retry_before_a_late_commit_is_one_effect_only_under_a_live_key(
    world: Sandbox, process: Process, http: httpx.Client, keys: str, effects: int
) -> None:
    world.mode("payments", keys=keys)
    world.fault("payments", "credits", [{"do": "late_commit", "seconds": 30}])
    post_credit(process.port, Idempotency_Key="k-1")
    http.post("/payments/credits", json=CREDIT, headers=KEY)
    world.advance(31)
    world.wait_for_late_commits()
    assert len(world.effects()) == effects


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"service": "bank", "keys": "honour"}, "service"),
        ({"service": "payments", "keys": "perhaps"}, "keys"),
        ({"service": "payments", "retention_seconds": -1}, "retention_seconds"),
        ({"service": "payments", "key": "honour"}, "key"),
    ],
)
def test_a_wrong_mode_is_refused_by_name(
    world: Sandbox, http: httpx.Client, body: dict[str, object], field: str
) -> None:
    refused = http.post("/_control/modes", json=body)
    assert (refused.status_code, refused.json()["error"]["field"]) == (400, field)
