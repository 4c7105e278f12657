"""Two statements in one round trip: both or neither, and nothing stays on the connection."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from runs import wire

FIRST = "SELECT set_config('app.tenants', %(tenants)s, true)"
INSERT = """
WITH kept AS (INSERT INTO note (name, body) VALUES (%(name)s, %(body)s) RETURNING name, body)
SELECT name, body, true AS new, NULL::bytea AS nothing, current_setting('app.tenants') AS tenants FROM kept
"""


@pytest.fixture
def raw(fresh_database: str, dsn_owner: str, dsn_app: str) -> Iterator["psycopg.Connection[Any]"]:
    with psycopg.connect(dsn_owner, autocommit=True) as owner:
        owner.execute("CREATE TABLE note (name text PRIMARY KEY, body bytea)")
    with psycopg.connect(dsn_app, autocommit=True) as connection:
        yield connection


def keep(raw: "psycopg.Connection[Any]", name: Any, body: Any = b"\x00\xff") -> wire.Row | None:
    return wire.ask(raw, (FIRST, {"tenants": "t"}), (INSERT, {"name": name, "body": body}))


def names(raw: "psycopg.Connection[Any]") -> list[str]:
    return [row[0] for row in raw.execute("SELECT name FROM note ORDER BY name")]


def test_the_second_sees_the_first_and_its_row_comes_back(raw: "psycopg.Connection[Any]") -> None:
    assert keep(raw, "é") == {"name": "é", "body": b"\x00\xff", "new": True, "nothing": None, "tenants": "t"}


def test_nothing_of_the_first_stays_on_the_connection(raw: "psycopg.Connection[Any]") -> None:
    keep(raw, "a")
    assert raw.execute("SELECT current_setting('app.tenants', true)").fetchone() == ("",)


def test_a_failure_leaves_nothing_and_the_connection_goes_on(raw: "psycopg.Connection[Any]") -> None:
    keep(raw, "a")
    with pytest.raises(psycopg.errors.UniqueViolation):
        keep(raw, "a")
    assert keep(raw, "b") is not None
    assert names(raw) == ["a", "b"]


def test_a_failure_of_the_first_keeps_the_second_from_happening(raw: "psycopg.Connection[Any]") -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        wire.ask(raw, ("SELECT 1 / %(zero)s::int", {"zero": 0}), (INSERT, {"name": "a", "body": b""}))
    assert names(raw) == []
    assert keep(raw, "a") is not None


def test_a_statement_is_prepared_once(raw: "psycopg.Connection[Any]") -> None:
    for name in "abc":
        keep(raw, name)
    assert raw.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (2,)


def test_within_a_transaction_it_ends_with_it(raw: "psycopg.Connection[Any]") -> None:
    raw.autocommit = False
    keep(raw, "a")
    raw.rollback()
    assert names(raw) == []


def test_more_than_a_socket_holds_goes_through(raw: "psycopg.Connection[Any]") -> None:
    body = b"x" * 3_000_000
    row = keep(raw, "a", body)
    assert row is not None
    assert row["body"] == body


def test_a_nul_is_refused_before_anything_is_sent(raw: "psycopg.Connection[Any]") -> None:
    with pytest.raises(psycopg.DataError):
        keep(raw, "a\x00b")
    assert keep(raw, "a") is not None


@pytest.mark.parametrize("items", [[], ["a"], ['q"uote', "back\\slash", "com,ma", "{brace}", "NULL", ""]])
def test_a_list_arrives_as_it_was(raw: "psycopg.Connection[Any]", items: list[str]) -> None:
    asked = "SELECT array_to_json(%(items)s::text[])::text AS items, cardinality(%(items)s::text[])::text AS size"
    row = wire.ask(raw, (FIRST, {"tenants": ""}), (asked, {"items": items}))
    assert row is not None
    expected = raw.execute("SELECT array_to_json(%s::text[])::text", [items]).fetchone()
    assert (row["items"], row["size"]) == ((expected or [None])[0], str(len(items)))


def test_F061_a_connection_that_the_server_ended_is_an_operational_error(
    raw: "psycopg.Connection[Any]", dsn_super: str
) -> None:
    keep(raw, "a")
    with psycopg.connect(dsn_super, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s)", [raw.info.backend_pid])
    with pytest.raises(psycopg.OperationalError):
        keep(raw, "b")
    assert raw.closed
