"""One task: its page, and the region of it that stays live."""

from __future__ import annotations

import uuid
from dataclasses import replace

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from console import access, flashes, frame, live
from console.access import Visit
from console.builders import task as build
from console.builders.task import Seen
from console.pages.common import Flash
from console.pages.task import TaskPage


@require_safe
@access.page
def task(request: HttpRequest, visit: Visit, task_id: uuid.UUID) -> HttpResponse:
    """The whole page; it keeps showing after the task is resolved."""
    return show(request, visit, seen_or_404(visit, task_id), flashes.of(request))


@require_safe
@access.page
def region(request: HttpRequest, visit: Visit, task_id: uuid.UUID) -> HttpResponse:
    """The live part, or 304 where nothing that it shows has changed."""
    tag = etag(visit, task_id)
    return live.answer(request, visit, tag, lambda: _region(request, visit, task_id, tag))


def show(
    request: HttpRequest, visit: Visit, seen: Seen, said: list[Flash], *, status: int = 200, draft: str = ""
) -> HttpResponse:
    """`draft` is a comment that was typed and not taken."""
    page = replace(_page(visit, seen, etag(visit, seen.task.pk), said), comment_draft=draft)
    return frame.show(request, visit, "task/detail.html", page, current="Queue", status=status)


def seen_or_404(visit: Visit, task_id: uuid.UUID) -> Seen:
    found = build.find(visit, task_id)
    if found is None:
        raise Http404
    return build.see(visit, found)


def etag(visit: Visit, task_id: uuid.UUID) -> str:
    version = build.version(visit, task_id)
    if version is None:
        raise Http404
    return live.etag_of(visit, *version)


def _region(request: HttpRequest, visit: Visit, task_id: uuid.UUID, tag: str) -> HttpResponse:
    return frame.part(request, visit, "task/_body.html", _page(visit, seen_or_404(visit, task_id), tag, []))


def _page(visit: Visit, seen: Seen, tag: str, said: list[Flash]) -> TaskPage:
    url = reverse("task_live", args=[seen.task.pk])
    return build.page(visit, seen, live=live.live(url, tag, visit, busy=seen.panel.running is not None), flashes=said)
