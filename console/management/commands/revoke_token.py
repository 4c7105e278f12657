"""Ends an agent's token at once (SEC-17)."""

from argparse import ArgumentParser
from typing import Any

from console.embedded.errors import Trouble
from console.management import desk
from runs import record, wall
from runs.models import AgentClient, Tenant
from runs.querysets import database_now

SHOWN = 20


class Command(desk.DeskCommand):
    help = "End the token of an agent: its next call is refused. What it did stays on record."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", metavar="TENANT_SLUG")
        parser.add_argument("name", help="the agent's name")

    def handle(self, *_args: Any, **options: Any) -> None:
        tenant, name = desk.tenant(options["tenant"]), options["name"].strip()
        with wall.within(tenant.pk):
            _revoke(tenant, name)
        self.stdout.write(f"{name} of {tenant.name} is no longer let in.\n")


def _revoke(tenant: Tenant, name: str) -> None:
    working = AgentClient.objects.filter(revoked_at=None)
    ended = [str(pk) for pk in working.filter(name=name).values_list("pk", flat=True)]
    if not ended:
        raise Trouble(f"{tenant.name} has no agent '{name[:80]}' with a token: {_known(working)}.")
    AgentClient.objects.filter(pk__in=ended).update(revoked_at=database_now())
    data = {"clients": ended, "name": name}
    record.write_event(None, "token_revoked", desk.operator(), tenant_id=tenant.pk, data=data)


def _known(working: Any) -> str:
    names = list(working.order_by("name").values_list("name", flat=True).distinct()[: SHOWN + 1])
    more = " and others" if len(names) > SHOWN else ""
    return f"it has {', '.join(names[:SHOWN])}{more}" if names else "it has none at all"
