"""Fill an empty installation for the demo: two tenants, the personas, the agent's token; say how to sign in."""

from __future__ import annotations

import json
import secrets
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from console.embedded import lines
from recovery import clients, permissions
from runs import vault, wall
from runs.ids import new_id
from runs.models import Person, Tenant

TENANTS = {"nordlicht": "Nordlicht Energie", "harbor": "Harbor Travel"}
PERSONAS = (
    ("alice", "support", "nordlicht"),
    ("omar", "oncall", "nordlicht"),
    ("ada", "admin", "nordlicht"),
    ("nia", "auditor", "nordlicht"),
    ("bob", "viewer", "nordlicht"),
    ("charlie", "support", "harbor"),
)


class Command(BaseCommand):
    help = "Make the demo's tenants, people and agent, once, and print how to sign in."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--address", required=True, help="where the console answers")
        parser.add_argument("--sandbox", required=True, help="where the sandbox answers")

    def handle(self, *_args: Any, **options: Any) -> None:
        folder = settings.STEADYHAND_HOME / "demo"
        folder.mkdir(mode=0o700, exist_ok=True)
        password = _password(folder / "people.json")
        if not Person.objects.filter(email=_address("alice")).exists():
            _fill(folder, password)
        self._say(options["address"], options["sandbox"], password)

    def _say(self, address: str, sandbox: str, password: str) -> None:
        said = [
            "",
            f"Steadyhand is ready:   {address}",
            f"The outside world:     {sandbox}   (its ledger beside what Steadyhand believes)",
            "",
            lines.private(f"Sign in with any of these; the password is  {password}"),
            *(f"  {_address(name):28}{role:10}{TENANTS[tenant]}" for name, role, tenant in PERSONAS),
            "",
            "An agent is working now. In the queue, open the unknown credit and press Check what happened.",
            "",
        ]
        self.stdout.write("\n".join(said))


def _fill(folder: Path, password: str) -> None:
    made = {slug: _tenant(slug, name) for slug, name in TENANTS.items()}
    with wall.within(made["nordlicht"].pk):
        _, token = clients.issue_client(tenant=made["nordlicht"], name="billing-agent", workflows=[])
    _write(folder / "agent.token", token)
    for name, role, tenant in PERSONAS:
        person = Person.objects.create_user(email=_address(name), name=name.capitalize(), password=password)
        permissions.grant_role(person, made[tenant], role)


def _tenant(slug: str, name: str) -> Tenant:
    tenant = Tenant(pk=new_id(), slug=slug, name=name, sealed_key=vault.new_sealed_key())
    with wall.within(tenant.pk):
        tenant.save(force_insert=True)
    return tenant


def _password(path: Path) -> str:
    """Made on the first start and kept: a demo has no default password either."""
    if not path.exists():
        _write(path, json.dumps({"password": "-".join(secrets.token_hex(2) for _ in range(4))}))
    return str(json.loads(path.read_text())["password"])


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def _address(name: str) -> str:
    return f"{name}@steadyhand.example"
