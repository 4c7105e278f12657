"""The questions that the code puts to its tables, answered over rows in memory: filters, paths, expressions.

Rows are plain dicts by column. What PostgreSQL says of nothing holds here too: a comparison with it is never true.
A lookup or an expression that nobody has needed yet raises Unknown, with its name.
"""

from __future__ import annotations

import operator
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Protocol

from django.core.exceptions import FieldDoesNotExist
from django.db.models import Exists, F, Field, JSONField, Model, OuterRef, Q, Subquery, Value
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Concat

from runs.querysets import AppNow, NextNumber, TransactionId

Row = dict[str, Any]
Test = Callable[[Row], bool]
NOTHING = object()


class Unknown(Exception):
    """The rows in memory were asked for something that they cannot do yet: add it in tests/simulation/queries.py."""


class Tables(Protocol):
    """What a question needs of the tables it is put to."""

    def rows(self, model: type[Model]) -> Iterable[Row]: ...
    def by_id(self, model: type[Model], key: Any) -> Row | None: ...
    def pointing(self, model: type[Model], column: str, key: Any) -> Iterable[Row]: ...
    def time(self) -> Any: ...
    def outside(self, name: str) -> Any: ...
    def transaction(self) -> int: ...


Read = Callable[[Tables, Row], list[Any]]


def holds(tables: Tables, model: type[Model], question: Q) -> Test:
    """The test of a row that a Q stands for."""
    parts = [_part(tables, model, child) for child in question.children]
    if len(parts) == 1:
        joined: Test = parts[0]
    elif question.connector == Q.OR:
        joined = lambda row: any(part(row) for part in parts)  # noqa: E731
    else:
        joined = lambda row: all(part(row) for part in parts)  # noqa: E731
    return (lambda row: not joined(row)) if question.negated else joined


def _part(tables: Tables, model: type[Model], child: Any) -> Test:
    if isinstance(child, Q):
        return holds(tables, model, child)
    if isinstance(child, Exists):
        return _exists(tables, model, child)
    return _condition(tables, model, *child)


def _exists(tables: Tables, model: type[Model], asked: Exists) -> Test:
    """A subquery about the row outside, as Django's own queryset has it."""
    standing = getattr(asked.query, "rows", None)
    if standing is not None:
        return lambda row: standing.seen_from(model, row).exists()
    inner = asked.query.model
    pairs = [(one.lhs.target.attname, one.lookup_name, one.rhs) for one in asked.query.where.children]

    def test(row: Row) -> bool:
        wanted = [(column, _COMPARE[lookup], _outside(model, rhs, row)) for column, lookup, rhs in pairs]
        return any(
            all(compare(one[column], value) for column, compare, value in wanted) for one in tables.rows(inner)
        )

    return test


def _outside(model: type[Model], value: Any, row: Row) -> Any:
    return row[model._meta.get_field(value.name).attname] if isinstance(value, F) else value


def _condition(tables: Tables, model: type[Model], name: str, wanted: Any) -> Test:
    read, lookup = path(model, name)
    compare = _COMPARE.get(lookup)
    if compare is None:
        raise Unknown(f"lookup {lookup} in {model.__name__}.{name}")
    if isinstance(wanted, OuterRef):
        return lambda row: any(compare(one, tables.outside(wanted.name)) for one in read(tables, row))
    if isinstance(wanted, F):
        other, _ = path(model, wanted.name)
        return lambda row: any(compare(one, two) for one in read(tables, row) for two in other(tables, row))
    plain, column = plain_value(tables, wanted), _own_column(model, name)
    if column is not None:
        return lambda row: compare(row[column], plain)
    return lambda row: any(compare(one, plain) for one in read(tables, row))


def plain_value(tables: Tables, value: Any) -> Any:
    """A value as a column holds it: a row's id for the row, the time for the clock, ids for a subquery."""
    if value is None or isinstance(value, (str, int, datetime, uuid.UUID)):
        return value
    if isinstance(value, Model):
        return value.pk
    if isinstance(value, AppNow):
        return tables.time()
    if isinstance(value, TransactionId):
        return tables.transaction()
    if isinstance(value, NextNumber):
        return tables.next_number()
    if isinstance(value, Value):
        return value.value
    if isinstance(value, CombinedExpression):
        return _SUM[value.connector](plain_value(tables, value.lhs), plain_value(tables, value.rhs))
    if isinstance(value, Subquery):
        return next(iter(value.query.rows.flat_values()), None)
    if hasattr(value, "resolve_expression"):
        return value if not hasattr(value, "flat_values") else value.flat_values()
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain_value(tables, one) for one in value]
    return value


