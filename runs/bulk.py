"""Many rows in one statement: INSERT, and UPDATE under a guard, with all their values in one document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import connection, models
from django.db.models import Field, Model
from django.db.models.expressions import DatabaseDefault
from pydantic_core import to_json

_TYPES: tuple[tuple[type[Field[Any, Any]], str], ...] = (
    (models.UUIDField, "uuid"),
    (models.DateTimeField, "timestamptz"),
    (models.BooleanField, "boolean"),
    (models.FloatField, "float8"),
    (models.IntegerField, "bigint"),
    (models.JSONField, "jsonb"),
)


@dataclass(frozen=True)
class Bulk:
    """One statement, and how many rows it has to touch: fewer means that somebody was faster."""

    sql: str
    document: str
    rows: int | None


@dataclass(frozen=True)
class Change:
    """One row's UPDATE: `guard` is what its columns must still hold."""

    row: Model
    guard: dict[str, Any]
    values: dict[str, Any]


def inserts(rows: Sequence[Model], *, once: bool = False) -> Iterator[Bulk]:
    """INSERT of rows of one model; columns that the database fills are left to it.

    `once`: a row that is there already stays as it is.
    """
    groups: dict[tuple[str, ...], list[Model]] = {}
    for row in rows:
        groups.setdefault(_left_out(row), []).append(row)
    for left, alike in groups.items():
        names = [name for name in _attnames(type(alike[0])) if name not in left]
        fields = [_field(type(alike[0]), name) for name in names]
        columns = ", ".join(f'"{field.column}"' for field in fields)
        picked = ", ".join(_picked(field, place) for place, field in enumerate(fields))
        end = " ON CONFLICT DO NOTHING" if once else ""
        into = f'INSERT INTO "{alike[0]._meta.db_table}" ({columns})'
        sql = f"{into} SELECT {picked} FROM {_rows(fields)}{end}"  # noqa: S608  (names of our own columns)
        given = map(attrgetter(*names), alike)
        yield Bulk(sql, _document(fields, given), None if once else len(alike))


def updates(changes: Sequence[Change]) -> Iterator[Bulk]:
    """UPDATE of rows of one model, each under its own guard."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Change]] = {}
    for change in changes:
        groups.setdefault((tuple(change.guard), tuple(change.values)), []).append(change)
    for (guarded, changed), alike in groups.items():
        yield _update(alike, guarded, changed)


def _update(alike: list[Change], guarded: tuple[str, ...], changed: tuple[str, ...]) -> Bulk:
    model = type(alike[0].row)
    fields = [_field(model, name) for name in ("id", "tenant_id", *guarded, *changed)]
    told = [(field.column, _picked(field, place)) for place, field in enumerate(fields)]
    guards = slice(2, 2 + len(guarded))
    held = [f't."{column}" = {value}' for column, value in told[:2]]
    held += [f't."{column}" IS NOT DISTINCT FROM {value}' for column, value in told[guards]]
    moved = ", ".join(f'"{column}" = {value}' for column, value in told[guards.stop :])
    what = f'UPDATE "{model._meta.db_table}" t SET {moved}'  # noqa: S608  (names of our own columns)
    sql = f"{what} FROM {_rows(fields)} WHERE {' AND '.join(held)}"
    given = [
        [one.row.pk, getattr(one.row, "tenant_id"), *one.guard.values(), *one.values.values()]  # noqa: B009
        for one in alike
    ]
    return Bulk(sql, _document(fields, given), len(alike))


def _left_out(row: Model) -> tuple[str, ...]:
    """Columns for which the database has a value of its own and the row has none."""
    given = row.__dict__
    return tuple(name for name in _defaulted(type(row)) if isinstance(given.get(name), DatabaseDefault))


@lru_cache(maxsize=100)
def _defaulted(model: type[Model]) -> tuple[str, ...]:
    return tuple(field.attname for field in model._meta.concrete_fields if field.has_db_default())


@lru_cache(maxsize=100)
def _attnames(model: type[Model]) -> tuple[str, ...]:
    return tuple(field.attname for field in model._meta.concrete_fields)


@lru_cache(maxsize=1000)
def _field(model: type[Model], name: str) -> Field[Any, Any]:
    """By its name or, for a link, by the name of its column."""
    return next(field for field in model._meta.concrete_fields if name in (field.name, field.attname))


@lru_cache(maxsize=1000)
def _type(field: Field[Any, Any]) -> str:
    """As what a value leaves the document; text for all that PostgreSQL takes into its column from text."""
    target = field.target_field if isinstance(field, models.ForeignKey) else field
    if isinstance(target, ArrayField):
        return str(target.db_type(connection))
    return next((name for kind, name in _TYPES if isinstance(target, kind)), "text")


def _picked(field: Field[Any, Any], place: int) -> str:
    return f"decode(v.c{place}, 'hex')" if isinstance(field, models.BinaryField) else f"v.c{place}"


def _rows(fields: Sequence[Field[Any, Any]]) -> str:
    columns = ", ".join(f"c{place} {_type(field)}" for place, field in enumerate(fields))
    return f"json_to_recordset(%s::json) AS v({columns})"


def _document(fields: Sequence[Field[Any, Any]], given: Iterable[Sequence[Any]]) -> str:
    """All rows as one text: an array for each column takes the driver several times as long to write."""
    names = [f"c{place}" for place in range(len(fields))]
    rows = [dict(zip(names, row, strict=True)) for row in given]
    return to_json(rows, bytes_mode="hex", fallback=_told).decode()


def _told(value: object) -> object:
    """What JSON does not know: a row that is given for a link stands for its key."""
    if isinstance(value, Model):
        return value.pk
    raise TypeError(f"a column cannot be given {type(value).__name__}")


def send(statements: Sequence[Bulk]) -> list[Bulk]:
    """Send them in this order and in one round trip; returns those that touched fewer rows than they should."""
    connection.ensure_connection()
    raw = connection.connection
    with connection.wrap_database_errors:
        with raw.pipeline():
            cursors = [raw.execute(one.sql, [one.document]) for one in statements]
        touched = [cursor.rowcount for cursor in cursors]
    return [one for one, rows in zip(statements, touched, strict=True) if one.rows is not None and rows != one.rows]
