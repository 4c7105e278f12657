"""Alive, ready, and the way here."""

import json

import psycopg
import pytest
from django.test import Client

from console.api import ops


def test_ping_and_healthz_ask_nobody(client: Client) -> None:
    assert json.loads(client.get("/api/v1/ping").content) == {"ok": True}
    assert client.get("/healthz").content == b"ok\n"


@pytest.mark.django_db
def test_ready_means_a_migrated_database(client: Client) -> None:
    response = client.get("/readyz")
    assert (response.status_code, json.loads(response.content)) == (200, {"ready": True, "reason": ""})


@pytest.mark.django_db
def test_a_database_behind_its_code_is_not_ready(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    known = ops._migrations()
    monkeypatch.setattr(ops, "_migrations", lambda: known | {("runs", "9999_of_tomorrow")})
    response = client.get("/readyz")
    assert response.status_code == 503
    assert "1 migrations are not applied" in json.loads(response.content)["reason"]


def test_a_database_that_is_away_is_not_ready(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(self: object) -> None:
        raise psycopg.OperationalError("password in here")

    monkeypatch.setattr("console.api.ops.MigrationRecorder.applied_migrations", away)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert json.loads(response.content)["reason"] == "the database cannot be reached"
