"""What one call costs when it is counted instead of timed: commits and round trips."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable

import psycopg
from django.db import connection

CALLS = 50
# In libpq's trace a line from the client begins with F after the time; a Sync or a plain Query ends what it sends.
_ENDS = re.compile(r"^\S*\s*\S*\s*F\t\d+\t(Sync|Query)\b", re.MULTILINE)


def counted(session: psycopg.Connection[tuple[object, ...]], act: Callable[[], object]) -> dict[str, float]:
    """Commits (transactions that wrote) and round trips per call of `act`, which uses Django's connection."""
    act()
    before = _transactions(session)
    trips = _round_trips(lambda: [act() for _ in range(CALLS)])
    return {"commits": (_transactions(session) - before) / CALLS, "round_trips": trips / CALLS}


def _transactions(session: psycopg.Connection[tuple[object, ...]]) -> int:
    row = session.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone()
    return int(str(row[0])) if row else 0


def _round_trips(act: Callable[[], object]) -> int:
    connection.ensure_connection()
    with tempfile.TemporaryFile() as file:
        connection.connection.pgconn.trace(file.fileno())
        try:
            act()
        finally:
            connection.connection.pgconn.untrace()
        file.seek(0)
        return len(_ENDS.findall(file.read().decode()))
