"""The door of every page: who asks, which tenants exist for them, and the request's own id (SEC-06, SEC-29).

A page is drawn whole inside one transaction in which exactly the person's tenants exist. A verb opens no wall of its
own: recovery opens it to the one tenant that is written.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any, cast

from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse

from console.api import edge
from recovery import permissions
from recovery.permissions import Grants
from runs import wall
from runs.models import Person, Tenant
from runs.querysets import database_now, read_clock

SEEN = "seen_at"
SEEN_EVERY_SECONDS = 60

View = Callable[..., HttpResponse]


@dataclass(frozen=True)
class Visit:
    """One person at one moment. `tenants` are all they may read; `chosen` narrows lists to one of them."""

    person: Person
    grants: Grants
    tenants: dict[uuid.UUID, Tenant]
    chosen: Tenant | None
    now: datetime

    @property
    def scope(self) -> list[uuid.UUID]:
        """The tenants that a list covers."""
        return [self.chosen.pk] if self.chosen else list(self.tenants)

    def may(self, ability: str, tenant_id: uuid.UUID) -> bool:
        return ability in self.grants.get(tenant_id, frozenset())

    def named(self, tenant_id: uuid.UUID) -> str:
        return self.tenants[tenant_id].name


def page(view: View) -> View:
    """A page for somebody signed in, drawn inside the wall; the view gets (request, visit, …)."""

    @wraps(view)
    def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        refusal = _admit(request)
        if refusal is not None:
            return refusal
        with visiting(request) as visit:
            return drawn(view(request, visit, *args, **kwargs))

    return inner


def acts(view: View) -> View:
    """A verb for somebody signed in; the view gets (request, …) and no wall is open."""

    @wraps(view)
    def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return _admit(request) or view(request, *args, **kwargs)

    return inner


@contextmanager
def visiting(request: HttpRequest) -> Iterator[Visit]:
    """The wall, open to everything that the person behind the request may read. Http404 for a tenant they lack."""
    person = cast(Person, request.user)
    grants = permissions.grants(person)
    readable = [tenant for tenant, abilities in grants.items() if "view" in abilities]
    with wall.within(*readable):
        found = list(Tenant.objects.filter(pk__in=readable).annotate(read_at=database_now()).order_by("name"))
        now = found[0].read_at if found else read_clock()
        tenants: dict[uuid.UUID, Tenant] = {tenant.pk: tenant for tenant in found}
        yield Visit(person, grants, tenants, _chosen(request, tenants), now)


def drawn(response: HttpResponse) -> HttpResponse:
    """The response with its template carried out: after the wall has closed, no row exists any more."""
    render = getattr(response, "render", None)
    return render() if callable(render) else response


def person_of(request: HttpRequest) -> Person:
    return cast(Person, request.user)


def request_id(request: HttpRequest) -> str:
    """The id that ties this request to what it changed; made once."""
    known: str = getattr(request, "request_id", "") or edge.request_id(request)
    request.request_id = known  # type: ignore[attr-defined]
    return known


def _admit(request: HttpRequest) -> HttpResponse | None:
    """None for somebody signed in; else the way to the sign-in, or a bare 401 for a region that polls."""
    request_id(request)
    if request.user.is_authenticated and not _idle(request):
        return None
    if getattr(request, "htmx", False):
        return HttpResponse("Sign in again.", status=401, content_type="text/plain; charset=utf-8")
    return redirect_to_login(request.get_full_path())


def _idle(request: HttpRequest) -> bool:
    """Whether nobody has been here for too long (SEC-04); a page that polls by itself is nobody."""
    seen, now = request.session.get(SEEN), time.time()
    if seen is not None and now - seen > settings.SESSION_IDLE_SECONDS:
        logout(request)
        return True
    if not getattr(request, "htmx", False) and (seen is None or now - seen > SEEN_EVERY_SECONDS):
        request.session[SEEN] = now
    return False


def _chosen(request: HttpRequest, tenants: dict[uuid.UUID, Tenant]) -> Tenant | None:
    slug = request.GET.get("tenant", "")
    if not slug:
        return None
    found = next((tenant for tenant in tenants.values() if tenant.slug == slug), None)
    if found is None:
        raise Http404
    return found
