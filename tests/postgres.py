"""One throwaway PostgreSQL cluster for a whole test process, and cheap clones of one migrated database."""

import itertools
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql

from console.embedded import roles, throwaway
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
        self.server = throwaway.start(self.places)
        self.provision(TEMPLATE)

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
