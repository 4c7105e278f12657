"""Where a tenant's connectors stand (bounds that were not kept, how far they were listed), and trusting one again."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from console.embedded.errors import Trouble
from console.management import desk
from recovery import demotions
from recovery.models import Demotion, OutsideSweep
from runs import wall
from runs.ids import parse_id
from runs.models import Tenant


class Command(desk.DeskCommand):
    help = "What is known against a tenant's connectors: connector list, connector lift."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("list", help="where they stand").add_argument("tenant", metavar="TENANT_SLUG")
        lifting = verbs.add_parser("lift", help="count a connector's declared bounds again")
        lifting.add_argument("tenant", metavar="TENANT_SLUG")
        lifting.add_argument("demotion", metavar="ID", help="as 'connector list' shows it")
        lifting.add_argument("--by", required=True, metavar="EMAIL", help="who does it: an admin of the tenant")
        lifting.add_argument("--reason", required=True)

    def handle(self, *_args: Any, **options: Any) -> None:
        tenant = desk.tenant(options["tenant"])
        told = _lift(tenant, options) if options["verb"] == "lift" else "\n".join(_lines(tenant))
        self.stdout.write((told or f"Nothing is known against a connector of {tenant.name}.") + "\n")


def _lift(tenant: Tenant, options: dict[str, Any]) -> str:
    demotion_id = parse_id(options["demotion"])
    try:
        if demotion_id is None:
            raise Demotion.DoesNotExist
        lifted = demotions.lift(desk.person(options["by"]), tenant.pk, demotion_id, reason=options["reason"])
    except demotions.Refused as refused:
        raise Trouble(f"Nothing was changed: {refused}") from refused
    except Demotion.DoesNotExist as gone:
        raise Trouble("No such demotion stands: 'manage.py connector list' shows those that do.") from gone
    return f"Lifted. The bounds of {lifted.connector} count again."


def _lines(tenant: Tenant) -> Iterator[str]:
    with wall.within(tenant.pk):
        for one in Demotion.objects.filter(lifted_at__isnull=True).select_related("workflow").order_by("id"):
            since = f"{one.since:%Y-%m-%d %H:%M} UTC"
            yield f"{one.connector}  demoted  {since}  {one.pk}  under {one.workflow}: {one.reason}"
        for sweep in OutsideSweep.objects.order_by("connector"):
            yield f"{sweep.connector}  {_listed(sweep)}"


def _listed(sweep: OutsideSweep) -> str:
    until = f"listed up to {sweep.listed_until:%Y-%m-%d %H:%M:%S} UTC"
    if sweep.due_at is None:
        return f"{until}; no longer listed"
    return f"{until}; failed {sweep.failures} times since: {sweep.failure}" if sweep.failures else until
