"""Settings, members: who has which role, and changing somebody's roles, where it gives something by two admins."""

from __future__ import annotations

import uuid

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console import access, flashes, frame
from console.access import Visit
from console.builders import members as build
from console.builders.members import Wish
from console.filters import query, unread
from console.pages.common import Link
from console.views.switching import tenant_of
from recovery.work import roles
from runs.ids import parse_id

CURRENT = "Settings"
MOST_ROLES = 10
_WHY = {"required": "Say why, in a few words.", "max_length": "At most 2000 characters. Nothing was changed."}


class RolesForm(forms.Form):
    """Why, and the marks of the sheet: the one-time key, and the roles as it showed them."""

    key = forms.RegexField(r"\A[0-9a-f]{32}\Z")
    before = forms.CharField(required=False, max_length=200)
    reason = forms.CharField(max_length=2000, error_messages=_WHY)


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
    return frame.show(request, visit, "settings/members.html", page, current=CURRENT)


@require_http_methods(["GET", "HEAD", "POST"])
@access.acts
def change_roles(request: HttpRequest, person_id: uuid.UUID) -> HttpResponse:
    """GET shows what the chosen roles would change, POST changes them or asks a second admin."""
    if request.method != "POST":
        return _sheet(request, person_id, _wish(request.GET.getlist("role")))
    tenant_id = tenant_of(request, request.GET.get("tenant", ""))
    form, wish = RolesForm(request.POST), _wish(request.POST.getlist("role"))
    if "reason" in form.errors and len(form.errors) == 1 and not form.is_valid():
        errors = Wish(wish.roles, request.POST.get("reason", "")[:4000], str(form.errors["reason"][0]))
        return _sheet(request, person_id, errors, status=422)
    if not form.is_valid():
        return _sheet(
            request, person_id, Wish(wish.roles, "", "The form was not whole. Nothing was changed."), status=400
        )
    told = form.cleaned_data
    try:
        row = roles.change(
            access.person_of(request), tenant_id, person_id, before=told["before"].split(), after=wish.roles or [],
            reason=told["reason"], key=told["key"], request_id=access.request_id(request),
        )  # fmt: skip
    except roles.NoSuchMember:
        raise Http404 from None
    except roles.Refused as refused:
        status = 409 if isinstance(refused, roles.Moved) else 403
        said = f"Blocked: {refused} Nothing was changed."
        return _sheet(request, person_id, Wish(wish.roles, told["reason"], said), status=status)
    if row.ended_at is None:
        flashes.leave(request, "requested", "Requested: a change of roles.", "It counts once a second admin agrees.")
    else:
        flashes.leave(request, "info", "Recorded: roles were changed.", "They hold from now on.")
    return _back(request)


@require_POST
@access.acts
def answer_change(request: HttpRequest, change_id: uuid.UUID) -> HttpResponse:
    """The second admin's word about a change that waits."""
    tenant_id = tenant_of(request, request.GET.get("tenant", ""))
    agrees = request.POST.get("answer") == "agree"
    person = access.person_of(request)
    try:
        roles.answer(person, tenant_id, change_id, agrees=agrees, request_id=access.request_id(request))
    except roles.NoSuchMember:
        flashes.leave(request, "race", "Nothing was changed.", "No such change waits any more.")
    except roles.Refused as refused:
        flashes.leave(request, "refused", "Nothing was changed.", f"Blocked: {refused}")
    else:
        what = "roles were changed." if agrees else "a change of roles was declined."
        flashes.leave(request, "info", f"Recorded: {what}")
    return _back(request)


def _wish(chosen: list[str]) -> Wish:
    """What was chosen; None where nothing was chosen yet, which is not the same as no role."""
    named = [one[:20] for one in chosen[:MOST_ROLES]]
    return Wish([one for one in named if one] if named else None)


def _sheet(request: HttpRequest, person_id: uuid.UUID, wish: Wish, *, status: int = 200) -> HttpResponse:
    with access.visiting(request) as visit:
        if visit.chosen is None:
            raise Http404
        if not visit.may(roles.ABILITY, visit.chosen.pk):
            return access.drawn(_refused(request))
        page = build.sheet(visit, visit.chosen, person_id, wish)
        if page is None:
            raise Http404
        return access.drawn(frame.show(request, visit, "settings/roles.html", page, current=CURRENT, status=status))


def _refused(request: HttpRequest) -> HttpResponse:
    back = Link("Back to the settings", reverse("settings"))
    text = "Blocked: only who administers or audits a tenant sees its members, and only an admin changes their roles."
    return render(request, "403.html", {"problem": {"title": "You may not do this", "text": text, "action": back}},
                  status=403)  # fmt: skip


def _back(request: HttpRequest) -> HttpResponse:
    response = redirect(reverse("settings_members") + query(tenant=request.GET.get("tenant", "")))
    response.status_code = 303
    return response
