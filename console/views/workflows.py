"""Settings: where it begins, the workflows, one of them in one version, and what differs between two."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from console import access, flashes, frame
from console.access import Visit
from console.builders import revisions
from console.builders import workflows as build
from console.filters import query, unread
from runs.models import Workflow

CURRENT = "Settings"
LARGEST = 2**31 - 1


@require_safe
@access.page
def settings(request: HttpRequest, visit: Visit) -> HttpResponse:
    """The settings begin with their first part."""
    return redirect(reverse("settings_workflows") + (query(tenant=visit.chosen.slug) if visit.chosen else ""))


@require_safe
@access.page
def workflows(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Every workflow in its newest version."""
    said = [*unread(request.GET, build.KNOWN), *flashes.of(request)]
    page = build.page(visit, build.Asked.read(request.GET), flashes=said)
    return frame.show(request, visit, "settings/workflows.html", page, current=CURRENT)


@require_safe
@access.page
def workflow(request: HttpRequest, visit: Visit, name: str) -> HttpResponse:
    """One version; the newest where the address names none."""
    found = _found(visit, name, number(request, "version"))
    page = build.one(visit, found, before=number(request, "before"), flashes=flashes.of(request))
    return frame.show(request, visit, "settings/workflow.html", page, current=CURRENT)


@require_safe
@access.page
def diff(request: HttpRequest, visit: Visit, name: str) -> HttpResponse:
    """Two versions; without numbers the newest and the one before it."""
    new = _found(visit, name, number(request, "to"))
    asked = number(request, "from")
    rows = Workflow.objects.filter(tenant=new.tenant_id, name=name)
    earlier = new.version - 1 if asked is None else asked
    old = rows.filter(version=earlier).first() if earlier else new
    if old is None:
        raise Http404
    numbers = list(rows.order_by("-version").values_list("version", flat=True)[: revisions.MOST_NUMBERS])
    return frame.show(request, visit, "settings/diff.html", revisions.page(visit, old, new, numbers), current=CURRENT)


def number(request: HttpRequest, name: str) -> int | None:
    """A version that the address names; Http404 for what is none."""
    text = request.GET.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 10 or not 0 < int(text) <= LARGEST:
        raise Http404
    return int(text)


def _found(visit: Visit, name: str, version: int | None) -> Workflow:
    found = None if "\0" in name else build.find(visit, name, version)
    if found is None:
        raise Http404
    return found
