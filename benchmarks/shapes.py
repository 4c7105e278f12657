"""The physical limit: one durable commit, and two of them (intent before, outcome after) with nothing around."""

from __future__ import annotations

import json
import uuid

import psycopg

from benchmarks.scenery import arguments, reply

TABLE = """
CREATE TABLE bare_call (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run_id bigint NOT NULL, key uuid NOT NULL UNIQUE,
  tool text NOT NULL, state text NOT NULL, args jsonb NOT NULL, result jsonb,
  at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 80)
"""
INTENT = (
    "INSERT INTO bare_call (run_id, key, tool, state, args) "
    "VALUES (%s, %s, 'issue_refund', 'dispatched', %s) RETURNING id"
)
OUTCOME = "UPDATE bare_call SET state = 'ok', result = %s WHERE id = %s AND state = 'dispatched'"
ARGUMENTS = json.dumps(arguments(1))
RESULT = json.dumps(reply(1))

Connection = psycopg.Connection[tuple[object, ...]]


def make_table(owner_dsn: str) -> None:
    with psycopg.connect(owner_dsn, autocommit=True) as session:
        session.execute(TABLE)


def connect(dsn: str) -> Connection:
    """A connection without a transaction block, that prepares what it repeats."""
    return psycopg.connect(dsn, autocommit=True, prepare_threshold=1)


def one(session: Connection) -> None:
    """One commit: the intent alone."""
    session.execute(INTENT, (1, uuid.uuid4(), ARGUMENTS)).fetchone()


def two(session: Connection) -> None:
    """Two commits: what every boundary that can tell "never sent" from "answer lost" has to pay."""
    row = session.execute(INTENT, (1, uuid.uuid4(), ARGUMENTS)).fetchone()
    session.execute(OUTCOME, (RESULT, row[0] if row else None))
