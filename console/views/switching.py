"""What the pages of stops and of circuits share: what was typed, what recovery refuses, and the way back."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from console import access, flashes, frame
from console.access import Visit
from console.builders.stops import Typed
from console.pages.common import Link
from recovery.work import holds, stops

MOST_TYPED = 20_000


@dataclass(frozen=True)
class Board:
    """A page of switches. `address`: its name in the URLs; `build`: the page of a visit, from what was typed."""

    address: str
    template: str
    current: str
    build: Callable[..., object]

    def show(self, request: HttpRequest, visit: Visit, typed: Typed, *, status: int = 200) -> HttpResponse:
        page = self.build(visit, typed=typed, flashes=flashes.of(request))
        return frame.show(request, visit, self.template, page, current=self.current, status=status)

    def again(self, request: HttpRequest, form: forms.Form, row: uuid.UUID | None = None) -> HttpResponse:
        """The page with what was typed and what is wrong with it. `row`: the form of this one."""
        with access.visiting(request) as visit:
            return access.drawn(self.show(request, visit, _typed_in(form, row), status=422))

    def refused(self, request: HttpRequest, form: forms.Form, refused: stops.Refused | holds.Refused) -> HttpResponse:
        """At its field where one is at fault, else a page of its own: the right is missing."""
        if refused.field in form.fields:
            form.add_error(refused.field, f"{str(refused)[:1].upper()}{str(refused)[1:]}")
            return self.again(request, form)
        back = Link(f"Back to the {self.current.lower()}", reverse(self.address))
        problem = {"title": "You may not do this", "text": f"Blocked: {refused} Nothing was changed.", "action": back}
        return render(request, "403.html", {"problem": problem}, status=403)

    def back(self) -> HttpResponse:
        response = redirect(self.address)
        response.status_code = 303
        return response


def tenant_of(request: HttpRequest, slug: str) -> uuid.UUID:
    """The tenant of that short name, if it exists for this person."""
    with access.visiting(request) as visit:
        found = next((tenant.pk for tenant in visit.tenants.values() if tenant.slug == slug), None)
    if found is None:
        raise Http404
    return found


def _typed_in(form: forms.Form, row: uuid.UUID | None) -> Typed:
    values = {name: form.data.get(name, "")[:MOST_TYPED] for name in form.fields}
    return Typed(values, {name: str(errors[0]) for name, errors in form.errors.items() if errors}, row)
