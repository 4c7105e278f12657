"""Settings, connectors: where they stand, testing one, and trusting one again."""

from __future__ import annotations

import uuid
from functools import partial

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from console import access, flashes, frame
from console import live as regions
from console.access import Visit
from console.builders import connectors as build
from console.builders.stops import Typed
from console.filters import query
from console.forms import LiftForm
from console.pages.connectors import ConnectorsPage
from recovery import demotions
from recovery.models import Demotion
from recovery.tasks import ring
from recovery.work import checks
from runs.models import Workflow

CURRENT = "Settings"
MOST_AFTER = 1_000_000


class KeyForm(forms.Form):
    """The one-time key of the button."""

    key = forms.RegexField(r"\A[0-9a-f]{32}\Z")


@require_safe
@access.page
def connectors(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Every connector that the newest versions declare."""
    return _show(request, visit, Typed({}))


@require_safe
@access.page
def rows(request: HttpRequest, visit: Visit) -> HttpResponse:
    """The rows by themselves, or 304 where nothing has moved."""
    board = build.read(visit)
    tag = _etag(visit, board)
    return regions.answer(request, visit, tag, partial(_part, request, visit, board))


@require_POST
@access.acts
def test_connector(request: HttpRequest, workflow_id: uuid.UUID, name: str) -> HttpResponse:
    """Ask a connector something harmless; a worker asks."""
    with access.visiting(request) as visit:
        found = None if "\0" in name else Workflow.objects.filter(pk=workflow_id).defer("manifest").first()
        if found is None:
            raise Http404
        slug = visit.tenants[found.tenant_id].slug
    form = KeyForm(request.POST)
    if not form.is_valid():
        flashes.leave(request, "refused", "Nothing was asked.", "The form was not whole: press the button again.")
        return _back(slug)
    try:
        checks.order(
            access.person_of(request), found.tenant_id, workflow_id, name, key=form.cleaned_data["key"], ring=ring,
            request_id=access.request_id(request),
        )  # fmt: skip
    except checks.NoSuchConnector:
        raise Http404 from None
    except checks.Refused as refused:
        return _refused(request, str(refused), slug)
    flashes.leave(request, "requested", "Requested: a test.", f"A worker asks `{name}`; what it says appears below.")
    return _back(slug)


@require_POST
@access.acts
def lift_demotion(request: HttpRequest, demotion_id: uuid.UUID) -> HttpResponse:
    """Let a connector's declared bounds count again."""
    with access.visiting(request) as visit:
        found = Demotion.objects.filter(pk=demotion_id).first()
        if found is None:
            raise Http404
        slug = visit.tenants[found.tenant_id].slug
    form = LiftForm(request.POST)
    if not form.is_valid():
        return _again(request, form, demotion_id)
    reason, request_id = form.cleaned_data["lift_reason"], access.request_id(request)
    try:
        demotions.lift(access.person_of(request), found.tenant_id, demotion_id, reason=reason, request_id=request_id)
    except demotions.Refused as refused:
        return _refused(request, str(refused), slug)
    flashes.leave(
        request, "info", "Recorded: a connector is trusted again.", f"The bounds of `{found.connector}` count."
    )
    return _back(slug)


def _show(request: HttpRequest, visit: Visit, typed: Typed, *, status: int = 200) -> HttpResponse:
    page = _page(request, visit, build.read(visit), typed, said=True)
    return frame.show(request, visit, "settings/connectors.html", page, current=CURRENT, status=status)


def _part(request: HttpRequest, visit: Visit, board: build.Board) -> HttpResponse:
    return frame.part(request, visit, "settings/_connectors.html", _page(request, visit, board, Typed({})))


def _page(
    request: HttpRequest, visit: Visit, board: build.Board, typed: Typed, *, said: bool = False
) -> ConnectorsPage:
    after = _after(request)
    url = reverse("settings_connectors_live") + query(
        tenant=visit.chosen.slug if visit.chosen else "", after=after or ""
    )
    shown = regions.live(url, _etag(visit, board), visit, busy=board.busy)
    told = flashes.of(request) if said else []
    return build.page(visit, board, typed=typed, live=shown, after=after, flashes=told)


def _after(request: HttpRequest) -> int:
    text = request.GET.get("after", "0")
    if not (text.isascii() and text.isdecimal()) or len(text) > 7 or int(text) > MOST_AFTER:
        raise Http404
    return int(text)


def _etag(visit: Visit, board: build.Board) -> str:
    return regions.etag_of(visit, "connectors", *board.version())


def _again(request: HttpRequest, form: forms.Form, demotion_id: uuid.UUID) -> HttpResponse:
    values = {name: form.data.get(name, "")[:2000] for name in form.fields}
    errors = {name: str(found[0]) for name, found in form.errors.items() if found}
    with access.visiting(request) as visit:
        return access.drawn(_show(request, visit, Typed(values, errors, demotion_id), status=422))


def _refused(request: HttpRequest, sentence: str, slug: str) -> HttpResponse:
    flashes.leave(request, "refused", "Nothing was asked or changed.", f"Blocked: {sentence}")
    return _back(slug)


def _back(slug: str) -> HttpResponse:
    response = redirect(reverse("settings_connectors") + query(tenant=slug))
    response.status_code = 303
    return response
