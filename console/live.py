"""Live regions: a cheap version of what a page shows becomes its ETag, and an unchanged one costs no drawing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils import timezone

from console.access import Visit
from console.pages.common import Live

CALM_SECONDS, BUSY_SECONDS = 5, 1


def etag_of(visit: Visit, *parts: object) -> str:
    """A quoted ETag of everything that a region is drawn from; rights are part of it, for buttons follow them."""
    rights = sorted((str(tenant), sorted(abilities)) for tenant, abilities in visit.grants.items())
    text = repr((str(visit.person.pk), rights, parts))
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def minutes_since(start: datetime, now: datetime) -> int:
    """Ages are shown to the minute: a region is drawn again that often even if nothing happened."""
    return int((now - start).total_seconds() // 60)


def live(url: str, etag: str, visit: Visit, *, busy: bool = False) -> Live:
    return Live(url, etag, visit.now, BUSY_SECONDS if busy else CALM_SECONDS)


def answer(request: HttpRequest, visit: Visit, etag: str, draw: Callable[[], HttpResponse]) -> HttpResponse:
    """304 with the time of the check if the reader has this version already, else the region drawn anew."""
    known = request.headers.get("If-None-Match") == etag
    response: HttpResponse = HttpResponseNotModified() if known else draw()
    response.headers["ETag"] = etag
    response.headers["X-Checked-At"] = f"{timezone.localtime(visit.now):%H:%M:%S}"
    return response
