"""The page behind the one-time link: the first person and the first tenant of an empty installation."""

from __future__ import annotations

from django.contrib.auth import login
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from console import invitation
from console.forms import FirstAdminForm
from recovery import permissions
from runs import vault, wall
from runs.ids import new_id
from runs.models import Person, Tenant

BACKEND = "allauth.account.auth_backends.AuthenticationBackend"


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def first_admin(request: HttpRequest, token: str) -> HttpResponse:
    """Shown and answered only while the link is good and nobody can sign in; else it does not exist."""
    if not invitation.is_open(token):
        raise Http404
    form = FirstAdminForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return render(request, "account/first_admin.html", {"form": form}, status=422 if form.errors else 200)
    person = _create(form, token)
    if person is None:
        raise Http404
    login(request, person, backend=BACKEND)
    return redirect("queue")


def _create(form: FirstAdminForm, token: str) -> Person | None:
    """Both or neither; None if the link was used at the same moment."""
    asked = form.cleaned_data
    with transaction.atomic():
        if not invitation.redeem(token):
            return None
        tenant = Tenant(pk=new_id(), slug=form.slug, name=asked["tenant"], sealed_key=vault.new_sealed_key())
        with wall.within(tenant.pk):
            tenant.save(force_insert=True)
        person = Person.objects.create_user(asked["email"], asked["name"], asked["password"])
        permissions.grant_role(person, tenant, "admin")
        return person
