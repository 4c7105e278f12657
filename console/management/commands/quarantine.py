"""Lists the messages on the queue that were not ours, and settles one that somebody has looked at."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from console.embedded.errors import Trouble
from console.management import desk
from recovery import quarantine
from recovery.models import QuarantinedMessage
from runs.ids import parse_id

SHOWN = 100


class Command(desk.DeskCommand):
    help = "List the messages that the worker turned away, or settle one: quarantine --settle ID."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--settle", metavar="ID", help="somebody has looked at this one")

    def handle(self, *_args: Any, **options: Any) -> None:
        if options["settle"] is None:
            self.stdout.write("\n".join(_lines()) + "\n")
            return
        message_id = parse_id(options["settle"])
        if message_id is None or not quarantine.settle(message_id):
            raise Trouble("No open message has this id: 'manage.py quarantine' lists them.")
        self.stdout.write("Settled.\n")


def _lines() -> list[str]:
    found = QuarantinedMessage.objects.filter(settled_at__isnull=True).order_by("-last_at")[:SHOWN]
    lines = [
        f"{one.pk}  {one.times} times, from {one.first_at:%Y-%m-%d %H:%M} to {one.last_at:%Y-%m-%d %H:%M} UTC, "
        f"for {one.owner_team}: {one.reason}; {one.size} bytes, sha256 {one.digest[:16]}"
        for one in found
    ]
    return lines or ["Nothing is in quarantine."]
