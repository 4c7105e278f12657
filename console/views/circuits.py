"""Circuits: what is given a rest, holding one open, releasing it. Who may, and which there are, recovery says."""

from __future__ import annotations

import uuid

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_POST, require_safe

from console import access, flashes
from console.access import Visit
from console.builders import circuits as build
from console.builders.stops import Typed
from console.forms import HoldForm, ReleaseForm
from console.views.switching import Board, tenant_of
from recovery.work import holds

BOARD = Board("circuits", "circuit/list.html", "Circuits", build.page)


@require_safe
@access.page
def circuits(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Every circuit that was in trouble, and an empty form; the address may name one."""
    return BOARD.show(request, visit, Typed({name: request.GET.get(name, "")[:200] for name in ("tenant", "name")}))


@require_POST
@access.acts
def hold_circuit(request: HttpRequest) -> HttpResponse:
    """Give a dependency a rest."""
    form = HoldForm(request.POST)
    if not form.is_valid():
        return BOARD.again(request, form)
    told = dict(form.cleaned_data)
    tenant_id = tenant_of(request, told.pop("tenant"))
    try:
        circuit = holds.hold_circuit(
            access.person_of(request), tenant_id, **told, request_id=access.request_id(request)
        )
    except holds.Refused as refused:
        return BOARD.refused(request, form, refused)
    flashes.leave(request, "info", "Recorded: a circuit is held open.", build.named(circuit))
    return BOARD.back()


@require_POST
@access.acts
def release_circuit(request: HttpRequest, circuit_id: uuid.UUID) -> HttpResponse:
    """Let trials decide again."""
    with access.visiting(request) as visit:
        circuit = build.rows_of(visit).filter(pk=circuit_id).first()
        if circuit is None:
            raise Http404
    form = ReleaseForm(request.POST)
    if not form.is_valid():
        return BOARD.again(request, form, circuit_id)
    reason, request_id = form.cleaned_data["release_reason"], access.request_id(request)
    try:
        holds.release_circuit(
            access.person_of(request), circuit.tenant_id, circuit_id, reason=reason, request_id=request_id
        )
    except holds.NoSuchHold:
        flashes.leave(request, "race", "Nothing was changed.", "Nobody holds this circuit open any more.")
        return BOARD.back()
    except holds.Refused as refused:
        return BOARD.refused(request, form, refused)
    flashes.leave(request, "info", "Recorded: a circuit is released.", "It is half open: trials decide.")
    return BOARD.back()
