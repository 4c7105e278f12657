"""Several questions to PostgreSQL in one round trip, each answered as the ORM would have answered it alone.

Where a case has to be read, waiting for the network between its parts costs more than the parts (PERFORMANCE 5).
The rows come from one transaction, the statements run in the order in which they stand here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Model, QuerySet

from runs import gathering

_NOTHING = ("SELECT WHERE false", ())


@dataclass(frozen=True)
class Statement:
    """SQL of its own: its rows as tuples, or as instances of a model whose columns it gives."""

    sql: str
    params: Sequence[Any] = field(default_factory=tuple)
    model: type[Model] | None = None


Question = Statement | QuerySet[Any]


def read_together(*questions: Question) -> list[list[Any]]:
    """The answers in the order of the questions. The first one opens the transaction if none has been spoken in."""
    gathering.flush()
    connection.ensure_connection()
    raw = connection.connection
    with connection.wrap_database_errors:
        asked = [_asked(question) for question in questions]
        with raw.pipeline():
            cursors = [raw.execute(sql, params or None) for sql, params in asked]
    # Not read before the pipeline has ended: a row that is asked for earlier costs a round trip of its own.
    return [_read(question, cursor) for question, cursor in zip(questions, cursors, strict=True)]


def _asked(question: Question) -> tuple[str, Sequence[Any]]:
    if isinstance(question, Statement):
        return question.sql, question.params
    try:
        sql, params = question.query.sql_with_params()
    except EmptyResultSet:
        return _NOTHING
    return sql, params


def _read(question: Question, cursor: Any) -> list[Any]:
    model = question.model
    if model is None:
        return list(cursor.fetchall())
    places = {column.name: place for place, column in enumerate(cursor.description)}
    return _instances(model, places, cursor.fetchall())


def _instances(model: type[Model], places: dict[str, int], rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Rows as instances, each value read by its own field."""
    fields = model._meta.concrete_fields
    order = [places[one.column] for one in fields if one.column in places]
    if not order:
        return []
    compiler = model._default_manager.all().query.get_compiler(connection=connection)
    converters = compiler.get_converters([one.get_col(model._meta.db_table) for one in fields])
    values = ([row[place] for place in order] for row in rows)
    read = compiler.apply_converters(values, converters) if converters else values
    return [model.from_db(connection.alias, [one.attname for one in fields], list(one)) for one in read]
