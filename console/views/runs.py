"""The list of runs, and one run."""

from __future__ import annotations

import uuid

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from console import access, flashes, frame, live
from console.access import Visit
from console.builders import run as build_one
from console.builders import runs as build
from console.filters import RUNS_KNOW, RunFilter, query, unread
from console.pages.run import RunListPage, RunPage
from runs.models import Run


@require_safe
@access.page
def runs(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Newest first, by state, outcome and workflow."""
    asked = RunFilter.read(request.GET)
    page = _list(request, visit, asked, _list_etag(visit, asked))
    return frame.show(request, visit, "run/list.html", page, current="Runs")


@require_safe
@access.page
def rows(request: HttpRequest, visit: Visit) -> HttpResponse:
    """The rows by themselves, or 304 where none of them has moved."""
    asked = RunFilter.read(request.GET)
    tag = _list_etag(visit, asked)
    draw = lambda: frame.part(request, visit, "run/_rows.html", _list(request, visit, asked, tag))  # noqa: E731
    return live.answer(request, visit, tag, draw)


@require_safe
@access.page
def run(request: HttpRequest, visit: Visit, run_id: uuid.UUID) -> HttpResponse:
    """One run: answers, waterfall, budgets, path, effects, events."""
    found, kind = run_or_404(visit, run_id), event_kind(request)
    page = _page(visit, found, _etag(visit, run_id, kind), kind)
    return frame.show(request, visit, "run/detail.html", page, current="Runs")


@require_safe
@access.page
def region(request: HttpRequest, visit: Visit, run_id: uuid.UUID) -> HttpResponse:
    """The live part of one run."""
    kind = event_kind(request)
    tag = _etag(visit, run_id, kind)
    return live.answer(request, visit, tag, lambda: _region(request, visit, run_id, kind, tag))


def run_or_404(visit: Visit, run_id: uuid.UUID) -> Run:
    found = build_one.find(visit, run_id)
    if found is None:
        raise Http404
    return found


def event_kind(request: HttpRequest) -> str:
    """The event tab that the address names; Http404 for one that does not exist."""
    kind = request.GET.get("events", "")
    if kind not in [name for name, _ in build_one.EVENT_TABS]:
        raise Http404
    return kind


def _region(request: HttpRequest, visit: Visit, run_id: uuid.UUID, kind: str, tag: str) -> HttpResponse:
    return frame.part(request, visit, "run/_body.html", _page(visit, run_or_404(visit, run_id), tag, kind))


def _page(visit: Visit, run: Run, tag: str, kind: str) -> RunPage:
    url = reverse("run_live", args=[run.pk]) + (query(events=kind) if kind else "")
    return build_one.page(visit, run, live=live.live(url, tag, visit), kind=kind, flashes=[])


def _etag(visit: Visit, run_id: uuid.UUID, kind: str) -> str:
    version = build_one.version(visit, run_id)
    if version is None:
        raise Http404
    return live.etag_of(visit, kind, *version)


def _list(request: HttpRequest, visit: Visit, asked: RunFilter, tag: str) -> RunListPage:
    url = reverse("runs_live") + asked.address(visit, before=asked.before)
    said = [*unread(request.GET, RUNS_KNOW), *flashes.of(request)]
    return build.page(visit, asked, live=live.live(url, tag, visit), flashes=said)


def _list_etag(visit: Visit, asked: RunFilter) -> str:
    return live.etag_of(visit, "runs", asked, build.version(visit, asked))
