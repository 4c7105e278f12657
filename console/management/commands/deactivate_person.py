"""Ends somebody's access: signed out everywhere, without rights, their tasks back in the queue (F129)."""

from argparse import ArgumentParser
from typing import Any

from console.embedded.errors import Trouble
from console.management import desk
from recovery import leaving
from runs.models import Person


class Command(desk.DeskCommand):
    help = "End a person's access: every session and right of theirs, and what they held goes to the team."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")

    def handle(self, *_args: Any, **options: Any) -> None:
        email = desk.email(options["email"])
        person = Person.objects.filter(email=email).first()
        if person is None:
            raise Trouble(f"Nobody has the address {email}.")
        if not person.is_active:
            self.stdout.write(f"{person.name} <{email}> was deactivated before.\n")
            return
        try:
            returned = leaving.deactivate(person, desk.operator())
        except leaving.LastAdmin as alone:
            raise Trouble(
                f"{person.name} is the only admin of {desk.name_of(alone.tenant_id)}: "
                "make another with 'manage.py add_person … --role admin' first."
            ) from alone
        tasks = "1 task" if returned == 1 else f"{returned} tasks"
        self.stdout.write(f"{person.name} <{email}> has no access any more; {tasks} went back to the queue.\n")
