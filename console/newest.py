"""The newest rows of a list whose rows lie apart: of several tenants, outcomes or workflows.

PostgreSQL reads one of them in order by its index and sorts what lies in several; asked for each of them apart, it
reads a page of each and no more, however long they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.db.models.expressions import RawSQL

T = TypeVar("T", bound=Model)


def first(rows: QuerySet[T], apart: dict[str, str], places: Sequence[tuple[Any, ...]], limit: int) -> QuerySet[T]:
    """The newest `limit` of `rows`, newest first, looked for in each of `places` by itself.

    `apart`: the fields that tell the places apart, with the type of their column; a place has a value for each.
    """
    columns = [f"c{number}" for number in range(len(apart))]
    here = {name: RawSQL(f"p.{column}", ()) for name, column in zip(apart, columns, strict=True)}  # noqa: S611
    sql, params = rows.filter(**here).order_by("-pk").values("pk")[:limit].query.sql_with_params()
    given = ", ".join(f"%s::{kind}[]" for kind in apart.values())
    sql = (
        f"SELECT found.id FROM unnest({given}) p({', '.join(columns)})"  # noqa: S608  (names of our own columns)
        f" CROSS JOIN LATERAL ({sql}) found(id) ORDER BY found.id DESC LIMIT {limit}"
    )
    values = [list(column) for column in zip(*places, strict=True)] or [[] for _ in apart]
    found = RawSQL(sql, (*values, *params))  # noqa: S611
    return rows.model._default_manager.filter(pk__in=found).order_by("-pk")
