"""The tenant wall: the one way to open it, for pages, workers and commands alike (SEC-29, SEC-30).

The tenants are set inside the transaction and end with it; nothing stays on a pooled connection. So is who acts in
it: some moves of the state machines are a person's alone, or the worker's, and PostgreSQL holds that too.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from django.db import connection, transaction

from runs.together import Statement

SET_BOTH = "SELECT set_config('app.tenants', %s, true), set_config('app.acting', %s, true)"

Acting = Literal["agent", "person", "worker", "timer", "callback", ""]
"""Whose transaction it is; empty for one that only reads or sets things up."""

_acting: ContextVar[Acting] = ContextVar("acting", default="")


def acting() -> Acting:
    """Who acts in the open transaction."""
    return _acting.get()


def setting(tenants: Iterable[uuid.UUID]) -> str:
    """The value of `app.tenants`: ids between commas; empty means no rows at all."""
    return ",".join(str(tenant) for tenant in tenants)


def open_to(tenants: Iterable[uuid.UUID]) -> None:
    """Open the wall of the running transaction to these tenants, for reading; writing needs exactly one."""
    if not connection.in_atomic_block:
        raise RuntimeError("the tenant wall opens inside a transaction only")
    with connection.cursor() as cursor:
        cursor.execute(SET_BOTH, [setting(tenants), acting()])


def opening(tenant: uuid.UUID) -> Statement:
    """What opens the wall to one tenant, to be sent together with the first questions behind it."""
    return Statement(SET_BOTH, [setting([tenant]), acting()])


@contextmanager
def within(*tenants: uuid.UUID, by: Acting = "") -> Iterator[None]:
    """One transaction in which exactly these tenants exist; an inner block leaves the outer one as it was.

    `by`: who acts; an inner block without it acts for whom the outer one does.
    """
    with restored(by=by):
        open_to(tenants)
        yield


@contextmanager
def restored(*, by: Acting = "") -> Iterator[None]:
    """The same for a caller that opens the wall together with its first questions (`opening`)."""
    inner, outer = connection.in_atomic_block, acting()
    token = _acting.set(by or outer)
    try:
        with transaction.atomic():
            before = _setting_now() if inner else None
            yield
            if before is not None:
                with connection.cursor() as cursor:
                    cursor.execute(SET_BOTH, [before, outer])
    finally:
        _acting.reset(token)


def _setting_now() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('app.tenants', true)")
        return cursor.fetchone()[0] or ""


_DUE = " UNION ".join(
    f"SELECT {question}()"
    for question in (
        "app_due_tenants", "app_tenants_with_due_tasks", "app_tenants_to_list", "app_tenants_with_due_offers",
        "app_tenants_with_checks", "app_tenants_with_bulk", "app_tenants_to_fold",
    )
)  # fmt: skip


def due_tenants() -> list[uuid.UUID]:
    """Ids of tenants with work for the sweep; the database functions give ids and nothing else (SEC-29)."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE)
        return [row[0] for row in cursor.fetchall()]


def tenant_of_decision(decision_id: uuid.UUID) -> uuid.UUID | None:
    """The tenant that a decision belongs to: a worker gets an id only and has to open the wall first."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT app_tenant_of_decision(%s)", [decision_id])
        found: uuid.UUID | None = cursor.fetchone()[0]
    return found


def tenant_of_outside_sweep(sweep_id: uuid.UUID) -> uuid.UUID | None:
    """The tenant whose outside sweep this is, for a worker that was given an id only."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT app_tenant_of_outside_sweep(%s)", [sweep_id])
        found: uuid.UUID | None = cursor.fetchone()[0]
    return found


def tenant_of_check(check_id: uuid.UUID) -> uuid.UUID | None:
    """The tenant whose connector is to be tried, for a worker that was given an id only."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT app_tenant_of_check(%s)", [check_id])
        found: uuid.UUID | None = cursor.fetchone()[0]
    return found


def tenant_of_bulk(operation_id: uuid.UUID) -> uuid.UUID | None:
    """The tenant whose bulk operation this is, for a worker that was given an id only."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT app_tenant_of_bulk(%s)", [operation_id])
        found: uuid.UUID | None = cursor.fetchone()[0]
    return found


def tenants_of_decisions(decision_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, list[uuid.UUID]]:
    """The same for many at once: which decisions are whose."""
    found: dict[uuid.UUID, list[uuid.UUID]] = {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT app_tenant_of_decision(one), one FROM unnest(%s::uuid[]) one", [list(decision_ids)])
        for tenant_id, decision_id in cursor.fetchall():
            if tenant_id is not None:
                found.setdefault(tenant_id, []).append(decision_id)
    return found


def tenant_of_slug(slug: str) -> uuid.UUID | None:
    """The tenant behind the short name in an address; it is no secret, and opens nothing by itself."""
    if "\0" in slug:
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT app_tenant_of_slug(%s)", [slug])
        found: uuid.UUID | None = cursor.fetchone()[0]
    return found
