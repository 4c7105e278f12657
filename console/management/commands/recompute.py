"""`manage.py recompute TENANT DECISION`: a recorded recommendation decided again, then beside now."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from console.embedded.errors import Trouble
from console.management import desk
from recovery import recompute
from recovery.rules.snapshots import Unreadable
from runs import wall


class Command(BaseCommand):
    help = "Decide a recorded recommendation again from what was stored with it, and say what differs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", help="the tenant's short name")
        parser.add_argument("decision", help="the decision's id")

    def handle(self, *_args: Any, **options: Any) -> None:
        wanted = desk.known_id(
            options["decision"], of="decision", where="what 'manage.py explain' prints: decision=…"
        )
        with wall.within(desk.tenant(options["tenant"]).pk):
            decision = recompute.find(wanted)
            if decision is None:
                raise Trouble(
                    f"There is no decision {wanted} of {options['tenant']}: 'manage.py explain' prints them."
                )
            try:
                for line in recompute.lines(decision):
                    self.stdout.write(line)
            except Unreadable as why:
                raise Trouble(str(why)) from why
