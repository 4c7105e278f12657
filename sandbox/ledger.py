"""The world's own truth: every arrival, every effect, stored keys and commits still under way."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sandbox.calls import MAX_LIST_ITEMS, Call, Forgotten, canonical, iso
from sandbox.store import Store

DEFAULT_MODE = {"keys": "ignore", "retention_seconds": 86400.0}
EVERY: Mapping[str, str] = {}


@dataclass(frozen=True, kw_only=True)
class Promise:
    """A commit that will be made later, whatever happens to this process."""

    id: int
    call: Call
    due_at: float


class Ledger(Store):
    """What is committed here survives ``kill -9`` of the process."""

    # Arrivals

    def arrive(self, call: Call) -> Call:
        """Record that a request reached a service; returns the call with its arrival id."""
        with self.transaction():
            cursor = self.db.execute(
                "INSERT INTO arrivals (service, operation, kind, method, path, key, reference, action_id,"
                " body_sha256, at) VALUES (?,?,?,?,?,?,?,?,?,?)",
                (call.service, call.operation, call.kind, call.method, call.path, call.key, call.reference,
                 call.action_id, call.body_sha256, self.now()),
            )  # fmt: skip
        return replace(call, arrival_id=int(cursor.lastrowid or 0))

    def mark(self, arrival_id: int, outcome: str, *, status: int | None = None, fault: str | None = None) -> None:
        """What became of an arrival; a later mark replaces an earlier one."""
        with self.transaction():
            self.db.execute(
                "UPDATE arrivals SET outcome = ?, status = coalesce(?, status), fault = coalesce(?, fault)"
                " WHERE id = ?",
                (outcome, status, fault, arrival_id),
            )

    def arrivals(
        self,
        equal: Mapping[str, str] = EVERY,
        *,
        descending: bool = False,
        limit: int = MAX_LIST_ITEMS,
        after: int = 0,
    ) -> list[dict[str, Any]]:
        """Arrivals that fit, with an id above ``after``; ``reference`` also finds the action id."""
        where, values = _where(equal)
        order = "DESC" if descending else "ASC"
        sql = f"SELECT * FROM arrivals WHERE {where} AND id > ? ORDER BY id {order} LIMIT ?"  # noqa: S608
        return [{**dict(row), "at": iso(row["at"])} for row in self.rows(sql, *values, after, limit)]

    # Effects

    def add_effect(self, call: Call, fields: dict[str, Any], *, prefix: str, hidden_seconds: float) -> dict[str, Any]:
        """Commit one change; ``Forgotten`` when its arrival was wiped by a reset meanwhile."""
        with self.transaction():
            if not self.rows("SELECT 1 FROM arrivals WHERE id = ?", call.arrival_id):
                raise Forgotten
            effect_id, at = f"{prefix}_{secrets.token_hex(8)}", self.now()
            self.db.execute(
                "INSERT INTO effects (effect_id, service, operation, arrival_id, reference, action_id, key,"
                " fields, at, visible_at) VALUES (?,?,?,?,?,?,?,?,?,?)",
                (effect_id, call.service, call.operation, call.arrival_id, call.reference, call.action_id,
                 call.key, canonical(fields), at, at + hidden_seconds),
            )  # fmt: skip
            return self.effects({"effect_id": effect_id})[0]

    def effects(
        self,
        equal: Mapping[str, str] = EVERY,
        *,
        descending: bool = False,
        limit: int | None = MAX_LIST_ITEMS,
        seen_at: float | None = None,
        after: int = 0,
    ) -> list[dict[str, Any]]:
        """Effects that fit, ``seq`` above ``after``; with ``seen_at``, only what a look-up then would have shown."""
        where, values = _where(equal)
        if seen_at is not None:
            where, values = f"{where} AND visible_at <= ?", [*values, seen_at]
        order = "DESC" if descending else "ASC"
        sql = f"SELECT * FROM effects WHERE {where} AND seq > ? ORDER BY seq {order} LIMIT ?"  # noqa: S608
        return [_effect(row) for row in self.rows(sql, *values, after, -1 if limit is None else limit)]

    # Idempotency keys

    def stored_result(self, service: str, key: str) -> sqlite3.Row | None:
        """The reply kept under a live key, with the hash of the arguments it belongs to."""
        found = self.rows(
            "SELECT * FROM stored_keys WHERE service = ? AND key = ? AND expires_at > ?",
            service,
            key,
            self.now(),
        )
        return found[0] if found else None

    def store_result(self, call: Call, status: int, body: dict[str, Any]) -> None:
        """Keep a reply under its key for as long as the service's mode says."""
        expires_at = self.now() + self.mode(call.service)["retention_seconds"]
        with self.transaction():
            self.db.execute(
                "INSERT OR REPLACE INTO stored_keys VALUES (?,?,?,?,?,?)",
                (call.service, call.key, call.arguments_hash, status, canonical(body), expires_at),
            )

    def mode(self, service: str) -> dict[str, Any]:
        """Whether a service honours keys, and for how long."""
        found = self.rows("SELECT keys, retention_seconds FROM modes WHERE service = ?", service)
        return dict(found[0]) if found else dict(DEFAULT_MODE)

    def set_mode(self, service: str, keys: str, retention_seconds: float) -> None:
        """Change how a service treats keys from now on."""
        with self.transaction():
            self.db.execute("INSERT OR REPLACE INTO modes VALUES (?,?,?)", (service, keys, retention_seconds))

    # Commits still under way

    def postpone(self, call: Call, seconds: float) -> None:
        """Promise a commit for later; a restart keeps the promise."""
        with self.transaction():
            self.db.execute(
                "INSERT INTO pending (call, due_at) VALUES (?,?)",
                (json.dumps(asdict(call)), self.now() + seconds),
            )
        self.changed.set()

    def promises(self) -> list[Promise]:
        """Commits still to come, the next one first."""
        found = self.rows("SELECT id, call, due_at FROM pending ORDER BY due_at, id")
        return [Promise(id=row["id"], call=Call(**json.loads(row["call"])), due_at=row["due_at"]) for row in found]

    def forget(self, promise: Promise) -> bool:
        """Take a promise off the list; false when somebody (a reset) was faster."""
        with self.transaction():
            return self.db.execute("DELETE FROM pending WHERE id = ?", (promise.id,)).rowcount == 1

    def counts(self) -> dict[str, Any]:
        """Totals, and per operation the reads, writes and effects."""
        with self.transaction():
            arrived = self.rows("SELECT service, operation, kind, count(*) n FROM arrivals GROUP BY 1, 2, 3")
            changed = self.rows("SELECT service, operation, count(*) n FROM effects GROUP BY 1, 2")
            pending = self.rows("SELECT count(*) FROM pending")[0][0]
        per: dict[str, dict[str, int]] = {}
        for row in arrived:
            name = f"{row['service']}.{row['operation']}"
            per.setdefault(name, {"reads": 0, "writes": 0, "effects": 0})[row["kind"] + "s"] = row["n"]
        for row in changed:
            per[f"{row['service']}.{row['operation']}"]["effects"] = row["n"]
        return {
            "arrivals": sum(row["n"] for row in arrived),
            "effects": sum(row["n"] for row in changed),
            "pending": pending,
            "operations": per,
        }


def _where(equal: Mapping[str, str]) -> tuple[str, list[Any]]:
    parts, values = ["1"], []
    for name, value in equal.items():
        if name == "reference":
            parts.append("(reference = ? OR action_id = ?)")
            values += [value, value]
        else:
            parts.append(f"{name} = ?")
            values.append(value)
    return " AND ".join(parts), values


def _effect(row: sqlite3.Row) -> dict[str, Any]:
    made = {**dict(row), "fields": json.loads(row["fields"])}
    made.update(at=iso(row["at"]), visible_at=iso(row["visible_at"]))
    return made
