"""Turns a database URL into Django's shape, and says plainly what is wrong with it."""

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from console.embedded.errors import Trouble

PLAIN_KEYS = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}

# A replica lags behind what was decided: of several hosts, and of one, only the primary will do (F066).
WRITABLE = ("primary", "read-write")
# A server that vanished without a word is given up within half a minute, not within the hours that TCP would wait.
PATIENCE = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}


def database(url: str, *, variable: str, pool: dict[str, Any] | None = None) -> dict[str, Any]:
    """A DATABASES entry for `url`; `variable` is named in the sentence if the URL cannot be read."""
    if not url.startswith(("postgres://", "postgresql://")):
        raise Trouble(f"{variable} must begin with postgresql://; Steadyhand keeps its facts in PostgreSQL only.")
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise Trouble(
            f"{variable} is not a PostgreSQL URL; write postgresql://user:password@host/database."
        ) from error
    options: dict[str, Any] = {k: v for k, v in parts.items() if k not in PLAIN_KEYS}
    for name, value in PATIENCE.items():
        options.setdefault(name, value)
    if options.setdefault("target_session_attrs", WRITABLE[0]) not in WRITABLE:
        raise Trouble(
            f"{variable} asks for a replica: no decision is read from one. Leave target_session_attrs out of it."
        )
    if pool is not None:
        options["pool"] = pool
    plain = {PLAIN_KEYS[k]: v for k, v in parts.items() if k in PLAIN_KEYS}
    return {"ENGINE": "django.db.backends.postgresql", **plain, "OPTIONS": options}
