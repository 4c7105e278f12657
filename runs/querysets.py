"""The doors to the facts: narrowed to one tenant, and told the time by the database."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any, TypeVar

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BigIntegerField, DateTimeField, Field, ForeignObject, Func, Model, QuerySet
from django.db.models.lookups import In
from django.db.models.sql.compiler import SQLCompiler

T = TypeVar("T", bound=Model)


class AppNow(Func):
    """The database's clock as an expression (DESIGN: time)."""

    function = "app_now"
    output_field = DateTimeField()


class TransactionId(Func):
    """The number of the running transaction (bigint): rows carry it where the order of commits matters."""

    function = "pg_current_xact_id"
    template = "%(function)s()::text::bigint"
    output_field = BigIntegerField()


class NextNumber(Func):
    """The next number of the event log (bigint): of two rows written under one lock, the later has the higher."""

    template = "nextval('runs_event_number')"
    output_field = BigIntegerField()


class OldestRunning(TransactionId):
    """The lowest transaction that may still commit: below it everything is final and nothing can slip in."""

    function = "pg_snapshot_xmin"
    template = "%(function)s(pg_current_snapshot())::text::bigint"


@ForeignObject.register_lookup
@Field.register_lookup
class Among(In):
    """Whether an id is one of these: as `in`, with all of them in one parameter, for hundreds of them."""

    lookup_name = "among"
    prepare_rhs = False

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        column, params = self.process_lhs(compiler, connection)
        return f"{column} = ANY (%s::uuid[])", (*params, "{" + ",".join(map(str, self.rhs)) + "}")


def database_now() -> AppNow:
    return AppNow()


_held_clock: ContextVar[datetime | None] = ContextVar("held_clock", default=None)


@contextmanager
def held_clock() -> Iterator[None]:
    """One reading for everything inside the block: a short transaction that decides many things at one moment."""
    token = _held_clock.set(read_clock())
    try:
        yield
    finally:
        _held_clock.reset(token)


def read_clock() -> datetime:
    """The time of the only clock there is: leases, deadlines and bounds are compared with it (I20)."""
    held = _held_clock.get()
    if held is not None:
        return held
    with connection.cursor() as cursor:
        cursor.execute("SELECT app_now()")
        now: datetime = cursor.fetchone()[0]
    return now


class TenantQuerySet(QuerySet[T]):
    """Rows of tenant tables. Ask `for_tenant` first: another tenant's row does not exist."""

    def for_tenant(self, tenant_id: uuid.UUID) -> TenantQuerySet[T]:
        return self.filter(tenant_id=tenant_id)
