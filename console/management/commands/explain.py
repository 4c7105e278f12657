"""`manage.py explain TENANT RUN`: how a run came to stand where it stands, event by event."""

import uuid
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from console.embedded.errors import Trouble
from console.management import desk
from recovery.scenarios import explain
from runs import wall
from runs.models import Run


class Command(BaseCommand):
    help = "Print the decision path of a run: each event with who brought it, the rule and what it rested on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", help="the tenant's short name")
        parser.add_argument("run", help="the run's id")

    def handle(self, *_args: Any, **options: Any) -> None:
        run_id = desk.known_id(options["run"], of="run", where="the address of its page")
        tenant_id = desk.tenant(options["tenant"]).pk
        if not _exists(tenant_id, run_id):
            raise Trouble(f"There is no run {run_id} of {options['tenant']}: look it up on the page Runs.")
        for line in explain.lines(run_id, tenant_id):
            self.stdout.write(line)


def _exists(tenant_id: uuid.UUID, run_id: uuid.UUID) -> bool:
    with wall.within(tenant_id):
        return Run.objects.filter(pk=run_id).exists()
