"""Circuits: what is given a rest, holding one open, releasing it. Who may, and which there are, recovery says."""

from __future__ import annotations

import uuid

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from console import access, flashes, frame
from console.access import Visit
from console.builders import circuits as build
from console.builders.stops import Typed
from console.forms import HoldForm, ReleaseForm
from console.pages.common import Link
from console.views.stops import tenant_of, typed_in
from recovery.work import holds


@require_safe
@access.page
def circuits(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Every circuit that was in trouble, and an empty form; the address may name one."""
    return _show(request, visit, Typed({name: request.GET.get(name, "")[:200] for name in ("tenant", "name")}))


@require_POST
@access.acts
def hold_circuit(request: HttpRequest) -> HttpResponse:
    """Give a dependency a rest."""
    form = HoldForm(request.POST)
    if not form.is_valid():
        return _again(request, typed_in(form))
    told = dict(form.cleaned_data)
    tenant_id = tenant_of(request, told.pop("tenant"))
    try:
        circuit = holds.hold_circuit(
            access.person_of(request), tenant_id, **told, request_id=access.request_id(request)
        )
    except holds.Refused as refused:
        return _refused(request, form, refused)
    flashes.leave(request, "info", "Recorded: a circuit is held open.", build.named(circuit))
    return _back()


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
        return _again(request, typed_in(form, circuit_id))
    reason, request_id = form.cleaned_data["release_reason"], access.request_id(request)
    try:
        holds.release_circuit(
            access.person_of(request), circuit.tenant_id, circuit_id, reason=reason, request_id=request_id
        )
    except holds.NoSuchHold:
        flashes.leave(request, "race", "Nothing was changed.", "Nobody holds this circuit open any more.")
        return _back()
    except holds.Refused as refused:
        return _refused(request, form, refused)
    flashes.leave(request, "info", "Recorded: a circuit is released.", "It is half open: trials decide.")
    return _back()


def _refused(request: HttpRequest, form: forms.Form, refused: holds.Refused) -> HttpResponse:
    """At its field where one is at fault, else a page of its own: the right is missing."""
    if refused.field in form.fields:
        form.add_error(refused.field, f"{str(refused)[:1].upper()}{str(refused)[1:]}")
        return _again(request, typed_in(form))
    back = Link("Back to the circuits", reverse("circuits"))
    problem = {"title": "You may not do this", "text": f"Blocked: {refused} Nothing was changed.", "action": back}
    return render(request, "403.html", {"problem": problem}, status=403)


def _again(request: HttpRequest, typed: Typed) -> HttpResponse:
    with access.visiting(request) as visit:
        return access.drawn(_show(request, visit, typed, status=422))


def _show(request: HttpRequest, visit: Visit, typed: Typed, *, status: int = 200) -> HttpResponse:
    page = build.page(visit, typed=typed, flashes=flashes.of(request))
    return frame.show(request, visit, "circuit/list.html", page, current="Circuits", status=status)


def _back() -> HttpResponse:
    response = redirect("circuits")
    response.status_code = 303
    return response
