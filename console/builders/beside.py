"""What stands beside the queue's list, in one statement: saved views, and who is deciding about which cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models.functions import JSONObject

from console import presence, saved
from console.access import Visit
from runs.ids import parse_id
from runs.models import Person

Cause = tuple[Any, ...]


@dataclass(frozen=True)
class Kept:
    """A saved view as the list needs it; `team` where it is everybody's, `mine` where this person may change it."""

    id: str
    name: str
    query: str
    team: bool
    mine: bool


@dataclass(frozen=True)
class Beside:
    views: list[Kept]
    deciding: dict[Cause, list[str]]


def read(visit: Visit) -> Beside:
    tenants = list(visit.tenants)
    views = saved.rows(visit.person, tenants).values(
        json=JSONObject(id="id", name="name", query="query", person="person_id", by="by_id", tenant="tenant_id")
    )[: (saved.MOST_OWN + saved.MOST_TEAM) * max(len(tenants), 1)]
    deciding = presence.deciding(visit.person, visit.scope, visit.now)
    row = Person.objects.filter(pk=visit.person.pk).values_list(ArraySubquery(views), ArraySubquery(deciding)).get()
    # Somebody without a tenant sees no row, and Django asks nothing where nothing can be found.
    return Beside([_kept(visit, one) for one in row[0] or []], presence.by_cause(row[1] or []))


def _kept(visit: Visit, one: dict[str, Any]) -> Kept:
    tenant = parse_id(one["tenant"])
    abilities = visit.grants.get(tenant, frozenset()) if tenant else frozenset()
    me = str(visit.person.pk)
    team = one["person"] is None
    mine = not team or "administer" in abilities or (one["by"] == me and "claim" in abilities)
    return Kept(one["id"], one["name"], one["query"], team, mine)
