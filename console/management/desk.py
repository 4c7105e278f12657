"""What the commands of an administrator share: a tenant by its short name, checked words, and one-sentence errors."""

from __future__ import annotations

import getpass
import re
import shlex
import uuid
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand
from django.core.validators import validate_email, validate_slug
from django.db import OperationalError, ProgrammingError

from console.embedded.errors import Trouble
from runs import wall
from runs.models import Person, Tenant
from runs.record import Actor

LONGEST_NAME = 120
LONGEST_SLUG = 60
LONGEST_EMAIL = 254
# As the SDK's manifest names a workflow or a tool.
_NAME = re.compile(r"[a-z][a-z0-9_.\-]{0,79}\Z")


class DeskCommand(BaseCommand):
    """A command for whoever runs the installation; what stands in its way is one sentence, never a traceback."""

    requires_system_checks: list[str] = []

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except OperationalError as error:
            raise Trouble(
                "The database does not answer: start Steadyhand with 'make up' and leave it running, "
                "or correct DATABASE_URL."
            ) from error
        except ProgrammingError as error:
            if getattr(error.__cause__, "sqlstate", "") not in {"42P01", "42883"}:
                raise
            raise Trouble("The database has no tables yet: start Steadyhand once with 'make up'.") from error


def operator() -> Actor:
    """Who the history names: somebody with a shell on this machine, by the name they have there."""
    try:
        return Actor("person", f"{getpass.getuser()} (command line)")
    except (KeyError, OSError):  # a container may give its user no name
        return Actor("person", "command line")


def person(address: str) -> Person:
    """Somebody who signs in; Trouble if nobody does under this address."""
    found = Person.objects.filter(email=email(address)).first()
    if found is None:
        raise Trouble(f"Nobody signs in as {address}.")
    return found


def tenant(slug: str) -> Tenant:
    """The tenant of this short name; Trouble if there is none."""
    found = wall.tenant_of_slug(slug)
    if found is None:
        raise Trouble(
            f"There is no tenant '{slug}': make it with 'manage.py add_tenant {slug or 'SLUG'} \"Its name\"'."
        )
    with wall.within(found):
        return Tenant.objects.get(pk=found)


def known_id(text: str, *, of: str, where: str) -> uuid.UUID:
    """An id as it was typed; Trouble for text that is none. `where`: on which page one finds it."""
    try:
        return uuid.UUID(text)
    except ValueError as error:
        raise Trouble(f"'{text[:100]}' is not the id of a {of}: copy it from {where}.") from error


def name_of(tenant_id: uuid.UUID) -> str:
    with wall.within(tenant_id):
        return Tenant.objects.values_list("name", flat=True).get(pk=tenant_id)


def exists(slug: str) -> bool:
    return wall.tenant_of_slug(slug) is not None


def slug(text: str) -> str:
    """A short name as it stands in addresses; Trouble unless it is lower-case and short."""
    try:
        validate_slug(text)
    except ValidationError as error:
        raise _bad_slug(text) from error
    if text != text.lower() or len(text) > LONGEST_SLUG:
        raise _bad_slug(text)
    return text


def title(text: str, *, of: str, longest: int = LONGEST_NAME) -> str:
    """A name for people to read; Trouble if it is empty, too long or not printable."""
    text = text.strip()
    if not text or len(text) > longest or not text.isprintable():
        raise Trouble(f"The name of the {of} is empty, too long or not printable: use 1 to {longest} characters.")
    return text


def workflow(text: str) -> str:
    """A workflow's name as a manifest and an agent write it."""
    if not _NAME.match(text):
        raise Trouble(
            f"'{text[:100]}' cannot name a workflow: use up to 80 lower-case letters, digits, '_', '.' and '-', "
            "a letter first."
        )
    return text


def email(text: str) -> str:
    """An address, in lower case as sign-in compares it; Trouble if it is none."""
    try:
        if len(text) > LONGEST_EMAIL:
            raise ValidationError("too long")
        validate_email(text)
    except ValidationError as error:
        raise Trouble(f"'{text[:100]}' is not an e-mail address: write somebody@example.org.") from error
    return text.lower()


def _bad_slug(text: str) -> Trouble:
    return Trouble(
        f"'{text[:100]}' cannot be a tenant's short name: use up to {LONGEST_SLUG} lower-case letters, digits, "
        "'-' and '_'."
    )


def quoted(text: str) -> str:
    """A name as a shell takes it."""
    return shlex.quote(text)
