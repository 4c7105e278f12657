"""Looks at a database and a broker that somebody else runs before anything leans on them."""

import socket
from typing import Any
from urllib.parse import urlsplit

import psycopg

from console.embedded.errors import Trouble

OLDEST = 150000
PATIENCE_SECONDS = 5
BROKER_PORTS = {"redis": 6379, "rediss": 6379, "sentinel": 26379, "amqp": 5672, "pyamqp": 5672, "amqps": 5671}
BROKER_SOCKET = "redis+socket"
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


def check_broker(url: str) -> None:
    """Trouble unless somebody answers where the broker should be; several stand between semicolons.

    Only the connection is tried: what the broker thinks of the name and password, the worker finds out.
    """
    failures = [failure for part in url.split(";") if (failure := _knock(part.strip())) is not None]
    if len(failures) == len(url.split(";")):
        raise Trouble(
            f"CELERY_BROKER_URL does not lead to a broker ({failures[0]}): start it, correct it, or unset it."
        )


def _knock(url: str) -> str | None:
    """Why nobody answers at `url`, in words that hold no password; None if somebody does."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "127.0.0.1", parts.port or BROKER_PORTS.get(parts.scheme)
    except ValueError:
        return "the address cannot be read"
    if parts.scheme == BROKER_SOCKET:
        return _enter(parts.path)
    if port is None:
        return "write redis://, rediss://, redis+socket://, amqp:// or amqps://"
    try:
        socket.create_connection((host, port), timeout=PATIENCE_SECONDS).close()
    except OSError as error:
        return f"{host}:{port}, {error.strerror or error}"
    return None


def _enter(address: str) -> str | None:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(PATIENCE_SECONDS)
        try:
            line.connect(address)
        except OSError as error:
            return f"{address}, {error.strerror or error}"
    return None


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
