"""Settings, members: for who administers or audits a tenant."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from console import access, flashes, frame
from console.access import Visit
from console.builders import members as build
from console.filters import unread
from console.pages.common import Link
from runs.ids import parse_id


@require_safe
@access.page
def members(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Everybody with a role, and what each role may do."""
    tenants = build.seen_by(visit)
    if not tenants:
        return _refused(request)
    mark = request.GET.get("after", "")
    after = parse_id(mark) if mark else None
    if mark and after is None:
        raise Http404
    said = [*unread(request.GET, ("tenant", "after")), *flashes.of(request)]
    page = build.page(visit, tenants, after=after, flashes=said)
    return frame.show(request, visit, "settings/members.html", page, current="Settings")


def _refused(request: HttpRequest) -> HttpResponse:
    back = Link("Back to the settings", reverse("settings"))
    text = "Blocked: only who administers or audits a tenant sees its members."
    problem = {"title": "You may not see this", "text": text, "action": back}
    return render(request, "403.html", {"problem": problem}, status=403)
