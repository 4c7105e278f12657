"""A place in the queue as a saved view keeps it: tab, tenant and filters, always spelled the same."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.exceptions import SuspiciousOperation
from django.http import QueryDict
from django.urls import reverse

from console import filters
from console.access import Visit
from console.narrowing import NAMES, Narrow

KNOWN = ("view", "tenant", *NAMES)


@dataclass(frozen=True)
class Place:
    """`query` spells it, `words` say it; `why` says what of it cannot be opened, and is empty where all can."""

    query: str
    words: str
    why: str = ""

    def url(self, saved: str = "") -> str:
        marked = f"saved={saved}" if saved else ""
        return f"{reverse('queue')}?{'&'.join(filter(None, (self.query, marked)))}"


def spelled(view: str, tenant: str, narrow: Narrow) -> str:
    return filters.query(view="" if view == "all" else view, tenant=tenant, **narrow.given)[1:]


def read(visit: Visit, query: str) -> Place:
    """What a kept or typed query stands for now, to this person."""
    try:
        asked = QueryDict(query)
    except SuspiciousOperation:
        return Place(query, "", "it asks for too much")
    narrow, name, slug = Narrow.read(asked), asked.get("view", "") or "all", asked.get("tenant", "")
    view = next((one for one in filters.QUEUE_VIEWS if one.name == name), None)
    tenant = next((one for one in visit.tenants.values() if one.slug == slug), None)
    odd = sorted(set(asked) - set(KNOWN))[: filters.MOST_NAMED]
    if view is None:
        return Place(query, "", "the tab that it names does not exist")
    if slug and tenant is None:
        return Place(query, "", "the tenant that it names is not one of yours")
    if odd or narrow.wrong:
        return Place(query, "", "; ".join([*narrow.wrong, *(f"`{_plain(one)}` is no filter" for one in odd)]))
    told = [view.label, *([f"Tenant: {tenant.name}"] if tenant else []), *(text for text, _ in narrow.tokens())]
    return Place(spelled(name, slug, narrow), ", ".join(told))


def _plain(text: str) -> str:
    return text[:40].replace("`", "'").replace("\0", "")
