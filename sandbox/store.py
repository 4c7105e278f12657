"""The file on disk: its tables, its one lock, its transactions, and the clock of this world."""

from __future__ import annotations

import fcntl
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE IF NOT EXISTS arrivals (
    id INTEGER PRIMARY KEY AUTOINCREMENT, service TEXT NOT NULL, operation TEXT NOT NULL, kind TEXT NOT NULL,
    method TEXT NOT NULL, path TEXT NOT NULL, key TEXT NOT NULL, reference TEXT NOT NULL,
    action_id TEXT NOT NULL, body_sha256 TEXT NOT NULL, at REAL NOT NULL, fault TEXT NOT NULL DEFAULT '',
    outcome TEXT NOT NULL DEFAULT 'received', status INTEGER);
CREATE TABLE IF NOT EXISTS effects (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, effect_id TEXT NOT NULL UNIQUE, service TEXT NOT NULL,
    operation TEXT NOT NULL, arrival_id INTEGER NOT NULL REFERENCES arrivals(id), reference TEXT NOT NULL,
    action_id TEXT NOT NULL, key TEXT NOT NULL, fields TEXT NOT NULL, at REAL NOT NULL,
    visible_at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS effects_by_operation ON effects(service, operation, seq);
CREATE TABLE IF NOT EXISTS stored_keys (
    service TEXT NOT NULL, key TEXT NOT NULL, arguments_hash TEXT NOT NULL, status INTEGER NOT NULL,
    body TEXT NOT NULL, expires_at REAL NOT NULL, PRIMARY KEY (service, key));
CREATE TABLE IF NOT EXISTS pending (
    id INTEGER PRIMARY KEY AUTOINCREMENT, call TEXT NOT NULL, due_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS modes (
    service TEXT PRIMARY KEY, keys TEXT NOT NULL, retention_seconds REAL NOT NULL);
CREATE TABLE IF NOT EXISTS faults (
    id INTEGER PRIMARY KEY AUTOINCREMENT, match TEXT NOT NULL, script TEXT NOT NULL,
    used INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS clock (id INTEGER PRIMARY KEY CHECK (id = 1), ahead_seconds REAL NOT NULL);
"""
TABLES = ("pending", "stored_keys", "effects", "arrivals", "faults", "modes", "clock")


class InUse(Exception):
    """Another sandbox already keeps its ledger in this directory."""


class Store:
    """One SQLite file behind one lock; what is committed here survives ``kill -9`` of the process."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._guard = (directory / "ledger.lock").open("w")
        try:
            fcntl.flock(self._guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._guard.close()
            raise InUse(f"Another sandbox already uses the directory {directory}.") from error
        self._lock = threading.RLock()
        self._depth = 0
        self.changed = threading.Event()
        self.db = sqlite3.connect(directory / "ledger.sqlite3", isolation_level=None, check_same_thread=False)
        self.db.row_factory = sqlite3.Row
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=NORMAL")
        self.db.executescript(SCHEMA)

    def close(self) -> None:
        """Let go of the file and of the directory."""
        with self._lock:
            self.db.close()
            self._guard.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; a transaction opened inside another joins it."""
        with self._lock:
            outermost = self._depth == 0
            if outermost:
                self.db.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield
            except BaseException:
                if outermost:
                    self.db.execute("ROLLBACK")
                raise
            else:
                if outermost:
                    self.db.execute("COMMIT")
            finally:
                self._depth -= 1

    def rows(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """The rows of one statement, under the lock."""
        with self._lock:
            return self.db.execute(sql, values).fetchall()

    def now(self) -> float:
        """Seconds since 1970 in this world."""
        return time.time() + self.ahead_seconds()

    def ahead_seconds(self) -> float:
        """How far this world's clock runs ahead of the machine's."""
        found = self.rows("SELECT ahead_seconds FROM clock")
        return float(found[0][0]) if found else 0.0

    def advance(self, seconds: float) -> None:
        """Put the clock ahead; commits that fall due by it are made at once."""
        with self.transaction():
            self.db.execute(
                "INSERT INTO clock VALUES (1, ?) ON CONFLICT (id)"
                " DO UPDATE SET ahead_seconds = ahead_seconds + excluded.ahead_seconds",
                (seconds,),
            )
        self.changed.set()

    def reset(self) -> None:
        """An empty world: no arrivals, effects, keys, promises, faults or modes; the clock is right again."""
        with self.transaction():
            for table in TABLES:
                self.db.execute(f"DELETE FROM {table}")  # noqa: S608
        self.changed.set()
