"""Help: what the words mean, the rules, and the tour, which a person ends once and for all or starts again."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from console import access, flashes, frame
from console.access import Visit
from console.builders import help as build
from console.pages.help import TopicPage
from runs.models import Person
from runs.querysets import database_now


@require_safe
@access.page
def index(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Every word and every rule."""
    return frame.show(request, visit, "help/index.html", build.page(flashes.of(request)), current="Help")


@require_safe
@access.page
def topic(request: HttpRequest, visit: Visit, slug: str) -> HttpResponse:
    """One word."""
    return _shown(request, visit, build.topic(slug))


@require_safe
@access.page
def rule(request: HttpRequest, visit: Visit, name: str) -> HttpResponse:
    """One rule of the decision table."""
    return _shown(request, visit, build.rule(name))


@require_POST
@access.acts
def end_tour(request: HttpRequest) -> HttpResponse:
    """The person has seen it; it never comes by itself again."""
    return _toured(request, database_now())


@require_POST
@access.acts
def start_tour(request: HttpRequest) -> HttpResponse:
    """Once more from the beginning."""
    return _toured(request, None)


def _toured(request: HttpRequest, at: object) -> HttpResponse:
    Person.objects.filter(pk=access.person_of(request).pk).update(toured_at=at)
    return HttpResponse(status=303, headers={"Location": reverse("queue")})


def _shown(request: HttpRequest, visit: Visit, page: TopicPage | None) -> HttpResponse:
    if page is None:
        raise Http404
    return frame.show(request, visit, "help/topic.html", page, current="Help")
