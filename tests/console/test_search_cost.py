"""What a search costs among ten thousand rows of each kind: every form by an index, in single rows."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.db import connection

from console.access import Visit
from console.builders import search as build
from console.finding import Sought
from recovery import permissions
from recovery.models import DeadLetter, Decision, HumanTask
from runs import wall
from runs.models import Action, Effect, Run
from runs.querysets import read_clock
from tests import factories
from tests.console.conftest import House, make_house
from tests.console.test_search import one
from tests.factories import LETTER
from tests.recovery.stories import press

FORMS = {
    "0195e2c4-77aa-7c31-9b2e-5d10c0aeb41f": "nothing found",
    "0195e2c4-7": "nothing found",
    "a" * 40: "nothing found",
    "#100500": "tasks 1, runs 1",
    "cust_none": "nothing found",
    "ext 100500": "calls and their effects 1",
    "ref 100500": "runs 1",
    "word 100500": "runs 1",
    "word": "runs 20+",
    "zebra none": "nothing found",
}


def test_no_form_reads_a_whole_table(ten_thousand: House) -> None:
    tenant, person = ten_thousand.nordlicht, ten_thousand.people["alice"]
    for typed, summary in FORMS.items():
        with wall.within(tenant.pk):
            visit = Visit(person, permissions.grants(person), {tenant.pk: tenant}, None, read_clock())
            whole, fetched = reads()
            assert build.page(visit, Sought(typed), flashes=[])[0].summary == summary
            whole_after, fetched_after = reads()
        assert whole_after == whole, f"{typed}: a whole table was read"
        assert fetched_after - fetched < 1_000, f"{typed}: more than the newest five hundred, and what fits"


@pytest.fixture
def ten_thousand(fresh_database: str, dsn_owner: str) -> House:
    """So many rows of each kind, and PostgreSQL knows it: reading all of them would be the dearer way."""
    house = make_house()
    case, other = factories.open_run(house.agent), factories.unknown_credit(house.agent)
    factories.succeed(case)
    press("claim", other, house.people["alice"])
    call = "md5('runs_action' || n)::uuid"
    with wall.within(house.nordlicht.pk):
        letter = DeadLetter.objects.create(
            tenant=house.nordlicht, run_id=case.run_id, action=case.action(), identity="x", **LETTER
        )
        copy(case.run, client_ref="'ref ' || n", intent="'word ' || n")
        copy(case.action(), action_id="'id ' || n")
        copy(one(case, Effect), external_id="'ext ' || n", action_id=call)
        copy(other.task(), cause="'cause ' || n", number="n")
        copy(one(other, Decision), key="'key ' || n")
        copy(letter, action_id=call)
    with psycopg.connect(dsn_owner, autocommit=True) as owner:
        owner.execute("ANALYZE")
    return house


def copy(row: Any, **columns: str) -> None:
    """Ten thousand rows like this one; `columns` are SQL in which `n` counts them."""
    table, changes = row._meta.db_table, {"id": f"md5('{row._meta.db_table}' || n)::uuid", **columns}
    built = ", ".join(f"'{name}', {value}" for name, value in changes.items())
    with connection.cursor() as cursor:
        cursor.execute(
            f"""INSERT INTO {table} SELECT (jsonb_populate_record(one, jsonb_build_object({built}))).*
                FROM {table} one, generate_series(100001, 110000) n WHERE one.id = %s""",
            [row.pk],
        )


def reads() -> tuple[int, int]:
    """How many times a table was read from end to end in this transaction, and how many rows were fetched."""
    tables = [model._meta.db_table for model in (Run, Action, Effect, HumanTask, Decision, DeadLetter)]
    asked = """SELECT sum(seq_scan)::int, sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int
               FROM pg_stat_xact_user_tables WHERE relname = ANY(%s)"""
    with connection.cursor() as cursor:
        cursor.execute(asked, [tables])
        return cursor.fetchone()
