"""What a page costs PostgreSQL: its statements caught on the way, and each asked again for the plan it took."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.test import Client

from runs import wall
from runs.models import Tenant

# Not the page's own: who is signed in, what they may do, opening the wall and the savepoints around it.
OVERHEAD = ("django_session", "guardian", "auth_group", "app.tenants", "SAVEPOINT", 'SELECT "runs_person"."password"')
REPEATS, MOST_REPEATS, ENOUGH_MS = 3, 20, 1.0
"""The best of a few says what a statement costs; beside other work it takes more to meet a quiet moment."""


@dataclass
class Cost:
    """One statement: pages of memory it touched, rows its scans gave, and its best time."""

    sql: str
    buffers: int
    rows: int
    ms: float


@dataclass
class Page:
    """A page and its statements, in the order in which it asks them."""

    name: str
    status: int
    html: str
    costs: list[Cost] = field(default_factory=list)

    @property
    def worst_ms(self) -> float:
        return max(cost.ms for cost in self.costs)


def measured(client: Client, name: str, url: str, tenants: list[Tenant]) -> Page:
    """Open a page and weigh every statement that it asked itself."""
    asked: list[tuple[str, Any]] = []
    with connection.execute_wrapper(_noting(asked)):
        response = client.get(url)
    page = Page(name, response.status_code, response.content.decode())
    own = [one for one in asked if _own(one[0])]
    with wall.within(*(tenant.pk for tenant in tenants)):
        page.costs = [_cost(sql, params) for sql, params in own]
    return page


def _own(sql: str) -> bool:
    return sql.lstrip().startswith(("SELECT", "WITH")) and not any(word in sql for word in OVERHEAD)


def _noting(asked: list[tuple[str, Any]]) -> Callable[..., Any]:
    def note(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        asked.append((sql, params))
        return execute(sql, params, many, context)

    return note


def _cost(sql: str, params: Any) -> Cost:
    plans = [_explained(sql, params) for _ in range(REPEATS)]
    while min(_took(plan) for plan in plans) > ENOUGH_MS and len(plans) < MOST_REPEATS:
        plans.append(_explained(sql, params))
    last = plans[-1]
    return Cost(
        sql,
        last["Plan"]["Shared Hit Blocks"] + last["Plan"]["Shared Read Blocks"],
        sum(_scanned(last["Plan"])),
        min(_took(plan) for plan in plans),
    )


def _took(plan: dict[str, Any]) -> float:
    return float(plan["Execution Time"])


def _explained(sql: str, params: Any) -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {sql}", params)
        plan: dict[str, Any] = cursor.fetchone()[0][0]
        return plan


def _scanned(plan: dict[str, Any]) -> Iterator[int]:
    if "Scan" in plan["Node Type"]:
        removed = plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
        yield (plan["Actual Rows"] + removed) * plan["Actual Loops"]
    for inner in plan.get("Plans", ()):
        yield from _scanned(inner)
