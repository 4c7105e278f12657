"""The list of runs, and one run."""

from __future__ import annotations

import uuid

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from console import access, flashes, frame, live
from console.access import Visit
from console.builders import dossier
from console.builders import plan_document as build_plan
from console.builders import run as build_one
from console.builders import runs as build
from console.filters import RUNS_KNOW, RunFilter, query, unread
from console.pages.common import Live
from console.pages.run import RunListPage, RunPage
from runs.ids import parse_id
from runs.models import Event, Run


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
    """One run: answers, waterfall, budgets, path, effects, events; `under` turns to older events than that one."""
    found, kind = run_or_404(visit, run_id), event_kind(request)
    page = _page(visit, found, _etag(visit, run_id, kind), kind, _under(request, found))
    return frame.show(request, visit, "run/detail.html", page, current="Runs")


@require_safe
@access.page
def region(request: HttpRequest, visit: Visit, run_id: uuid.UUID) -> HttpResponse:
    """The live part of one run."""
    kind = event_kind(request)
    tag = _etag(visit, run_id, kind)
    return live.answer(request, visit, tag, lambda: _region(request, visit, run_id, kind, tag))


@require_safe
@access.page
def raw(request: HttpRequest, visit: Visit, run_id: uuid.UUID) -> HttpResponse:
    """The whole record of one run as JSON, redacted as it is kept; `?save=1` as a file."""
    found = run_or_404(visit, run_id)
    text = dossier.as_text(dossier.raw(found))
    return _file(text, "application/json", f"run-{found.pk}.json" if request.GET.get("save") else "")


@require_safe
@access.page
def bundle(request: HttpRequest, visit: Visit, run_id: uuid.UUID) -> HttpResponse:
    """What support may pass on about one run, as a file."""
    found = run_or_404(visit, run_id)
    return _file(dossier.bundle(found), "text/markdown; charset=utf-8", f"run-{found.pk}.md")


@require_safe
@access.page
def plan(request: HttpRequest, visit: Visit, run_id: uuid.UUID) -> HttpResponse:
    """What is or would be undone of one run, as a document of its own."""
    found = run_or_404(visit, run_id)
    page = build_plan.page(visit, found, live=_plan_live(visit, found.pk))
    return frame.show(request, visit, "run/plan.html", page, current="Runs")


@require_safe
@access.page
def plan_region(request: HttpRequest, visit: Visit, run_id: uuid.UUID) -> HttpResponse:
    """The live part of a plan."""
    shown = _plan_live(visit, run_id)
    draw = lambda: frame.part(  # noqa: E731
        request, visit, "run/_plan.html", build_plan.page(visit, run_or_404(visit, run_id), live=shown)
    )
    return live.answer(request, visit, shown.etag, draw)


def _plan_live(visit: Visit, run_id: uuid.UUID) -> Live:
    return live.live(reverse("run_plan_live", args=[run_id]), _etag(visit, run_id, "plan"), visit)


def _file(text: str, kind: str, name: str) -> HttpResponse:
    response = HttpResponse(text, content_type=kind)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"' if name else "inline"
    return response


def _under(request: HttpRequest, run: Run) -> Event | None:
    """Http404 for a mark that is no event of this run."""
    mark = request.GET.get("under", "")
    if not mark:
        return None
    event_id = parse_id(mark)
    found = build_one.mark(run, event_id) if event_id is not None else None
    if found is None:
        raise Http404
    return found


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


def _page(visit: Visit, run: Run, tag: str, kind: str, under: Event | None = None) -> RunPage:
    url = reverse("run_live", args=[run.pk]) + (query(events=kind) if kind else "")
    return build_one.page(visit, run, live=live.live(url, tag, visit), kind=kind, flashes=[], under=under)


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
