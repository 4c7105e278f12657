"""Makes a tenant: the wall behind which its runs, people and agents stand."""

from argparse import ArgumentParser
from typing import Any

from django.db import IntegrityError

from console.embedded.errors import Trouble
from console.management import desk
from runs import record, vault, wall
from runs.ids import new_id
from runs.models import Tenant


class Command(desk.DeskCommand):
    help = "Make a tenant: a company or team whose runs nobody else sees."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="its short name in addresses and commands, for example nordlicht")
        parser.add_argument("name", help='its name on pages, for example "Nordlicht Energie"')

    def handle(self, *_args: Any, **options: Any) -> None:
        slug, name = desk.slug(options["slug"]), desk.title(options["name"], of="tenant")
        if desk.exists(slug):
            raise _taken(slug)
        try:
            _make(slug, name)
        except IntegrityError as error:
            raise _taken(slug) from error
        self.stdout.write(
            f"{name} is there. Next: manage.py add_person EMAIL NAME --tenant {slug} --role admin\n"
            f"and, for its agents:  manage.py agent_token {slug} NAME\n"
        )


def _make(slug: str, name: str) -> None:
    made = Tenant(pk=new_id(), slug=slug, name=name, sealed_key=vault.new_sealed_key())
    with wall.within(made.pk):
        made.save(force_insert=True)
        record.write_event(None, "tenant_added", desk.operator(), tenant_id=made.pk, data={"tenant": slug})


def _taken(slug: str) -> Trouble:
    return Trouble(f"There is a tenant '{slug}' already: choose another short name.")
