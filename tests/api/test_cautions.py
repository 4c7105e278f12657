"""A manifest that is sound and will not do what it seems to is taken, and its author is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings
from steadyhand.contract import Manifest

from recovery import cautions
from tests.api.conftest import Agent
from tests.console.test_commands import said
from tests.factories import make_client, make_tenant

HTTP = "http://127.0.0.1:8490"
KEY = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": 86400}
LOOK = {
    "connector": "shop",
    "look": {"path": "/orders/{action_id}", "ours": {"id": "{action_id}"}, "external_id": "id"},
}


def manifest(base_url: str = "https://shop.example", **tool: Any) -> dict[str, Any]:
    shop = {"base_url": base_url, "allow_hosts": ["shop.example"]}
    return {"connectors": {"shop": shop}, "tools": [{"name": "order", "effect": "write", **tool}]}


def told(document: dict[str, Any]) -> list[tuple[str, str]]:
    return cautions.of(Manifest.model_validate(document))


def test_a_sound_manifest_needs_no_caution() -> None:
    assert told(manifest(idempotency=KEY, reconcile={**LOOK, "max_in_flight_seconds": 30})) == []
    assert told(manifest(idempotency={**KEY, "retention_seconds": "unlimited"})) == []
    assert told(manifest(effect="read", idempotency=KEY)) == []


@pytest.mark.parametrize("reconcile", [{}, {"reconcile": LOOK}])
def test_a_key_that_licenses_no_second_send_is_named(reconcile: dict[str, Any]) -> None:
    [(field, remedy)] = told(manifest(idempotency=KEY, **reconcile))
    assert field == "tools.0.idempotency"
    assert "declare reconcile.max_in_flight_seconds, or retention_seconds unlimited" in remedy


def test_a_key_that_is_remembered_for_nobody_knows_how_long_is_named() -> None:
    [(_, remedy)] = told(manifest(idempotency={"kind": "key", "field": "key"}))
    assert "declare retention_seconds" in remedy


def test_an_address_that_nothing_may_reach_is_named_with_the_remedy() -> None:
    [(field, remedy)] = told(manifest(HTTP))
    assert field == "connectors.shop.base_url"
    assert "TRUSTED_ENDPOINTS=127.0.0.1:8490" in remedy
    with override_settings(TRUSTED_ENDPOINTS=("127.0.0.1:8490",)):
        assert told(manifest(HTTP)) == []
    assert "allow_hosts" in told(manifest("https://other.example"))[0][1]


@pytest.mark.django_db
def test_the_api_tells_it_and_registers_all_the_same() -> None:
    agent = Agent(token=make_client(make_tenant("north")).token)
    heard = agent.put("/workflows/orders", manifest(HTTP, idempotency=KEY))
    assert heard.status_code == 201
    fields = [one["field"] for one in json.loads(heard.content)["warnings"]]
    assert fields == ["connectors.shop.base_url", "tools.0.idempotency"]
    assert "warnings" not in json.loads(agent.put("/workflows/orders", manifest()).content)


@pytest.mark.django_db
def test_a_run_of_a_workflow_that_nobody_registered_says_so() -> None:
    agent = Agent(token=make_client(make_tenant("north")).token)
    heard = agent.post("/runs", {"workflow": "ordres", "client_ref": "a", "intent": "Order."})
    assert heard.status_code == 404
    assert "No workflow of that name is registered" in json.loads(heard.content)["detail"]


@pytest.mark.django_db
def test_the_command_tells_it_too(tmp_path: Path) -> None:
    make_tenant("north")
    file = tmp_path / "orders.json"
    file.write_text(json.dumps(manifest(idempotency=KEY)))
    assert "Warning: tools.0.idempotency: the key licenses no second send" in said(
        "load_workflow", "north", "orders", str(file)
    )
