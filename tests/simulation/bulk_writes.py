"""The many rows of one statement (runs/bulk.py), written into memory: the same rows, the same guards, no SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError
from django.db.models import Model

from runs import bulk
from tests.simulation.patches import Patches
from tests.simulation.rows import given
from tests.simulation.tables import Memory


@dataclass(frozen=True)
class Written:
    """One statement: what it does, to as many rows as it has to touch."""

    sql: str
    run: Callable[[], bool]


def patch(patches: Patches, memory: Callable[[], Memory]) -> None:
    def inserts(rows: Sequence[Model], *, once: bool = False) -> Iterator[Written]:
        for row in rows:
            yield Written("INSERT", lambda row=row: _insert(memory(), row, once=once))

    def updates(changes: Sequence[bulk.Change]) -> Iterator[Written]:
        for change in changes:
            yield Written("UPDATE", lambda change=change: _update(memory(), change))

    def send(statements: Sequence[Written]) -> list[Written]:
        return [one for one in list(statements) if not one.run()]

    patches.attribute(bulk, "inserts", inserts)
    patches.attribute(bulk, "updates", updates)
    patches.attribute(bulk, "send", send)


def _insert(memory: Memory, row: Model, *, once: bool) -> bool:
    try:
        with memory.atomic():
            memory.insert(type(row), given(row))
    except IntegrityError:
        if not once:
            raise
    return True


def _update(memory: Memory, change: bulk.Change) -> bool:
    model = type(change.row)
    held = memory.by_id(model, change.row.pk)
    guards = {model._meta.get_field(name).attname: value for name, value in change.guard.items()}
    if held is None or any(held[name] != value for name, value in guards.items()):
        return False
    with memory.atomic():
        memory.change(model, held, change.values)
    return True


@contextmanager
def told(memory: Memory, before: Any) -> Iterator[None]:
    """`connection.execute_wrapper`: whoever gathers is asked before each statement, of reads and of writes."""
    held = memory.reads, memory.writes
    memory.reads = lambda: before(_nothing, "SELECT", None, False, None)
    memory.writes = lambda: before(_nothing, "UPDATE", None, False, None)
    try:
        yield
    finally:
        memory.reads, memory.writes = held


def _nothing(*_: Any) -> None:
    return None
