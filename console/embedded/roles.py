"""The two roles and the database: one role owns the tables, the other may only use them (SEC-24, SEC-29)."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from console.embedded.places import APP_ROLE, OWNER_ROLE

# Neither role passes a tenant fence, makes roles or databases, or can become the other.
PLAIN = "LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOINHERIT NOREPLICATION"
APP_LIMITS = {
    "statement_timeout": "30s",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "60s",
}
EXTENSIONS = ["pg_trgm", "btree_gin"]
FENCES = [
    "REVOKE ALL ON SCHEMA public FROM PUBLIC",
    f"GRANT USAGE, CREATE ON SCHEMA public TO {OWNER_ROLE}",
    f"GRANT USAGE ON SCHEMA public TO {APP_ROLE}",
    f"ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER_ROLE} REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC",
    f"ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER_ROLE} IN SCHEMA public"
    f" GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {APP_ROLE}",
    f"ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER_ROLE} IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {APP_ROLE}",
    f"ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER_ROLE} IN SCHEMA public GRANT EXECUTE ON FUNCTIONS TO {APP_ROLE}",
]


def provision(*, super_dsn: str, database_dsn: str, database: str) -> None:
    """Make roles and `database` as the cluster's superuser; harmless when they are already there.

    `super_dsn` leads to any database of the cluster, `database_dsn` to `database` as the same superuser.
    """
    with _session(super_dsn) as session:
        _roles(session)
        _database(session, database)
    with _session(database_dsn) as session:
        for extension in EXTENSIONS:
            session.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(extension)))
        for statement in FENCES:
            session.execute(sql.SQL(statement))


@contextmanager
def _session(dsn: str) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    with psycopg.connect(dsn, autocommit=True) as session:
        yield session


def _roles(session: "psycopg.Connection[tuple[object, ...]]") -> None:
    present = {row[0] for row in session.execute("SELECT rolname FROM pg_roles")}
    for role in (OWNER_ROLE, APP_ROLE):
        verb = "ALTER" if role in present else "CREATE"
        session.execute(sql.SQL(f"{verb} ROLE {{}} {PLAIN}").format(sql.Identifier(role)))
    for name, value in APP_LIMITS.items():
        statement = sql.SQL("ALTER ROLE {} SET {} = {}")
        session.execute(statement.format(sql.Identifier(APP_ROLE), sql.Identifier(name), sql.Literal(value)))


def _database(session: "psycopg.Connection[tuple[object, ...]]", database: str) -> None:
    name = sql.Identifier(database)
    if not session.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone():
        session.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(name, sql.Identifier(OWNER_ROLE)))
    session.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
    session.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(name, sql.Identifier(APP_ROLE)))
