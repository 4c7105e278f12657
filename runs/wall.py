"""The tenant wall: the one way to open it, for pages, workers and commands alike (SEC-29, SEC-30).

The tenants are set inside the transaction and end with it; nothing stays on a pooled connection.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.db import connection, transaction

SET_TENANTS = "SELECT set_config('app.tenants', %s, true)"


def setting(tenants: Iterable[uuid.UUID]) -> str:
    """The value of `app.tenants`: ids between commas; empty means no rows at all."""
    return ",".join(str(tenant) for tenant in tenants)


def open_to(tenants: Iterable[uuid.UUID]) -> None:
    """Open the wall of the running transaction to these tenants, for reading; writing needs exactly one."""
    if not connection.in_atomic_block:
        raise RuntimeError("the tenant wall opens inside a transaction only")
    with connection.cursor() as cursor:
        cursor.execute(SET_TENANTS, [setting(tenants)])


@contextmanager
def within(*tenants: uuid.UUID) -> Iterator[None]:
    """One transaction in which exactly these tenants exist; an inner block leaves the outer one as it was."""
    inner = connection.in_atomic_block
    with transaction.atomic():
        before = _setting_now() if inner else None
        open_to(tenants)
        yield
        if before is not None:
            with connection.cursor() as cursor:
                cursor.execute(SET_TENANTS, [before])


def _setting_now() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('app.tenants', true)")
        return cursor.fetchone()[0] or ""


def due_tenants() -> list[uuid.UUID]:
    """Ids of tenants with work for the sweep; the database function gives ids and nothing else (SEC-29)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT app_due_tenants()")
        return [row[0] for row in cursor.fetchall()]


def tenant_of_decision(decision_id: uuid.UUID) -> uuid.UUID | None:
    """The tenant that a decision belongs to: a worker gets an id only and has to open the wall first."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT app_tenant_of_decision(%s)", [decision_id])
        found: uuid.UUID | None = cursor.fetchone()[0]
    return found
