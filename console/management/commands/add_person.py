"""Gives somebody a role in a tenant; somebody new gets a one-time link to set a password (SEC-06)."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.conf import settings
from django.db import IntegrityError
from django.urls import reverse

from console.embedded.errors import Trouble
from console.management import desk
from recovery import permissions, post
from runs import record, wall
from runs.models import Person, Tenant


class Command(desk.DeskCommand):
    help = "Give a person a role in a tenant. Somebody without a password gets a one-time link to set one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")
        parser.add_argument("name", help='as it stands on pages, for example "Omar Haddad"')
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--role", required=True, choices=list(permissions.ROLES))
        parser.add_argument("--address", help="where people reach the console; default: where it runs now")

    def handle(self, *_args: Any, **options: Any) -> None:
        email, name = desk.email(options["email"]), desk.title(options["name"], of="person")
        tenant = desk.tenant(options["tenant"])
        try:
            person = _admit(email, name, tenant, options["role"])
        except IntegrityError as error:
            raise Trouble(f"Somebody else is adding {email} at this moment: run this again.") from error
        self.stdout.write(f"{person.name} <{person.email}> is {options['role']} of {tenant.name}.\n")
        if person.has_usable_password():
            self.stdout.write("They sign in with the password they have.\n")
            return
        minutes = int(timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT).total_seconds() // 60)
        link = (options["address"] or post.console_address()).rstrip("/") + _path(person)
        self.stdout.write(
            f"To set a password, once, within {minutes} minutes (run this again for a new link):\n  {link}\n"
        )


def _admit(email: str, name: str, tenant: Tenant, role: str) -> Person:
    """The person, made if nobody has this address, in the role; all of it or nothing."""
    with wall.within(tenant.pk):
        person = Person.objects.filter(email=email).first()
        if person is None:
            person = Person.objects.create_user(email=email, name=name)
        if not person.is_active:
            raise Trouble(f"{email} was deactivated: give the role to somebody who may sign in.")
        permissions.grant_role(person, tenant, role)
        data = {"person": str(person.pk), "role": role}
        record.write_event(None, "role_granted", desk.operator(), tenant_id=tenant.pk, data=data)
        return person


def _path(person: Person) -> str:
    """The page that sets a password. Its key holds the old password's hash, so it ends with the first use."""
    known = {"uidb36": user_pk_to_url_str(person), "key": default_token_generator.make_token(person)}
    return reverse("account_reset_password_from_key", kwargs=known)
