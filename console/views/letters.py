"""The list of dead letters; what may be done with one stands on its task."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from console import access, filters, flashes, frame
from console.access import Visit
from console.builders import letters as build
from console.filters import LETTERS_KNOW, LetterFilter


@require_safe
@access.page
def letters(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Newest first, those that are open or those that have ended."""
    counts, asked = filters.counts(visit), LetterFilter.read(request.GET)
    said = [*filters.unread(request.GET, LETTERS_KNOW), *flashes.of(request)]
    page = build.page(visit, asked, counts=counts, flashes=said)
    return frame.show(request, visit, "letter/list.html", page, current="Dead letters", counts=counts)
