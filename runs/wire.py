"""One round trip to PostgreSQL: the tenant and one prepared statement, sent together, in one implicit transaction.

psycopg's own pipeline speaks to the server after every command and builds a cursor for each; on the way of a tool
call that costs half a commit. So this goes to libpq through psycopg.pq, the documented layer below.
"""

from __future__ import annotations

import hashlib
import re
import weakref
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

import psycopg
from psycopg import errors
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.waiting import Ready, Wait

Row = dict[str, Any]
Connection = psycopg.Connection[Any]

_PLACES = re.compile(r"%\((\w+)\)s")
_READERS = {
    16: lambda data: data == b"\x01",
    17: bytes,
    25: bytes.decode,
    1043: bytes.decode,
}  # by type: bool, bytea…
_prepared: weakref.WeakKeyDictionary[Connection, set[bytes]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Statement:
    """SQL as libpq takes it: numbered places, and a name under which a connection prepares it once."""

    name: bytes
    sql: bytes
    order: tuple[str, ...]


Asked = tuple[Statement, list[bytes | None], list[Format]]
Talk = Generator[Wait, Ready | int, list[PGresult]]


@lru_cache(maxsize=20)
def compiled(sql: str) -> Statement:
    """The statement behind SQL that names its places %(so)s."""
    order = tuple(dict.fromkeys(_PLACES.findall(sql)))
    numbered = _PLACES.sub(lambda found: f"${order.index(found[1]) + 1}", sql).encode()
    return Statement(b"wire_" + hashlib.sha256(numbered).hexdigest()[:16].encode(), numbered, order)


def ask(raw: Connection, first: tuple[str, Mapping[str, Any]], then: tuple[str, Mapping[str, Any]]) -> Row | None:
    """Send two statements in one go and give back the only row of the second; columns are bool, text or bytea.

    Either both happened or, where this raises psycopg.Error, neither did.
    """
    asked = [_asked(sql, values) for sql, values in (first, then)]
    with raw.lock:
        if not raw.autocommit and raw.pgconn.transaction_status == TransactionStatus.IDLE:
            raw.pgconn.exec_(b"BEGIN")  # within a transaction of Django's that has not spoken yet
        try:
            results = raw.wait(_talk(raw, asked))
        except BaseException:
            raw.close()  # half a conversation: nobody could tell whose answer comes next
            raise
    failed = next((result for result in results if result.status == ExecStatus.FATAL_ERROR), None)
    if failed is not None:
        raise errors.error_from_result(failed, encoding="utf-8")
    return _row(results[-1])


def _asked(sql: str, values: Mapping[str, Any]) -> Asked:
    statement = compiled(sql)
    given = [_given(values[name]) for name in statement.order]
    return statement, [data for data, _ in given], [form for _, form in given]


def _talk(raw: Connection, asked: Sequence[Asked]) -> Talk:
    """Queue everything, send it at once, and collect the answers up to the Sync."""
    known = _prepared.setdefault(raw, set())
    new = [statement for statement, _, _ in asked if statement.name not in known]
    raw.pgconn.enter_pipeline_mode()
    for statement in new:
        raw.pgconn.send_prepare(statement.name, statement.sql)
    for statement, data, forms in asked:
        raw.pgconn.send_query_prepared(statement.name, data, forms, Format.BINARY)
    raw.pgconn.pipeline_sync()
    results = yield from _answers(raw)
    raw.pgconn.exit_pipeline_mode()
    done = zip(new, results, strict=False)
    known.update(statement.name for statement, result in done if result.status == ExecStatus.COMMAND_OK)
    return results


def _answers(raw: Connection) -> Talk:
    pgconn = raw.pgconn
    results: list[PGresult] = []
    while pgconn.flush():
        if (yield Wait.RW) & Ready.R:
            pgconn.consume_input()
    while True:
        while pgconn.is_busy():
            if (yield Wait.R):
                pgconn.consume_input()
        result = pgconn.get_result()
        if result is None and pgconn.status == ConnStatus.BAD:
            raise psycopg.OperationalError("the connection to the database is lost")
        if result is not None and result.status == ExecStatus.PIPELINE_SYNC:
            return results
        if result is not None:
            results.append(result)


def _given(value: Any) -> tuple[bytes | None, Format]:
    """A parameter and its form; the server knows the types from the statement."""
    if value is None:
        return None, Format.TEXT
    if isinstance(value, bytes):
        return value, Format.BINARY
    if isinstance(value, UUID):
        return value.bytes, Format.BINARY
    text = (_array(value) if isinstance(value, list) else str(value)).encode()
    if b"\0" in text:
        raise psycopg.DataError("PostgreSQL text cannot hold a NUL character")
    return text, Format.TEXT


def _array(items: list[str]) -> str:
    quoted = (item.replace("\\", "\\\\").replace('"', '\\"') for item in items)
    return "{" + ",".join(f'"{item}"' for item in quoted) + "}"


def _row(result: PGresult) -> Row | None:
    if result.ntuples == 0:
        return None
    row: Row = {}
    for column in range(result.nfields):
        data = result.get_value(0, column)
        row[(result.fname(column) or b"").decode()] = None if data is None else _READERS[result.ftype(column)](data)
    return row
