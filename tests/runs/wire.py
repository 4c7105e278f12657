"""What goes over the wire to PostgreSQL, counted message by message in libpq itself."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import connection
from psycopg.pq import Trace


@dataclass
class Talk:
    """`round_trips`: how often the server said that it is ready; `commits`: transactions that ended well."""

    sent: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)
    commands: list[str] = field(default_factory=list)

    @property
    def round_trips(self) -> int:
        return self.received["ReadyForQuery"]

    @property
    def commits(self) -> int:
        """Explicit ones, or one for each Sync outside a transaction block."""
        explicit = self.commands.count("COMMIT")
        return explicit if "BEGIN" in self.commands else self.sent["Sync"]


@contextmanager
def listening() -> Iterator[Talk]:
    """Count everything that this thread's connection says and hears inside the block."""
    connection.ensure_connection()
    wire, talk = connection.connection.pgconn, Talk()
    with tempfile.TemporaryFile("w+") as heard:
        wire.trace(os.dup(heard.fileno()))
        wire.set_trace_flags(Trace.SUPPRESS_TIMESTAMPS)
        try:
            yield talk
        finally:
            wire.untrace()
        heard.seek(0)
        for line in heard:
            _note(talk, line.rstrip("\n").split("\t"))


def _note(talk: Talk, parts: list[str]) -> None:
    if len(parts) < 3:
        return
    (talk.sent if parts[0] == "F" else talk.received)[parts[2]] += 1
    if parts[2] == "CommandComplete":
        talk.commands.append(parts[3].strip('" '))