def computed(tables: Tables, model: type[Model], expression: Any, row: Row) -> Any:
    """What an expression of an UPDATE comes to for one row."""
    if isinstance(expression, CombinedExpression):
        left, right = (computed(tables, model, side, row) for side in (expression.lhs, expression.rhs))
        return _SUM[expression.connector](left, right)
    if isinstance(expression, F):
        return path(model, expression.name)[0](tables, row)[0]
    if isinstance(expression, Concat) or type(expression).__name__ == "ConcatPair":
        return "".join(str(computed(tables, model, one, row)) for one in expression.source_expressions)
    found = plain_value(tables, expression)
    if hasattr(found, "resolve_expression"):
        raise Unknown(f"expression {type(expression).__name__} in an update of {model.__name__}")
    return found


@lru_cache(maxsize=4096)
def path(model: type[Model], name: str) -> tuple[Read, str]:
    """How to read what a path such as `action__effect` names, and the lookup that it ends with."""
    first, _, rest = name.partition("__")
    field = model._meta.pk if first == "pk" else _field(model, first)
    if field is None:
        raise Unknown(f"field {first} of {model.__name__}")
    if not field.concrete:
        return _through_reverse(field, rest)
    column = field.attname
    if not rest or (rest in _COMPARE and not _names_a_field(field, rest)):
        return (lambda tables, row: [row[column]]), rest or "exact"
    if field.is_relation:
        return _through(field.related_model, column, rest)
    if isinstance(field, JSONField):
        keys, lookup = _keys(rest)
        return (lambda tables, row: [_dug(row[column], keys)]), lookup
    raise Unknown(f"lookup {rest} in {model.__name__}.{name}")


@lru_cache(maxsize=4096)
def _own_column(model: type[Model], name: str) -> str | None:
    """The row's own column where a path names no more than that and a lookup."""
    first, _, rest = name.partition("__")
    field = model._meta.pk if first == "pk" else _field(model, first)
    plain = field is not None and field.concrete and (not rest or rest in _COMPARE)
    return str(field.attname) if plain and not (rest and _names_a_field(field, rest)) else None


def _field(model: type[Model], name: str) -> Any:
    try:
        return model._meta.get_field(name)
    except FieldDoesNotExist:
        return None


def _names_a_field(field: Field[Any, Any], name: str) -> bool:
    return field.is_relation and _field(field.related_model, name) is not None


def _through(model: type[Model], column: str, rest: str) -> tuple[Read, str]:
    """Along a foreign key: nothing where it points nowhere."""
    inner, lookup = path(model, rest)

    def read(tables: Tables, row: Row) -> list[Any]:
        found = tables.by_id(model, row[column]) if row[column] is not None else None
        return inner(tables, found) if found is not None else [None]

    return read, lookup


def _through_reverse(relation: Any, rest: str) -> tuple[Read, str]:
    """Along a foreign key from its other end: whatever any of the rows that point here says."""
    model, column = relation.related_model, relation.field.attname
    inner, lookup = path(model, rest if rest and rest not in _COMPARE else f"pk__{rest or 'exact'}")

    def read(tables: Tables, row: Row) -> list[Any]:
        found = [value for one in tables.pointing(model, column, row["id"]) for value in inner(tables, one)]
        return found or [None]

    return read, lookup


def _keys(rest: str) -> tuple[list[str], str]:
    keys = rest.split("__")
    return (keys[:-1], keys[-1]) if keys[-1] in _COMPARE else (keys, "exact")


def _dug(value: Any, keys: list[str]) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _holds_in(value: Any, wanted: Any) -> bool:
    """What jsonb's `@>` says, as far as it is asked here; for text, whether it stands in it."""
    if isinstance(wanted, Mapping):
        return isinstance(value, Mapping) and all(
            key in value and _holds_in(value[key], one) for key, one in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(value, list) and all(any(_holds_in(has, one) for has in value) for one in wanted)
    return bool(value == wanted)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, wanted: value is not None and wanted is not None and bool(compare(value, wanted))


def _exact(value: Any, wanted: Any) -> bool:
    if wanted is None:
        return value is None
    return value is not None and bool(value == wanted)


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "exact": _exact,
    "in": lambda value, wanted: value is not None and value in wanted,
    "among": lambda value, wanted: value is not None and value in wanted,
    "isnull": lambda value, wanted: (value is None) == bool(wanted),
    "lt": _ordered(operator.lt),
    "lte": _ordered(operator.le),
    "gt": _ordered(operator.gt),
    "gte": _ordered(operator.ge),
    "contains": _holds_in,
    "startswith": lambda value, wanted: isinstance(value, str) and value.startswith(wanted),
    "endswith": lambda value, wanted: isinstance(value, str) and value.endswith(wanted),
}
_SUM: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
