"""Writes that are sent together, and rows that were read ahead: the careful way, for many runs at once.

While a gathering is open, what is inserted and what is moved waits, until something is read from the database or the
gathering ends; then all of it goes in one round trip. What was read ahead is answered from memory. So code that
handles one run does the same for five hundred, with as many statements as for one. Whatever nobody read ahead is read
as ever, and costs what it costs; a write that goes another way makes the gathering forget what it had read.

Outside of a gathering everything here goes to the database at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeVar

from django.db import connection
from django.db.models import F, Model, QuerySet, Value
from django.db.models.expressions import CombinedExpression

from runs import bulk, querysets
from runs.querysets import AppNow

T = TypeVar("T", bound=Model)
V = TypeVar("V")
Prepare = Callable[[Sequence[Any]], None]
Narrow = Callable[[QuerySet[T]], QuerySet[T]]
_READS = ("SELECT", "SAVEPO", "RELEAS")


class Overtaken(Exception):
    """A row that was to change is no longer as it was read: somebody did not wait for its run's lock."""


class Gathering:
    """What waits to be written, and what was read ahead."""

    def __init__(self) -> None:
        self.is_spoiled = False
        self.learned: dict[Any, Any] = {}
        self._sending = False
        self._changes: dict[Any, bulk.Change] = {}
        self._inserts: dict[type[Model], dict[Any, Model]] = {}
        self._once: set[type[Model]] = set()
        self._prepare: dict[type[Model], Prepare] = {}
        self._shelves: dict[tuple[type[Model], str], dict[Any, list[Any]]] = {}
        self._held: set[Any] = set()

    # --- reading ahead ---

    def read_ahead(self, rows: QuerySet[T], field: str, keys: Iterable[Any]) -> list[T]:
        """Read the rows of all these keys, oldest first, and keep them for `rows`."""
        keys = list(keys)
        found = list(rows.filter(**{f"{field}__among": keys}).order_by("id")) if keys else []
        self.shelve(rows.model, field, keys, found)
        return found

    def shelve(self, model: type[T], field: str, keys: Iterable[Any], found: Iterable[T]) -> None:
        """Keep rows that are all there are of these keys."""
        shelf = self._shelves[(model, field)] = {key: [] for key in keys}
        for row in found:
            shelf[getattr(row, field)].append(row)
            self._held.add(_key(row))

    def hold(self, rows: Iterable[Model]) -> None:
        """These rows, locked or under their run's lock, are in memory as they are in the database."""
        self._held.update(_key(row) for row in rows)

    def found(self, model: type[T], field: str, key: Any) -> list[T] | None:
        return None if self.is_spoiled else self._shelves.get((model, field), {}).get(key)

    def holds(self, row: Model) -> bool:
        return not self.is_spoiled and _key(row) in self._held

    # --- writing ---

    def insert(self, row: Model, *, once: bool, prepare: Prepare | None) -> None:
        model = type(row)
        for name in _timed(model):
            _fill(row, name)
        self._inserts.setdefault(model, {})[row.pk] = row
        if once:
            self._once.add(model)
        if prepare is not None:
            self._prepare[model] = prepare
        for (kept, name), shelf in self._shelves.items():
            if kept is model:
                shelf.setdefault(getattr(row, name), []).append(row)
        self._held.add(_key(row))

    def change(self, row: Model, guard: dict[str, Any], values: dict[str, Any]) -> bool:
        """Queue the change if the row in memory is as the guard wants it; the row follows at once."""
        if any(getattr(row, name) != value for name, value in guard.items()):
            return False
        if "version" in values:
            guard = {"version": getattr(row, "version"), **guard}  # noqa: B009
        values = {name: _plain(row, value) for name, value in values.items()}
        earlier = self._changes.get(_key(row))
        if self._is_new(row) and "state" not in values:
            pass  # it goes out as it is by then
        elif earlier is not None and "state" not in earlier.values:
            kept = {name: value for name, value in guard.items() if name not in earlier.values}
            self._changes[_key(row)] = bulk.Change(row, {**kept, **earlier.guard}, {**earlier.values, **values})
        else:
            if earlier is not None or self._is_new(row):
                self.flush()
            self._changes[_key(row)] = bulk.Change(row, guard, values)
        for name, value in values.items():
            setattr(row, name, value)
        return True

    def _is_new(self, row: Model) -> bool:
        return row.pk in self._inserts.get(type(row), {})

    def flush(self) -> None:
        """Send what waits. Raises Overtaken where a guard did not hold; the transaction has to be given up then."""
        changes, self._changes = self._changes, {}
        inserts, self._inserts = self._inserts, {}
        if self._sending or not (changes or inserts):
            self._changes, self._inserts = changes, inserts
            return
        self._sending = True
        try:
            for model, prepare in self._prepare.items():
                if model in inserts:
                    prepare(list(inserts[model].values()))
            late = bulk.send([*self._updates(changes.values()), *self._new_rows(inserts)])
        finally:
            self._sending = False
        if late:
            raise Overtaken(f"not every row was as it had been read: {late[0].sql[:60]}")

    def _updates(self, changes: Iterable[bulk.Change]) -> Iterator[bulk.Bulk]:
        by_model: dict[type[Model], list[bulk.Change]] = {}
        for change in changes:
            by_model.setdefault(type(change.row), []).append(change)
        for alike in by_model.values():
            yield from bulk.updates(alike)

    def _new_rows(self, inserts: dict[type[Model], dict[Any, Model]]) -> Iterator[bulk.Bulk]:
        for model, rows in inserts.items():
            yield from bulk.inserts(list(rows.values()), once=model in self._once)

    def before(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        """Django asks this before each of its own statements: what waits goes first, and a write spoils."""
        if not self._sending:
            self.flush()
            self.is_spoiled = self.is_spoiled or sql.lstrip()[:6].upper() not in _READS
        return execute(sql, params, many, context)


_open: ContextVar[Gathering | None] = ContextVar("gathering", default=None)


@contextmanager
def gathered() -> Iterator[Gathering]:
    """Gather everything inside the block, in one open transaction and by one reading of the clock."""
    if not connection.in_atomic_block:
        raise RuntimeError("writes are gathered inside a transaction only")
    gathering = Gathering()
    token = _open.set(gathering)
    try:
        with querysets.held_clock(), connection.execute_wrapper(gathering.before):
            yield gathering
            gathering.flush()
    finally:
        _open.reset(token)


def is_open() -> bool:
    """Whether what is asked now is asked for many rows at once."""
    return _open.get() is not None


def insert(row: Model, *, once: bool = False, prepare: Prepare | None = None) -> None:
    """Write a new row. `once`: unless it is there already. `prepare` fills in what is only known when it is sent."""
    gathering = _open.get()
    if gathering is not None:
        return gathering.insert(row, once=once, prepare=prepare)
    if prepare is not None:
        prepare([row])
    if once:
        type(row)._default_manager.bulk_create([row], ignore_conflicts=True)
    else:
        row.save(force_insert=True)
    return None


def change(row: Model, guard: dict[str, Any], values: dict[str, Any]) -> bool:
    """One guarded UPDATE, which the row in memory follows; False if the row was no longer as the guard wants it."""
    gathering = _open.get()
    if gathering is not None:
        return gathering.change(row, guard, values)
    if not type(row)._default_manager.filter(pk=row.pk, **guard).update(**values):
        return False
    _follow(row, values)
    return True


def rows(model: type[T], field: str, key: Any, narrow: Narrow[T] | None = None) -> list[T]:
    """The rows whose `field` is `key`, oldest first: from memory where they were read ahead.

    `narrow` spares the database what the caller does not want; from memory that comes too, so the caller chooses.
    """
    gathering = _open.get()
    known = gathering.found(model, field, key) if gathering is not None else None
    if known is not None:
        return list(known)
    found = model._default_manager.filter(**{field: key}).order_by("id")
    return list(narrow(found) if narrow is not None else found)


def once(key: Any, learn: Callable[[], V]) -> V:
    """What `learn` finds out: once for all that is gathered, each time outside of a gathering."""
    gathering = _open.get()
    if gathering is None:
        return learn()
    if key not in gathering.learned:
        gathering.learned[key] = learn()
    found: V = gathering.learned[key]
    return found


def refresh(row: Model) -> None:
    """Bring the row in memory to what the database holds, unless that is what it holds."""
    gathering = _open.get()
    if gathering is None or not gathering.holds(row):
        row.refresh_from_db()


def flush() -> None:
    """Send what waits, for whoever asks the database past Django."""
    gathering = _open.get()
    if gathering is not None:
        gathering.flush()


def _key(row: Model) -> tuple[type[Model], Any]:
    return type(row), row.pk


@lru_cache(maxsize=100)
def _timed(model: type[Model]) -> tuple[str, ...]:
    """Columns that the database fills with its time."""
    fields = model._meta.concrete_fields
    return tuple(one.attname for one in fields if isinstance(getattr(one, "db_default", None), AppNow))


def _fill(row: Model, name: str) -> None:
    """The time that the database would fill in."""
    if hasattr(getattr(row, name), "resolve_expression"):
        setattr(row, name, querysets.read_clock())


def _plain(row: Model, value: Any) -> Any:
    """What an expression comes to for this row: the time, or a counter one further."""
    if isinstance(value, AppNow):
        return querysets.read_clock()
    if isinstance(value, CombinedExpression) and isinstance(value.lhs, F) and isinstance(value.rhs, Value):
        step = value.rhs.value if value.connector == "+" else -value.rhs.value
        return getattr(row, value.lhs.name) + step  # type: ignore[attr-defined]
    if hasattr(value, "resolve_expression"):
        raise TypeError(f"{value} cannot be worked out without the database")
    return value


def _follow(row: Model, values: dict[str, Any]) -> None:
    """Only what the database computed has to be read back."""
    computed = [name for name, value in values.items() if hasattr(value, "resolve_expression")]
    for name, value in values.items():
        if name not in computed:
            setattr(row, name, value)
    if computed:
        row.refresh_from_db(fields=computed)
