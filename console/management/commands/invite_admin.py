"""Prints the one-time link that makes the first admin."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from console import invitation
from console.embedded import lines


class Command(BaseCommand):
    help = "Print a one-time link for the first admin; it works for a day and only while there is no admin."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--address", default="http://127.0.0.1:8000", help="where the console is reached")
        parser.add_argument("--quiet-if-known", action="store_true", help="say nothing if there is an admin")

    def handle(self, *_args: Any, **options: Any) -> None:
        if options["quiet_if_known"] and invitation.an_admin_exists():
            return
        # Written by hand rather than reversed: the page may be served under another host's address.
        link = f"{options['address'].rstrip('/')}/first-admin/{invitation.issue()}/"
        self.stdout.write("There is no admin yet. Make the first admin here, once, within a day:\n")
        self.stdout.write(lines.private(f"  {link}\n"))
