"""Sets, lists and lifts stop switches from a shell: the same rights and the same history as in the browser."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from console.embedded.errors import Trouble
from console.management import desk
from recovery.work import stops
from runs import wall
from runs.ids import parse_id
from runs.models import Stop, Tenant
from runs.querysets import read_clock


class Command(desk.DeskCommand):
    help = "Keep calls from leaving, and let them leave again: stop set, stop list, stop lift."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        setting = verbs.add_parser("set", help="set a switch")
        setting.add_argument("tenant", metavar="TENANT_SLUG")
        setting.add_argument("mode", choices=stops.MODES)
        setting.add_argument("scope", choices=stops.SCOPES)
        setting.add_argument("name", nargs="?", default="", help="which workflow, tool, connector or run")
        setting.add_argument("--minutes", type=int, help="how long it stands; without it, until it is lifted")
        listing = verbs.add_parser("list", help="list the switches that stand")
        listing.add_argument("tenant", metavar="TENANT_SLUG")
        lifting = verbs.add_parser("lift", help="lift a switch")
        lifting.add_argument("tenant", metavar="TENANT_SLUG")
        lifting.add_argument("stop", metavar="STOP_ID")
        for acting in (setting, lifting):
            acting.add_argument("--by", required=True, metavar="EMAIL", help="who does it: their rights are asked")
            acting.add_argument("--reason", required=True)

    def handle(self, *_args: Any, **options: Any) -> None:
        tenant = desk.tenant(options["tenant"])
        try:
            told = {"set": _set, "list": _list, "lift": _lift}[options["verb"]](tenant, options)
        except stops.Refused as refused:
            raise Trouble(f"Nothing was changed: {refused}") from refused
        except stops.NoSuchStop as gone:
            raise Trouble("No such switch stands: 'manage.py stop list' shows those that do.") from gone
        self.stdout.write(told + "\n")


def _set(tenant: Tenant, options: dict[str, Any]) -> str:
    made = stops.set_stop(
        desk.person(options["by"]),
        tenant.pk,
        scope=options["scope"],
        name=options["name"],
        mode=options["mode"],
        until=_until(tenant, options["minutes"]),
        reason=options["reason"],
        request_id=_from_here(),
    )
    return f"Set. {_line(made)}"


def _lift(tenant: Tenant, options: dict[str, Any]) -> str:
    stop_id = parse_id(options["stop"])
    if stop_id is None:
        raise stops.NoSuchStop
    by, reason = desk.person(options["by"]), options["reason"]
    return f"Lifted. {_line(stops.lift_stop(by, tenant.pk, stop_id, reason=reason, request_id=_from_here()))}"


def _list(tenant: Tenant, _options: dict[str, Any]) -> str:
    with wall.within(tenant.pk):
        now = read_clock()
        lines = [_line(stop) for stop in stops.listed(tenant.pk) if stops.is_standing(stop, now)]
    return "\n".join(lines) or f"Nothing is stopped in {tenant.name}."


def _line(stop: Stop) -> str:
    what = f"{stop.scope} {stop.name}".rstrip()
    until = f" until {stop.until:%Y-%m-%d %H:%M} UTC" if stop.until else ""
    return f"{stop.pk}  {stop.mode} {what}{until}, by {stop.by}: {stop.reason}"


def _from_here() -> str:
    """Beside the person that was named, the history keeps whose shell it was."""
    return desk.operator().name[:64]


def _until(tenant: Tenant, minutes: int | None) -> datetime | None:
    if minutes is None:
        return None
    if not 0 < minutes <= 366 * 24 * 60:
        raise Trouble("A switch stands for at least one minute and at most a year.")
    with wall.within(tenant.pk):
        return read_clock() + timedelta(minutes=minutes)
