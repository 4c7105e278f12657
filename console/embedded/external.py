"""Looks at a database that somebody else runs before anything leans on it."""

from typing import Any

import psycopg

from console.embedded.errors import Trouble

OLDEST = 150000
RIGHTS = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"


def check_app(url: str) -> None:
    """Trouble unless `url` leads to a recent server, as a role that no tenant fence lets through (SEC-29)."""
    with _session(url, variable="DATABASE_URL") as session:
        if session.info.server_version < OLDEST:
            raise Trouble("DATABASE_URL leads to a PostgreSQL older than 15: use 15 or newer.")
        row = session.execute(RIGHTS).fetchone()
        if row is None or row[0]:
            raise Trouble(
                f"DATABASE_URL signs in as {session.info.user}, who passes every tenant fence: "
                "use a role that is neither superuser nor BYPASSRLS."
            )


def check_owner(url: str) -> None:
    """Trouble unless the owner's address answers too."""
    _session(url, variable="DATABASE_OWNER_URL").close()


def _session(url: str, *, variable: str) -> "psycopg.Connection[Any]":
    try:
        return psycopg.connect(url, connect_timeout=5)
    except psycopg.OperationalError as error:
        raise Trouble(
            f"{variable} does not lead to a database ({_reason(error)}): correct it, or unset it."
        ) from error


def _reason(error: psycopg.OperationalError) -> str:
    """The server's own words on one line; they name host, role and database, never the password."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "failed:" in line] or lines or ["no answer"]
    return told[0].rpartition("failed: ")[2].removeprefix("FATAL: ").strip().rstrip(".")
