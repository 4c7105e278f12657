"""Tables in memory that keep what the models declare: defaults, unique and check constraints, moves of a state.

Transactions nest and roll back, so that a process that dies in one leaves nothing of it. One writer at a time: the
simulator switches between its processes only where they wait, and nothing may wait inside a transaction (I3).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import IntegrityError, InternalError
from django.db.models import CheckConstraint, Model, UniqueConstraint
from django.db.models.base import ModelState
from django.db.models.fields import NOT_PROVIDED

from recovery import models as asked
from runs import models as facts
from runs import states
from tests.simulation.queries import Row, computed, holds, path, plain_value

MACHINE_OF: dict[type[Model], str] = {
    facts.Run: "run",
    facts.Action: "action",
    asked.HumanTask: "task",
    asked.Decision: "decision",
    asked.DeadLetter: "dead_letter",
    facts.Circuit: "circuit",
}
APPEND_ONLY = (facts.Event, facts.Evidence)
KEPT = ("version",)


class Refused(InternalError):
    """PostgreSQL's trigger says no: there is no such move, or a row that is only appended to was changed."""


class Memory:
    """Every table of one simulated database."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.time = clock
        self.tables: dict[type[Model], dict[Any, Row]] = {}
        self.depth = 0
        self.commits = 0
        self._log: list[tuple[type[Model], Any, Row | None]] = []
        self._after: list[Callable[[], Any]] = []
        self._ids = 0
        self._numbers = 0
        self.around: tuple[type[Model], Row] | None = None
        self.reads: Callable[[], None] = lambda: None
        self.writes: Callable[[], None] = lambda: None

    # --- reading ------------------------------------------------------------------------------------------------

    def rows(self, model: type[Model]) -> Iterable[Row]:
        return self.tables.get(model, {}).values()

    def read(self, model: type[Model]) -> Iterable[Row]:
        """The same for a question of the code: what waits to be written is written first."""
        self.reads()
        return self.rows(model)

    def by_id(self, model: type[Model], key: Any) -> Row | None:
        return self.tables.get(model, {}).get(key)

    def pointing(self, model: type[Model], column: str, key: Any) -> Iterator[Row]:
        return (row for row in self.rows(model) if row[column] == key)

    def outside(self, name: str) -> Any:
        """What the row around a subquery holds."""
        assert self.around is not None
        model, row = self.around
        return row[column(model, name)]

    def transaction(self) -> int:
        return self.commits + 1

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    # --- writing ------------------------------------------------------------------------------------------------

    def new_id(self) -> uuid.UUID:
        """Ids that rise with time and are the same for the same seed."""
        self._ids += 1
        return uuid.UUID(int=(7 << 76) | (2 << 62) | (self._ids << 80) | self._ids)

    def insert(self, model: type[Model], values: dict[str, Any]) -> Row:
        row: Row = {}
        for field, default in _columns(model):
            value = values.get(field.name, values.get(field.attname, NOT_PROVIDED))
            if field.primary_key and value is NOT_PROVIDED:
                value = values.get("pk", NOT_PROVIDED)
            row[field.attname] = self._default(default) if value is NOT_PROVIDED else plain_value(self, value)
        if unknown := set(values) - _names(model):
            raise TypeError(f"{model.__name__} has no {', '.join(sorted(unknown))}")
        table = self.tables.setdefault(model, {})
        if row["id"] in table:
            raise IntegrityError(f"{model.__name__} {row['id']} exists")
        self._check(model, row, None)
        self._log.append((model, row["id"], None))
        table[row["id"]] = row
        return row

    def change(self, model: type[Model], old: Row, changes: dict[str, Any]) -> None:
        if model in APPEND_ONLY:
            raise Refused(f"{model.__name__} is only appended to")
        new = dict(old)
        for name, value in changes.items():
            field = model._meta.get_field(name)
            new[field.attname] = (
                computed(self, model, value, old) if _is_expression(value) else plain_value(self, value)
            )
        machine = MACHINE_OF.get(model)
        if machine and new["state"] != old["state"] and not states.may_move(machine, old["state"], new["state"]):
            raise Refused(f"{machine}: {old['state']} → {new['state']}")
        self._check(model, new, old)
        self._log.append((model, old["id"], old))
        self.tables[model][old["id"]] = new

    def delete(self, model: type[Model], row: Row) -> None:
        if model in APPEND_ONLY:
            raise Refused(f"{model.__name__} is only appended to")
        self._log.append((model, row["id"], row))
        del self.tables[model][row["id"]]

    def _default(self, default: Any) -> Any:
        kind, value = default
        if kind == "id":
            return self.new_id()
        if kind == "expression":
            return plain_value(self, value)
        return value() if kind == "call" else value

    def _check(self, model: type[Model], row: Row, old: Row | None) -> None:
        for field, _ in _columns(model):
            if row[field.attname] is None and not field.null:
                raise IntegrityError(f"{model.__name__}.{field.attname} is null")
        for rule in _rules(model):
            if not rule.holds(self, model, row, old):
                raise IntegrityError(f"{rule.name}: {model.__name__} {row['id']}")

    # --- transactions -------------------------------------------------------------------------------------------

    @contextmanager
    def atomic(self, *_: Any, **__: Any) -> Iterator[None]:
        if self.depth:
            self.reads()  # a savepoint is a statement as well
        mark, waiting = len(self._log), len(self._after)
        self.depth += 1
        try:
            yield
        except BaseException:
            self.depth -= 1
            self._undo(mark)
            del self._after[waiting:]
            raise
        self.depth -= 1
        if self.depth == 0:
            self._commit()

    def on_commit(self, call: Callable[[], Any], *_: Any, **__: Any) -> None:
        self._after.append(call)
        if self.depth == 0:
            self._commit()

    def _commit(self) -> None:
        if self._log:
            self.commits += 1
        self._log.clear()
        after, self._after = self._after, []
        for call in after:
            call()

    def _undo(self, mark: int) -> None:
        while len(self._log) > mark:
            model, key, old = self._log.pop()
            if old is None:
                del self.tables[model][key]
            else:
                self.tables[model][key] = old

    @property
    def in_atomic_block(self) -> bool:
        return self.depth > 0


def instance(model: type[Model], row: Row) -> Any:
    """A row as the code knows it. Changing it changes nothing in the table."""
    made = model.__new__(model)
    made.__dict__.update(row)
    made._state = ModelState()
    made._state.adding = False
    made._state.db = "default"
    return made


def _is_expression(value: Any) -> bool:
    return hasattr(value, "resolve_expression")


@lru_cache(maxsize=64)
def _columns(model: type[Model]) -> list[tuple[Any, tuple[str, Any]]]:
    return [(field, _default_of(field)) for field in model._meta.concrete_fields]


def _default_of(field: Any) -> tuple[str, Any]:
    if field.primary_key and field.default is facts.new_id:
        return "id", None
    if field.default is not NOT_PROVIDED:
        return ("call", field.default) if callable(field.default) else ("plain", field.default)
    if field.db_default is not NOT_PROVIDED:
        return ("expression", field.db_default) if _is_expression(field.db_default) else ("plain", field.db_default)
    empty = "" if field.empty_strings_allowed and not field.null and field.blank else None
    return "plain", empty


@lru_cache(maxsize=64)
def _names(model: type[Model]) -> frozenset[str]:
    return frozenset({"pk", *(name for field, _ in _columns(model) for name in (field.name, field.attname))})


@dataclass(frozen=True)
class Rule:
    """A constraint as a model declares it: a check where it names no columns, else that no two rows share theirs."""

    name: str
    columns: tuple[str, ...]
    applies: Callable[[Row], bool] | None

    def holds(self, memory: Memory, model: type[Model], row: Row, old: Row | None) -> bool:
        if not self.columns:
            return self.applies is None or self.applies(row)
        mine = [row[column] for column in self.columns]
        if None in mine or (self.applies is not None and not self.applies(row)):
            return True
        return not any(self._twin(other, row, mine) for other in memory.rows(model))

    def _twin(self, other: Row, row: Row, mine: list[Any]) -> bool:
        same = all(other[column] == value for column, value in zip(self.columns, mine, strict=True))
        return same and other["id"] != row["id"] and (self.applies is None or self.applies(other))


@lru_cache(maxsize=64)
def _rules(model: type[Model]) -> list[Rule]:
    """Conditions of constraints ask nothing of other tables and know no time, so they are read once."""
    found = []
    for one in model._meta.constraints:
        condition = getattr(one, "condition", None)
        applies = holds(_NO_TABLES, model, condition) if condition is not None else None
        if isinstance(one, UniqueConstraint):
            found.append(Rule(one.name, tuple(model._meta.get_field(name).attname for name in one.fields), applies))
        elif isinstance(one, CheckConstraint):
            found.append(Rule(one.name, (), applies))
    unique = [field for field in model._meta.concrete_fields if field.unique and not field.primary_key]
    return [*found, *(Rule(f"{field.name}_once", (field.attname,), None) for field in unique)]


_NO_TABLES: Any = None


def column(model: type[Model], name: str) -> str:
    """The column that a field's name stands for."""
    return str(model._meta.get_field(name).attname) if name != "pk" else "id"


__all__ = ["Memory", "Refused", "column", "instance", "path"]
