"""Makes, rotates and lists signing secrets: of providers that call back, and of the endpoints that Steadyhand asks
(connector kind webhook); each is shown once (SEC-21)."""

import re
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from console.embedded.errors import Trouble
from console.management import desk
from recovery import callback_secrets, post
from runs import record, wall
from runs.models import Tenant
from runs.querysets import read_clock

# As the SDK's manifest names a source.
_SOURCE = re.compile(r"(connector:)?[a-z][a-z0-9_.\-]{0,79}\Z")
LONGEST_OVERLAP_HOURS = 24 * 30


class Command(desk.DeskCommand):
    help = "Make or rotate the secret that signs a provider's callbacks, or messages to a connector, or list them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["create", "rotate", "list"])
        parser.add_argument("tenant", metavar="TENANT_SLUG")
        parser.add_argument(
            "source",
            nargs="?",
            default="",
            help="who signs, as the tools' callback names it; connector:NAME for a webhook connector",
        )
        parser.add_argument(
            "--overlap-hours", type=int, default=24, help="how long the secret before still holds; default: 24"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        tenant = desk.tenant(options["tenant"])
        if options["what"] == "list":
            return self._list(tenant)
        source = _source(options["source"])
        secret = _create(tenant, source) if options["what"] == "create" else _rotate(tenant, source, options)
        self.stdout.write("\n".join(_shown(tenant, source, secret)) + "\n")
        return None

    def _list(self, tenant: Tenant) -> None:
        with wall.within(tenant.pk):
            now, held = read_clock(), list(callback_secrets.listed())
        if not held:
            self.stdout.write(f"{tenant.name} has no callback secrets.\n")
        for one in held:
            ends = one.valid_until
            until = f"until {ends:%Y-%m-%d %H:%M} UTC" if ends else "with no end"
            state = "ended" if ends is not None and ends <= now else "holds"
            self.stdout.write(f"{one.source}  {state}  since {one.valid_from:%Y-%m-%d %H:%M} UTC, {until}\n")


def _shown(tenant: Tenant, source: str, secret: str) -> list[str]:
    if source.startswith(callback_secrets.OF_CONNECTOR):
        whose = f"The secret of {source} for {tenant.name}. It is shown this once; give it to the endpoint"
        return [f"{whose}, which checks our messages by it:", "", f"  secret   {secret}"]
    return [
        f"The secret of {source} for {tenant.name}. It is shown this once; give it to the provider:",
        "",
        f"  address  {post.console_address()}/api/v1/callbacks/{tenant.slug}/{source}",
        f"  secret   {secret}",
    ]


def _create(tenant: Tenant, source: str) -> str:
    try:
        with wall.within(tenant.pk):
            secret = callback_secrets.create(tenant, source)
            _note("callback_secret_created", tenant, source)
    except callback_secrets.HasSecret as error:
        again = f"manage.py callback_secret rotate {tenant.slug} {source}"
        raise Trouble(f"{source} has a secret already: replace it with '{again}'.") from error
    return secret


def _rotate(tenant: Tenant, source: str, options: dict[str, Any]) -> str:
    hours = options["overlap_hours"]
    if not 0 <= hours <= LONGEST_OVERLAP_HOURS:
        raise Trouble(f"Two secrets hold together for 0 to {LONGEST_OVERLAP_HOURS} hours.")
    try:
        with wall.within(tenant.pk):
            secret = callback_secrets.rotate(tenant, source, overlap=timedelta(hours=hours))
            _note("callback_secret_rotated", tenant, source)
    except callback_secrets.NoSecret as error:
        first = f"manage.py callback_secret create {tenant.slug} {source}"
        raise Trouble(f"{source} has no secret to replace: make one with '{first}'.") from error
    return secret


def _note(kind: str, tenant: Tenant, source: str) -> None:
    record.write_event(None, kind, desk.operator(), tenant_id=tenant.pk, data={"source": source})


def _source(text: str) -> str:
    if not _SOURCE.match(text):
        raise Trouble(
            f"'{text[:100]}' cannot name a source: use up to 80 lower-case letters, digits, '_', '.' and '-', "
            "a letter first, as the tools' callback does."
        )
    return text
