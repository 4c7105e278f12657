"""Puts the real code on tables in memory and a virtual clock for as long as a simulation runs, and takes it off.

What is replaced is only what would leave the process: the ORM's managers, transactions, the handful of statements
that are written as SQL, the clock, and the requests of connectors. Everything that decides runs as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import uuid_utils.compat
from django.db import transaction
from django.db.models import Model

from recovery import models as asked
from runs import models as facts
from runs import querysets, together
from tests.simulation import bulk_writes
from tests.simulation.patches import ROOMS, Patches
from tests.simulation.queries import Unknown
from tests.simulation.rows import Door, Reverse, Rows, refresh, saved
from tests.simulation.tables import Memory


def models() -> list[type[Model]]:
    """Every table of the record."""
    found = [*vars(facts).values(), *vars(asked).values()]
    named = [one for one in found if isinstance(one, type) and issubclass(one, Model) and not one._meta.abstract]
    return list(dict.fromkeys(named))


@contextmanager
def installed(memory: Callable[[], Memory]) -> Iterator[Patches]:
    """The real code over `memory()`, which may be another one for each episode."""
    patches = Patches()
    try:
        for model in models():
            _open(patches, model, memory)
        _statements(patches, memory)
        yield patches
    finally:
        patches.undo()


def _open(patches: Patches, model: type[Model], memory: Callable[[], Memory]) -> None:
    patches.attribute(model, "objects", Door(model, memory))
    for kind in ("default_manager", "base_manager"):
        patches.entry(model._meta.__dict__, kind, Door(model, memory))
    patches.attribute(model, "refresh_from_db", refresh(memory))
    patches.attribute(model, "save", saved(memory))
    for relation in model._meta.related_objects:
        name = relation.get_accessor_name()
        if name and relation.one_to_many and relation.related_model in models():
            patches.attribute(model, name, Reverse(relation.related_model, relation.field.name, memory))


class Cursor:
    """The statements that the code writes as SQL, by what they do."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._told: list[tuple[Any, ...]] = []
        self.rowcount = 0

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def execute(self, sql: str, params: Any = ()) -> None:
        self._told = _say(self._memory, sql, params if isinstance(params, dict) else list(params or ()))
        self.rowcount = len(self._told)

    def fetchone(self) -> Any:
        return self._told[0] if self._told else None

    def fetchall(self) -> list[Any]:
        return self._told


class Connection:
    """As much of a connection as the code asks of one."""

    alias = "default"

    def __init__(self, memory: Callable[[], Memory]) -> None:
        self._memory = memory

    def cursor(self) -> Cursor:
        return Cursor(self._memory())

    @property
    def in_atomic_block(self) -> bool:
        return self._memory().in_atomic_block

    def execute_wrapper(self, before: Any) -> Any:
        return bulk_writes.told(self._memory(), before)


def _say(memory: Memory, sql: str, params: Any) -> list[tuple[Any, ...]]:
    if "set_config" in sql or "pg_advisory_xact_lock" in sql:
        return [(None,)]
    if "app_due_tenants" in sql:
        return [(row["id"],) for row in memory.rows(facts.Tenant)]
    if "app_tenant_of_decision" in sql:
        found = memory.by_id(asked.Decision, params[0])
        return [(found["tenant_id"] if found else None,)]
    if "app_tenant_of_slug" in sql:
        slugs = [row["id"] for row in memory.rows(facts.Tenant) if row["slug"] == params[0]]
        return [(slugs[0] if slugs else None,)]
    if "SET tasks_opened" in sql:
        row = memory.tables[facts.Tenant][params[1]]
        memory.change(facts.Tenant, row, {"tasks_opened": row["tasks_opened"] + params[0]})
        return [(row["tasks_opened"] + params[0],)]
    if "FROM runs_attempt" in sql and "runs_evidence" in sql:
        return [(_calls_through(memory, params),)]
    if "app_fold_totals" in sql:
        return [(0,)]
    if "current_setting" in sql:
        return [("",)]
    if "SELECT app_now()" in sql:
        return [(memory.time(),)]
    raise Unknown(f"a statement that is not known in memory: add it in tests/simulation/installing.py\n{sql}")


def _statements(patches: Patches, memory: Callable[[], Memory]) -> None:
    connection = Connection(memory)
    for name, module in list(sys.modules.items()):
        if name.startswith(ROOMS) and module is not None and "connection" in vars(module):
            patches.attribute(module, "connection", connection)
    bulk_writes.patch(patches, memory)
    patches.attribute(transaction, "atomic", lambda *a, **k: memory().atomic())
    patches.attribute(transaction, "on_commit", lambda call, *a, **k: memory().on_commit(call))
    patches.attribute(uuid_utils.compat, "uuid7", lambda *a, **k: memory().new_id())
    patches.everywhere(querysets.read_clock, lambda: memory().time())
    patches.everywhere(together.read_together, lambda *questions: [_answer(memory(), one) for one in questions])


def _answer(memory: Memory, question: Any) -> list[Any]:
    if isinstance(question, Rows):
        return list(question)
    if "INSERT INTO runs_circuit" in question.sql:
        return _one_fault_more(memory, *question.params)
    if "WITH RECURSIVE family" in question.sql:
        return _family(memory, *question.params)
    return list(_say(memory, question.sql, list(question.params)))


def _family(memory: Memory, run_id: Any, client: Any = None, _: Any = None, secret: bytes | None = None) -> list[Any]:
    """The run and those that it works for, the root first; for a client, only its own, and only with its secret."""
    found = list(Rows(facts.Run, lambda: memory).filter(pk=run_id))
    if client is not None:
        good = Rows(facts.AgentClient, lambda: memory).filter(
            pk=client, secret_hash=secret, revoked_at=None, expires_at__gt=memory.time()
        )
        found = found if good.exists() and found and found[0].client_id == client else []
    while found and found[0].parent_id is not None:
        found.insert(0, Rows(facts.Run, lambda: memory).get(pk=found[0].parent_id))
    return found


def _one_fault_more(memory: Memory, key: Any, tenant: Any, name: str, window: float, most: int) -> list[Any]:
    """A circuit with one more fault, made if need be; none if it is not closed."""
    now, found = memory.time(), Rows(facts.Circuit, lambda: memory).filter(tenant_id=tenant, name=name)
    row = found.first()
    if row is None:
        return [found.create(id=key, tenant_id=tenant, name=name, faults=[now])]
    if row.state != "closed":
        return []
    kept = [at for at in (*row.faults, now) if at > now - timedelta(seconds=window)]
    found.update(faults=sorted(kept)[-most:])
    return [found.get()]


def _calls_through(memory: Memory, asked_for: dict[str, Any]) -> int:
    """Calls and looks through a circuit since then, up to a limit of each."""
    since, limit = asked_for["since"], asked_for["limit"]
    calls = [row for row in memory.rows(facts.Attempt) if row["circuit"] == asked_for["name"] and row["ended_at"]]
    looks = [row for row in memory.rows(facts.Evidence) if row["kind"] == "probe"]
    seen = [row for row in looks if row["source"] == asked_for["source"] and row["started_at"] >= since]
    return min(limit, sum(row["dispatched_at"] >= since for row in calls)) + min(limit, len(seen))
