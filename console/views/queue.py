"""The queue and its polled title line."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from console import access, filters, flashes, frame, live
from console.access import Visit
from console.builders import causes
from console.builders import queue as build
from console.builders.causes import Heaps, Mark
from console.builders.queue import Address
from console.narrowing import NAMES, Narrow
from runs.ids import parse_id


@require_safe
@access.page
def queue(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Causes, one of them open."""
    address = read(request, visit)
    counts, found = filters.counts(visit), causes.counted(visit, address.listed)
    since = counts.newest
    page = build.page(
        visit,
        address,
        live=live.live(_news_url(address, since), etag(visit, found, since, since), visit),
        counts=counts,
        found=found,
        flashes=[
            *filters.stops_notice(visit, counts["stops"]),
            *filters.unread(request.GET, (*filters.QUEUE_KNOWS, *NAMES)),
            *address.narrow.notices(),
            *flashes.of(request),
        ],
        origin=request.build_absolute_uri("/").rstrip("/"),
    )
    current = "Unknown writes" if address.view.name == "unknown" else "Queue"
    return frame.show(request, visit, "task/list.html", page, current=current, counts=counts)


@require_safe
@access.page
def news(request: HttpRequest, visit: Visit) -> HttpResponse:
    """The title line as it stands now, and the bar that announces what came since the page was opened."""
    address, since = read(request, visit), request.GET.get("since", "")
    found = causes.counted(visit, address.listed)
    tag = etag(visit, found, filters.newest(visit), since)
    return live.answer(request, visit, tag, lambda: _news(request, visit, address, found, since, tag))


def _news(request: HttpRequest, visit: Visit, address: Address, found: Heaps, since: str, tag: str) -> HttpResponse:
    page = build.heading(
        visit,
        address,
        found,
        live=live.live(_news_url(address, since), tag, visit),
        news=build.news(visit, address, since),
    )
    return frame.part(request, visit, "task/_news.html", page)


def read(request: HttpRequest, visit: Visit) -> Address:
    asked = request.GET
    return Address(
        view=filters.queue_view(asked.get("view", "")),
        tenant=visit.chosen.slug if visit.chosen else "",
        open=asked.get("open", "")[:12],
        after=Mark.read(asked.get("after", "")),
        beyond=asked.get("beyond", "")[:12].replace("\0", ""),
        narrow=Narrow.read(asked),
        saved=str(parse_id(asked.get("saved", "")) or ""),
    )


def etag(visit: Visit, found: Heaps, newest: str, since: str) -> str:
    return live.etag_of(visit, "queue", found.stamp, newest, since)


def _news_url(address: Address, since: str) -> str:
    here = f"{address.place}&" if address.place else ""
    return f"{reverse('queue_news')}?{here}{filters.query(saved=address.saved, since=since)[1:]}"
