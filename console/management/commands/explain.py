"""`manage.py explain TENANT RUN`: how a run came to stand where it stands, event by event."""

import uuid
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from console.embedded.errors import Trouble
from recovery.scenarios import explain
from runs import wall
from runs.models import Run


class Command(BaseCommand):
    help = "Print the decision path of a run: each event with who brought it, the rule and what it rested on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", help="the tenant's short name")
        parser.add_argument("run", type=uuid.UUID)

    def handle(self, *_args: Any, **options: Any) -> None:
        tenant_id = wall.tenant_of_slug(options["tenant"])
        if tenant_id is None or not _exists(tenant_id, options["run"]):
            raise Trouble(f"There is no run {options['run']} of {options['tenant']}.")
        for line in explain.lines(options["run"], tenant_id):
            self.stdout.write(line)


def _exists(tenant_id: uuid.UUID, run_id: uuid.UUID) -> bool:
    with wall.within(tenant_id):
        return Run.objects.filter(pk=run_id).exists()
