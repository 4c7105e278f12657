"""Makes a tenant safe after its database was restored from an older backup (docs/operations/restore.md)."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from console.embedded.errors import Trouble
from console.management import desk
from recovery.work import restored, stops


class Command(desk.DeskCommand):
    help = "After a restore: count what may have been sent since the backup as unknown, and let nothing leave."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", metavar="TENANT_SLUG")
        parser.add_argument("--backup-taken", required=True, metavar="TIME", help="for example 2026-11-30T04:00:00Z")
        parser.add_argument("--by", required=True, metavar="EMAIL", help="who does it: their rights are asked")

    def handle(self, *_args: Any, **options: Any) -> None:
        tenant, by = desk.tenant(options["tenant"]), desk.person(options["by"])
        try:
            done = restored.after_restore(
                by, tenant.pk, taken_at=_time(options["backup_taken"]), request_id=desk.operator().name[:64]
            )
        except (restored.Unusable, stops.Refused) as refused:
            raise Trouble(f"Nothing was changed: {refused}") from refused
        self.stdout.write(
            f"{tenant.name}: {done.runs} runs are with a person, {done.calls} calls count as sent and unknown, "
            f"{done.approvals} approvals wait. Nothing leaves until the switch is lifted ('manage.py stop list').\n"
        )


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise Trouble("--backup-taken must be a time such as 2026-11-30T04:00:00Z.") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
