"""Unknown writes, for who is on call."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from console import access, filters, flashes, frame, live
from console.access import Visit
from console.builders import unknown as build
from console.builders.unknown import Address, Part
from console.pages.common import Live
from runs.ids import parse_id

KNOWS = ("tenant", "open", "after")


@require_safe
@access.page
def unknown(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Every write of which nobody knows whether it happened, by connector and outage window."""
    found = build.parts(visit)
    since = build.version(found)[-1]
    said = [*filters.unread(request.GET, KNOWS), *flashes.of(request)]
    page = build.page(visit, _address(request, visit), found, live=_live(visit, found, since), flashes=said)
    return frame.show(request, visit, "unknown/list.html", page, current="Unknown writes")


@require_safe
@access.page
def news(request: HttpRequest, visit: Visit) -> HttpResponse:
    """The title line as it stands now, and the bar that announces what came since the page was opened."""
    since = str(parse_id(request.GET.get("since", "")) or "")
    found, address = build.parts(visit), _address(request, visit)
    shown = _live(visit, found, since)
    draw = lambda: frame.part(  # noqa: E731
        request, visit, "task/_news.html", build.news(visit, address, found, live=shown, since=since)
    )
    return live.answer(request, visit, shown.etag, draw)


def _address(request: HttpRequest, visit: Visit) -> Address:
    asked = request.GET
    return Address(
        tenant=visit.chosen.slug if visit.chosen else "",
        open=asked.get("open", "")[:12],
        after=str(parse_id(asked.get("after", "")) or ""),
    )


def _live(visit: Visit, found: Sequence[Part], since: str) -> Live:
    slug = visit.chosen.slug if visit.chosen else ""
    url = reverse("unknown_news") + filters.query(tenant=slug, since=since)
    return live.live(url, live.etag_of(visit, "unknown", build.version(found), since), visit)
