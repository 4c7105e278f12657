"""The sign-in, and the page behind the one-time link: the first person and the first tenant of an installation."""

from __future__ import annotations

from typing import Any

from allauth.account.views import LoginView
from django.contrib.auth import login
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from console import invitation, signins
from console.forms import FirstAdminForm
from console.pages.common import Link
from recovery import permissions
from runs import vault, wall
from runs.ids import new_id
from runs.models import Person, Tenant

BACKEND = "allauth.account.auth_backends.AuthenticationBackend"


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def first_admin(request: HttpRequest, token: str) -> HttpResponse:
    """Shown and answered only while the link is good and there is no admin; all others get the same 404."""
    if not invitation.is_open(token):
        return _closed(request)
    form = FirstAdminForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return render(request, "account/first_admin.html", {"form": form}, status=422 if form.errors else 200)
    person = _create(form, token)
    if person is None:
        return _closed(request)
    login(request, person, backend=BACKEND)
    signins.succeeded(request, person)
    return redirect("queue")


class SignIn(LoginView):
    """allauth's sign-in; before anybody exists it says where the link is that makes the first admin."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "nobody_yet": not invitation.somebody_exists()}


def _closed(request: HttpRequest) -> HttpResponse:
    """The same answer for every link that is not good, whoever made it up."""
    exists = invitation.an_admin_exists()
    ask = "There is an admin already: ask an admin for an account."
    again = ask if exists else "Print a new one with manage.py invite_admin on the machine that runs Steadyhand."
    problem = {
        "title": "This link was used or is too old",
        "text": f"It works once, within a day. {again} Nothing was sent.",
        "action": Link("Sign in", reverse("account_login")) if exists else None,
    }
    return render(request, "404.html", {"problem": problem}, status=404)


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
