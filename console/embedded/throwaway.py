"""A PostgreSQL for one process, in a folder of its own: made, migrated, marked for rehearsals, gone afterwards."""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connections

from console.embedded import places, postgres, processes, roles
from console.embedded.errors import Trouble
from console.embedded.places import Places

ALIASES = {"default": places.APP_ROLE, "owner": places.OWNER_ROLE}


@contextmanager
def database() -> Iterator[None]:
    """Turn this process's connections to an empty, migrated database whose clock can be moved by hand."""
    with tempfile.TemporaryDirectory(prefix="steadyhand-") as folder:
        where = Places(Path(folder))
        server = start(where)
        try:
            roles.provision(
                super_dsn=where.database_url(places.SUPER_ROLE, "postgres"),
                database_dsn=where.database_url(places.SUPER_ROLE),
                database=places.DATABASE,
            )
            _point_at(where)
            _migrate(where)
            yield
        finally:
            connections.close_all()
            server.send_signal(signal.SIGQUIT)
            server.wait(timeout=20)


def start(where: Places) -> subprocess.Popen[bytes]:
    """A server that loses everything when it stops, answering on its socket; it is the caller's to stop."""
    postgres.create(where.postgres_data, durable=False)
    where.sockets.mkdir(mode=0o700, exist_ok=True)
    processes.hand_over(where.sockets, home=where.home)
    command = postgres.command(where.postgres_data, where.sockets, durable=False)
    log = where.home / "postgres.log"
    with log.open("ab") as lines:
        server = subprocess.Popen(command, stdout=lines, stderr=lines, start_new_session=True)
    deadline = time.monotonic() + 60
    while not postgres.is_ready(where.postgres_data):
        if server.poll() is not None or time.monotonic() > deadline:
            server.kill()
            raise Trouble(f"The database for this command did not start: {log.read_text()[-400:]}")
        time.sleep(0.03)
    return server


def _point_at(where: Places) -> None:
    connections.close_all()
    for alias, role in ALIASES.items():
        # In place: the connections of every thread hold this very dictionary.
        settings.DATABASES.setdefault(alias, dict(settings.DATABASES["default"]))
        settings.DATABASES[alias].update(
            NAME=places.DATABASE, USER=role, HOST=str(where.sockets), PASSWORD="", PORT=""
        )


def _migrate(where: Places) -> None:
    call_command("migrate", database="owner", verbosity=0, interactive=False)
    with psycopg.connect(where.database_url(places.OWNER_ROLE)) as session:
        session.execute("SELECT app_enable_rehearsal()")


def carries_the_mark() -> bool:
    """Whether the configured database is there and may be played with."""
    try:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT to_regclass('rehearsal_clock') IS NOT NULL")
            return bool(cursor.fetchone()[0])
    except Exception:  # a database that is not running, not migrated or not ours: the throwaway one is for that
        connections["default"].close()
        return False
