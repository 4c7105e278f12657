"""Stop switches: what stands, setting one, lifting one. Who may, and what a switch may name, recovery says."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from console import access, flashes, frame
from console.access import Visit
from console.builders import stops as build
from console.builders.stops import Typed
from console.forms import LiftForm, StopForm
from console.pages.common import Link
from recovery.work import stops as switches

MOST_TYPED = 20_000


@require_safe
@access.page
def stops(request: HttpRequest, visit: Visit) -> HttpResponse:
    """The switches, and an empty form; the address may name what to stop."""
    asked = {name: request.GET.get(name, "")[:120] for name in ("tenant", "scope", "name")}
    return _show(request, visit, Typed(asked))


@require_POST
@access.acts
def set_stop(request: HttpRequest) -> HttpResponse:
    """Keep calls from leaving."""
    form = StopForm(request.POST)
    if not form.is_valid():
        return _again(request, typed_in(form))
    told: dict[str, Any] = dict(form.cleaned_data)
    tenant_id = tenant_of(request, told.pop("tenant"))
    try:
        stop = switches.set_stop(access.person_of(request), tenant_id, **told, request_id=access.request_id(request))
    except switches.Refused as refused:
        return _refused(request, form, refused)
    flashes.leave(request, "info", "Recorded: a stop is set.", build.named(stop))
    return _back()


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
        return _again(request, typed_in(form, stop_id))
    reason, request_id = form.cleaned_data["lift_reason"], access.request_id(request)
    try:
        switches.lift_stop(access.person_of(request), stop.tenant_id, stop_id, reason=reason, request_id=request_id)
    except switches.NoSuchStop:
        flashes.leave(request, "race", "Nothing was changed.", "This stop was lifted already.")
        return _back()
    except switches.Refused as refused:
        return _refused(request, form, refused)
    flashes.leave(request, "info", "Recorded: a stop is lifted.", "What it kept back may leave again.")
    return _back()


def tenant_of(request: HttpRequest, slug: str) -> uuid.UUID:
    """The tenant of that short name, if it exists for this person."""
    with access.visiting(request) as visit:
        found = next((tenant.pk for tenant in visit.tenants.values() if tenant.slug == slug), None)
    if found is None:
        raise Http404
    return found


def _refused(request: HttpRequest, form: forms.Form, refused: switches.Refused) -> HttpResponse:
    """At its field where one is at fault, else a page of its own: the right is missing."""
    if refused.field in form.fields:
        form.add_error(refused.field, f"{str(refused)[:1].upper()}{str(refused)[1:]}")
        return _again(request, typed_in(form))
    back = Link("Back to the stops", reverse("stops"))
    problem = {"title": "You may not do this", "text": f"Blocked: {refused} Nothing was changed.", "action": back}
    return render(request, "403.html", {"problem": problem}, status=403)


def _again(request: HttpRequest, typed: Typed) -> HttpResponse:
    with access.visiting(request) as visit:
        return access.drawn(_show(request, visit, typed, status=422))


def _show(request: HttpRequest, visit: Visit, typed: Typed, *, status: int = 200) -> HttpResponse:
    page = build.page(visit, typed=typed, flashes=flashes.of(request))
    return frame.show(request, visit, "stop/list.html", page, current="Stops", status=status)


def typed_in(form: forms.Form, stop_id: uuid.UUID | None = None) -> Typed:
    values = {name: form.data.get(name, "")[:MOST_TYPED] for name in form.fields}
    return Typed(values, {name: str(errors[0]) for name, errors in form.errors.items() if errors}, stop_id)


def _back() -> HttpResponse:
    response = redirect("stops")
    response.status_code = 303
    return response
