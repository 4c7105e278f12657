"""Search: one field for every id, number, reference and word that a person may have at hand."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from console import access, filters, flashes, frame
from console.access import Visit
from console.builders import search as build
from console.finding import Sought

KNOWS = ("q", "tenant")


@require_safe
@access.page
def search(request: HttpRequest, visit: Visit) -> HttpResponse:
    """What fits among the visitor's tenants; the whole id of one thing leads straight to it."""
    said = [*filters.unread(request.GET, KNOWS), *flashes.of(request)]
    page, only = build.page(visit, Sought.read(request.GET), flashes=said)
    return redirect(only) if only else frame.show(request, visit, "search/page.html", page)
