"""Saved views of the queue: the page that keeps them, and saving, renaming and deleting one."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from console import access, flashes, frame, places, saved
from console.access import Visit
from console.builders import views as build
from console.builders.views import Typed
from console.models import SavedView
from console.pages.common import Link
from console.saved import NoSuchView, Refused, Wish
from console.views.switching import tenant_of
from runs.models import Person

MOST_TYPED = 2000
FIELDS = ("name", "where", "query")
Change = Callable[[Person], SavedView]


@require_http_methods(["GET", "HEAD", "POST"])
@access.acts
def views(request: HttpRequest) -> HttpResponse:
    """The views and an empty form; a POST keeps the place in `query` under a name."""
    if request.method != "POST":
        return _page(request, Typed({"query": request.GET.get("query", "")[:MOST_TYPED]}))
    typed = {name: request.POST.get(name, "")[:MOST_TYPED] for name in FIELDS}
    whose, _, slug = typed["where"].partition(":")
    if whose not in ("me", "team"):
        return _page(request, Typed(typed, {"where": "Say whom it is for."}), status=422)
    try:
        query = _place(request, typed["query"])
        wish = Wish(access.person_of(request), tenant_of(request, slug), typed["name"], query, whose == "team",
                    access.request_id(request))  # fmt: skip
        view = saved.make(wish)
    except Refused as refused:
        return _page(request, Typed(typed, {refused.field or "name": str(refused)}), status=422)
    return _opened(request, view, "Saved")


@require_POST
@access.acts
def save_view(request: HttpRequest, view_id: uuid.UUID) -> HttpResponse:
    """Keep the place in `query` under the name of a view that there is."""

    def change(by: Person) -> SavedView:
        query = _place(request, _typed(request, "query"))
        return saved.change(view_id, by, query=query, request_id=access.request_id(request))

    return _changed(request, view_id, change)


@require_POST
@access.acts
def rename_view(request: HttpRequest, view_id: uuid.UUID) -> HttpResponse:
    """Give a view another name."""

    def change(by: Person) -> SavedView:
        return saved.change(view_id, by, name=_typed(request, "name"), request_id=access.request_id(request))

    return _changed(request, view_id, change)


@require_POST
@access.acts
def delete_view(request: HttpRequest, view_id: uuid.UUID) -> HttpResponse:
    """Forget a view."""

    def change(by: Person) -> SavedView:
        return saved.delete(view_id, by, request_id=access.request_id(request))

    return _changed(request, view_id, change, "Deleted")


def _changed(request: HttpRequest, view_id: uuid.UUID, change: Change, said: str = "Saved") -> HttpResponse:
    try:
        view = change(access.person_of(request))
    except NoSuchView:
        raise Http404 from None
    except Refused as refused:
        if refused.field:
            values = {"name": _typed(request, "name")} if "name" in request.POST else {}
            typed = Typed(values, {"name": str(refused)}, str(view_id))
            return _page(request, typed, status=422)
        problem = {"title": "You may not do this", "text": f"{refused} Nothing was changed.",
                   "action": Link("Back to the saved views", reverse("views"))}  # fmt: skip
        return render(request, "403.html", {"problem": problem}, status=403)
    if said == "Deleted":
        flashes.leave(request, "info", f"Deleted: {view.name}.")
        return _see(reverse("views"))
    return _opened(request, view, said)


def _opened(request: HttpRequest, view: SavedView, said: str) -> HttpResponse:
    """Back to the list that the view stands for."""
    with access.visiting(request) as visit:
        place = places.read(visit, _stored(view, visit))
    flashes.leave(request, "info", f"{said}: {view.name}.")
    return _see(reverse("views") if place.why else place.url(str(view.pk)))


def _stored(view: SavedView, visit: Visit) -> str:
    return saved.rows(visit.person, list(visit.tenants)).filter(pk=view.pk).values_list("query", flat=True)[0]


def _place(request: HttpRequest, query: str) -> str:
    """The place as it is kept. Raises Refused for one that cannot be opened."""
    with access.visiting(request) as visit:
        place = places.read(visit, query)
    if place.why:
        raise Refused(f"This list cannot be saved: {place.why}.", "name")
    return place.query


def _page(request: HttpRequest, typed: Typed, *, status: int = 200) -> HttpResponse:
    origin = request.build_absolute_uri("/").rstrip("/")
    with access.visiting(request) as visit:
        page = build.page(visit, typed=typed, flashes=flashes.of(request), origin=origin)
        return frame.show(request, visit, "view/list.html", page, current="Queue", status=status)


def _typed(request: HttpRequest, name: str) -> str:
    return request.POST.get(name, "")[:MOST_TYPED]


def _see(url: str) -> HttpResponse:
    response = redirect(url)
    response.status_code = 303
    return response
