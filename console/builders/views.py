"""Saved views: the pills over the queue, the form of its filters, and the page that keeps the views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.urls import reverse

from console import looks, narrowing, places
from console.access import Visit
from console.builders import beside
from console.builders.beside import Kept
from console.builders.causes import Heap
from console.narrowing import Narrow
from console.pages.common import Empty, Flash
from console.pages.confirm import Choice, Select
from console.pages.queue import FilterField, FilterForm, SavedBar, ViewPill
from console.pages.views import SaveForm, ViewRow, ViewsPage

MOST_OFFERED = 50


@dataclass(frozen=True)
class Typed:
    """What a form held when it came back, and what was wrong with it; `view_id` where it was the form of a view."""

    values: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    view_id: str = ""


def bar(visit: Visit, place: str, saved: str, kept: list[Kept], link: str) -> SavedBar:
    """The views over a list that stands at `place` and came from the view `saved`, if it is one of them."""
    current = next((one for one in kept if one.id == saved), None)
    moved = current is not None and places.read(visit, current.query).query != place
    manage = reverse("views")
    return SavedBar(
        pills=[_pill(visit, one, one is current, moved) for one in kept],
        query=place,
        save_as_url=f"{manage}?{urlencode({'query': place})}#save",
        manage_url=manage,
        link=link,
        save_url=reverse("save_view", args=[current.id]) if current is not None and moved and current.mine else "",
    )


def _pill(visit: Visit, kept: Kept, current: bool, moved: bool) -> ViewPill:
    place = places.read(visit, kept.query)
    url = f"{reverse('views')}#view-{kept.id}" if place.why else place.url(kept.id)
    return ViewPill(kept.name, url, _icon(kept), current, current and moved and not place.why, place.why)


def _icon(kept: Kept) -> str:
    return "users" if kept.team else "bookmark"


def form(narrow: Narrow, view: str, tenant: str, found: Sequence[Heap]) -> FilterForm:
    """The filters, with what the list holds now offered for each."""
    causes = [heap.cause for heap in found]
    offered = {
        "workflow": [cause[1] for cause in causes],
        "reason": [cause[2] for cause in causes],
        "tool": [cause[3] for cause in causes],
        "priority": narrowing.PRIORITIES,
        "currency": [currency for heap in found for currency in heap.amounts],
    }
    fields = [
        FilterField(name, label, getattr(narrow, name), _offers(offered.get(name, ())), hint)
        for name, label, hint in _FIELDS
    ]
    kept = {"view": "" if view == "all" else view, "tenant": tenant}
    return FilterForm(reverse("queue"), fields, [(name, value) for name, value in kept.items() if value])


_FIELDS = (
    ("workflow", "Workflow", ""),
    ("reason", "Reason", ""),
    ("tool", "Tool", ""),
    ("team", "Team", ""),
    ("tag", "Tag", ""),
    ("priority", "Priority", "This or more urgent, 1 to 4."),
    ("above", "Amount above", "Like 250.00, with its currency."),
    ("currency", "Currency", ""),
)


def _offers(values: Iterable[str]) -> list[str]:
    return sorted({value for value in values if value})[:MOST_OFFERED]


def page(visit: Visit, *, typed: Typed, flashes: list[Flash], origin: str) -> ViewsPage:
    """Every view that this person sees, and the form that keeps the place in `typed`."""
    rows = [_row(visit, one, typed, origin) for one in beside.read(visit).views]
    return ViewsPage(
        title="Saved views",
        summary=f"{len(rows)} of yours and your teams'" if rows else "none",
        rows=rows,
        form=_form(visit, typed) if visit.tenants else None,
        empty=None if rows else Empty("No view is saved.", "Narrow the queue, and keep the list under a name."),
        flashes=flashes,
    )


def _row(visit: Visit, kept: Kept, typed: Typed, origin: str) -> ViewRow:
    place, here = places.read(visit, kept.query), typed.view_id == kept.id
    return ViewRow(
        id=kept.id,
        name=typed.values.get("name", kept.name) if here else kept.name,
        icon=_icon(kept),
        whose="Team" if kept.team else "Only you",
        words=place.words,
        broken=f"It cannot be opened: {place.why}." if place.why else "",
        look=looks.UNREADABLE,
        url="" if place.why else place.url(kept.id),
        link="" if place.why else origin + place.url(),
        rename_url=reverse("rename_view", args=[kept.id]) if kept.mine else "",
        delete_url=reverse("delete_view", args=[kept.id]) if kept.mine else "",
        error=typed.errors.get("name", "") if here else "",
    )


def _form(visit: Visit, typed: Typed) -> SaveForm:
    place = places.read(visit, typed.values.get("query", ""))
    own = typed.view_id == ""
    chosen, choices = typed.values.get("where", ""), []
    for tenant_id, tenant in visit.tenants.items():
        beside_name = f" ({tenant.name})" if len(visit.tenants) > 1 else ""
        choices.append(Choice(f"me:{tenant.slug}", f"Only me{beside_name}", chosen == f"me:{tenant.slug}"))
        if visit.may("claim", tenant_id):
            team = f"Everybody in {tenant.name}"
            choices.append(Choice(f"team:{tenant.slug}", team, chosen == f"team:{tenant.slug}"))
    return SaveForm(
        url=reverse("views"),
        query=place.query,
        words=place.words,
        where=Select("where", "For", choices, typed.errors.get("where", "") if own else ""),
        name=typed.values.get("name", "") if own else "",
        error=typed.errors.get("name", "") if own else "",
    )
