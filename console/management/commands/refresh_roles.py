"""Give every tenant's roles what this version of Steadyhand grants them; a step of each start."""

from __future__ import annotations

from typing import Any

from console.management.desk import DeskCommand
from recovery import permissions


class Command(DeskCommand):
    help = "Give roles made by an earlier version the abilities that came since. Harmless to repeat."

    def handle(self, *_args: Any, **_options: Any) -> None:
        added = permissions.refresh_roles()
        if added:
            self.stdout.write(f"{added} abilities of this version were given to the roles they belong to.")
