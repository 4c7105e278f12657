"""`manage.py recompute TENANT DECISION`: a recorded recommendation decided again, then beside now."""

import uuid
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from console.embedded.errors import Trouble
from recovery import recompute
from recovery.rules.snapshots import Unreadable
from runs import wall


class Command(BaseCommand):
    help = "Decide a recorded recommendation again from what was stored with it, and say what differs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", help="the tenant's short name")
        parser.add_argument("decision", type=uuid.UUID)

    def handle(self, *_args: Any, **options: Any) -> None:
        tenant_id = wall.tenant_of_slug(options["tenant"])
        if tenant_id is None:
            raise _missing(options)
        with wall.within(tenant_id):
            decision = recompute.find(options["decision"])
            if decision is None:
                raise _missing(options)
            try:
                for line in recompute.lines(decision):
                    self.stdout.write(line)
            except Unreadable as why:
                raise Trouble(str(why)) from why


def _missing(options: dict[str, Any]) -> Trouble:
    return Trouble(f"There is no decision {options['decision']} of {options['tenant']}.")
