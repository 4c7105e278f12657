"""Who signed in and who failed to, as events of every tenant that the person belongs to (SEC-23)."""

from __future__ import annotations

from django.http import HttpRequest

from console import access
from recovery import permissions
from runs import record, wall
from runs.models import Person
from runs.record import Actor


def succeeded(request: HttpRequest, person: Person) -> None:
    """Somebody is in."""
    _write(request, person, "signed_in", "Signed in.")


def failed(request: HttpRequest, email: str) -> None:
    """A wrong password for a person that exists; an address that nobody has belongs to no tenant's history."""
    person = Person.objects.filter(email=email.strip().lower()).first()
    if person is not None:
        _write(request, person, "sign_in_failed", "A sign-in with this address failed.")


def _write(request: HttpRequest, person: Person, kind: str, words: str) -> None:
    actor = Actor("person", str(person), access.request_id(request))
    for tenant_id in permissions.tenants_of(person):
        with wall.within(tenant_id):
            record.write_event(None, kind, actor, tenant_id=tenant_id, reason=words, data={"person": str(person.pk)})
