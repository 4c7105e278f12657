"""One throwaway PostgreSQL cluster for a whole test process, and cheap clones of one migrated database."""

import itertools
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql

from console.embedded import postgres, roles
from console.embedded.places import APP_ROLE, OWNER_ROLE, SUPER_ROLE, Places

TEMPLATE = "steadyhand_template"
_numbers = itertools.count(1)


@dataclass
class Cluster:
    """A running server in `home`; it dies with the process that started it."""

    home: Path
    server: "subprocess.Popen[bytes]" = field(init=False)

    def __post_init__(self) -> None:
        self.places = Places(self.home)

    def start(self) -> None:
        postgres.create(self.places.postgres_data, durable=False)
        self.places.sockets.mkdir(mode=0o700, exist_ok=True)
        command = postgres.command(self.places.postgres_data, self.places.sockets, durable=False)
        with (self.home / "postgres.log").open("ab") as log:
            self.server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self._wait_ready()
        self.provision(TEMPLATE)

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + 60
        while not postgres.is_ready(self.places.postgres_data):
            if self.server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.home / "postgres.log").read_text())
            time.sleep(0.03)

    def stop(self) -> None:
        self.server.send_signal(signal.SIGQUIT)
        self.server.wait(timeout=20)

    def dsn(self, role: str, database: str) -> str:
        return self.places.database_url(role, database)

    def provision(self, database: str) -> None:
        """An empty database with the roles and rights of a real installation."""
        roles.provision(
            super_dsn=self.dsn(SUPER_ROLE, "postgres"),
            database_dsn=self.dsn(SUPER_ROLE, database),
            database=database,
        )

    def clone(self, source: str = TEMPLATE) -> str:
        """A new database equal to `source`, in tens of milliseconds; nobody may be connected to `source`."""
        name = f"steadyhand_test_{next(_numbers)}"
        with psycopg.connect(self.dsn(SUPER_ROLE, "postgres"), autocommit=True) as session:
            session.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {} STRATEGY file_copy").format(
                    sql.Identifier(name), sql.Identifier(source), sql.Identifier(OWNER_ROLE)
                )
            )
            # Rights on the database itself are not copied with it.
            session.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(name)))
            session.execute(
                sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(sql.Identifier(name), sql.Identifier(APP_ROLE))
            )
        return name

    def drop(self, name: str) -> None:
        with psycopg.connect(self.dsn(SUPER_ROLE, "postgres"), autocommit=True) as session:
            session.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
