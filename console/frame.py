"""The frame around a page: rail with live counts, tenant switcher, and the person at its foot."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from console import filters
from console.access import Visit
from console.builders.help import STEPS
from console.pages.common import Account, Frame, RailItem, TenantChoice
from recovery import permissions

KEYS = {
    "Queue": "q",
    "Unknown writes": "u",
    "Dead letters": "d",
    "Runs": "r",
    "Circuits": "c",
    "Stops": "s",
    "Bulk": "b",
    "Settings": "t",
}
"""Which key opens a page of the rail after G."""


def show(
    request: HttpRequest,
    visit: Visit,
    template: str,
    page: object,
    *,
    current: str = "",
    counts: dict[str, int] | None = None,
    status: int = 200,
) -> HttpResponse:
    """A whole page in its frame; `counts` are passed on where a view has counted already."""
    frame = build(request, visit, current, counts if counts is not None else filters.counts(visit))
    return render(request, template, {"page": page, "frame": frame, "now": visit.now}, status=status)


def part(request: HttpRequest, visit: Visit, template: str, page: object) -> HttpResponse:
    """A live region by itself."""
    return render(request, template, {"page": page, "now": visit.now})


def build(request: HttpRequest, visit: Visit, current: str, counts: dict[str, int]) -> Frame:
    slug = visit.chosen.slug if visit.chosen else ""
    queue, runs = reverse("queue"), reverse("runs")
    rail = [
        RailItem("Queue", "inbox", queue + _only(slug), filters.capped(counts["all"])),
        RailItem(
            "Unknown writes",
            "circle-question-mark",
            reverse("unknown") + _only(slug),
            filters.capped(counts["unknown"]),
            "unk",
        ),
        RailItem(
            "Dead letters", "archive", reverse("letters") + _only(slug), filters.capped(counts["dead_letters"]), "bad"
        ),
        RailItem("Runs", "activity", runs + _only(slug)),
        RailItem("Circuits", "unplug", reverse("circuits") + _only(slug), filters.capped(counts["circuits"]), "bad"),
        RailItem("Stops", "octagon-pause", reverse("stops") + _only(slug), filters.capped(counts["stops"]), "bad"),
        RailItem("Bulk", "list-checks", reverse("bulk") + _only(slug), filters.capped(counts["bulk"])),
        RailItem("Settings", "settings", reverse("settings_workflows") + _only(slug)),
    ]
    return Frame(
        rail=[_marked(item, current) for item in rail],
        tenants=_tenants(request, visit, current),
        account=_account(visit),
        home_url=queue,
        search_url=reverse("search"),
        search_tenant=slug,
        help_url=reverse("help"),
        tour=STEPS if request.path == queue and visit.person.toured_at is None else [],
        tour_url=reverse("end_tour"),
    )


def _marked(item: RailItem, current: str) -> RailItem:
    return replace(item, current=item.label == current, key=KEYS.get(item.label, ""))


def _tenants(request: HttpRequest, visit: Visit, current: str) -> list[TenantChoice]:
    """Choosing a tenant keeps the list one is on; from a single record it leads to the queue."""
    single = request.resolver_match is not None and bool(request.resolver_match.kwargs)
    base = reverse("queue") if single or not current else request.path
    view = request.GET.get("view", "")
    choices = [
        TenantChoice(
            tenant.name, base + filters.query(view=view, tenant=tenant.slug), tenant.name, visit.chosen == tenant
        )
        for tenant in visit.tenants.values()
    ]
    if not choices:
        return []
    everything = TenantChoice("All my tenants", base + filters.query(view=view), "", visit.chosen is None)
    return [everything, *choices]


def _account(visit: Visit) -> Account:
    roles = permissions.roles_of(visit.person)
    held = {role for tenant in visit.scope for role in roles.get(tenant, [])}
    return Account(
        name=visit.person.name,
        role=", ".join(sorted(held)) or "no role",
        logout_url=reverse("account_logout"),
        account_url=reverse("mfa_index"),
    )


def _only(slug: str) -> str:
    return filters.query(tenant=slug) if slug else ""
