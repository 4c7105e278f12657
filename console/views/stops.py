"""Stop switches: what stands, setting one, lifting one. Who may, and what a switch may name, recovery says."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_POST, require_safe

from console import access, flashes
from console.access import Visit
from console.builders import stops as build
from console.builders.stops import Typed
from console.forms import LiftForm, StopForm
from console.views.switching import Board, tenant_of
from recovery.work import stops as switches

BOARD = Board("stops", "stop/list.html", "Stops", build.page)


@require_safe
@access.page
def stops(request: HttpRequest, visit: Visit) -> HttpResponse:
    """The switches, and an empty form; the address may name what to stop."""
    asked = {name: request.GET.get(name, "")[:120] for name in ("tenant", "scope", "name")}
    return BOARD.show(request, visit, Typed(asked))


@require_POST
@access.acts
def set_stop(request: HttpRequest) -> HttpResponse:
    """Keep calls from leaving."""
    form = StopForm(request.POST)
    if not form.is_valid():
        return BOARD.again(request, form)
    told: dict[str, Any] = dict(form.cleaned_data)
    tenant_id = tenant_of(request, told.pop("tenant"))
    try:
        stop = switches.set_stop(access.person_of(request), tenant_id, **told, request_id=access.request_id(request))
    except switches.Refused as refused:
        return BOARD.refused(request, form, refused)
    flashes.leave(request, "info", "Recorded: a stop is set.", build.named(stop))
    return BOARD.back()


@require_POST
@access.acts
def lift_stop(request: HttpRequest, stop_id: uuid.UUID) -> HttpResponse:
    """Let calls leave again."""
    with access.visiting(request) as visit:
        stop = build.rows_of(visit).filter(pk=stop_id).first()
        if stop is None:
            raise Http404
    form = LiftForm(request.POST)
    if not form.is_valid():
        return BOARD.again(request, form, stop_id)
    reason, request_id = form.cleaned_data["lift_reason"], access.request_id(request)
    try:
        switches.lift_stop(access.person_of(request), stop.tenant_id, stop_id, reason=reason, request_id=request_id)
    except switches.NoSuchStop:
        flashes.leave(request, "race", "Nothing was changed.", "This stop was lifted already.")
        return BOARD.back()
    except switches.Refused as refused:
        return BOARD.refused(request, form, refused)
    flashes.leave(request, "info", "Recorded: a stop is lifted.", "What it kept back may leave again.")
    return BOARD.back()
