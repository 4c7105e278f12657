"""Brings everything up and keeps it up: one command, one log, one Ctrl-C."""

import logging
import logging.handlers
import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from console.embedded import endpoints, lines, startup
from console.embedded.children import Plan
from console.embedded.errors import Trouble
from console.embedded.places import Places
from console.embedded.record import Record
from console.embedded.supervisor import Supervisor

LOOPBACK_HOSTS = {"127.0.0.1", "::1", "localhost"}
LOG_BYTES = 10 * 1024 * 1024


class Command(BaseCommand):
    help = "Run PostgreSQL, Valkey, the console, its worker and its clock until Ctrl-C."
    # The checks would want a database that this command is about to start.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--demo", action="store_true", help="with the sandbox and a demo agent")
        parser.add_argument("--sandbox-port", type=int, help="default: as at the first start, the port after --port")

    def handle(self, *_args: Any, **options: Any) -> None:
        where: Places = settings.PLACES
        host, port, demo = options["host"], options["port"], options["demo"]
        _check_reach(host, demo=demo)
        startup.prepare_folders(where)
        record = Record(where.home)
        with record.only_one():
            say = _log(where)
            for name in record.end_orphans():
                say("up", f"{name} was left behind by an earlier start and has ended")
            with startup.listen(host, port) as line:
                plan = Plan(where, line.fileno(), host, port, demo=demo, collects=not settings.LOOPBACK)
                if demo:
                    plan = replace(
                        plan, sandbox_ports=endpoints.choose(where, asked=options["sandbox_port"], web=port)
                    )
                _run(plan, record=record, say=say)


def _run(plan: Plan, *, record: Record, say: Callable[[str, str], None]) -> None:
    up = Supervisor(say=say, env=_environment(plan), record=record, log=plan.places.log_file)
    with up.signals():
        try:
            say("up", "starting the database and the broker")
            startup.start_services(up, plan.places, startup.outside(os.environ))
            if not up.stopping:
                say("up", "starting the console, its worker and its clock")
                startup.start_residents(up, plan)
            if not up.stopping:
                say("up", f"Steadyhand is ready at {plan.address}/ - Ctrl-C stops it")
            up.keep_running()
        finally:
            say("up", "stopping")
            up.stop()
            say("up", "stopped")


def _check_reach(host: str, *, demo: bool) -> None:
    if host not in LOOPBACK_HOSTS and settings.LOOPBACK:
        raise Trouble(f"--host {host} lets other machines in: set STEADYHAND_HOSTS to the names they will use.")
    if demo and not settings.LOOPBACK:
        raise Trouble("The demo has known sign-ins and runs on this machine only: unset STEADYHAND_HOSTS.")


def _environment(plan: Plan) -> dict[str, str]:
    environment = {
        **os.environ,
        "STEADYHAND_HOME": str(plan.places.home),
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "PYTHONUNBUFFERED": "1",
        lines.SUPERVISED: "1",
    }
    if plan.demo:
        environment |= {
            # Runs of an earlier start look things up where they were told to then.
            "TRUSTED_ENDPOINTS": ",".join(_trusted(plan)),
            "STEADYHAND_URL": plan.address,
            "SANDBOX_URL": plan.sandbox_address,
        }
    return environment


def _trusted(plan: Plan) -> list[str]:
    """What was asked for beside the sandboxes of this demo."""
    sandboxes = [f"127.0.0.1:{port}" for port in plan.sandbox_ports]
    return sandboxes + [one for one in settings.TRUSTED_ENDPOINTS if one not in sandboxes]


def _log(where: Places) -> Callable[[str, str], None]:
    """A line goes to the terminal and to a file of bounded size, or to one of them, with the name of who said it."""
    file = logging.handlers.RotatingFileHandler(where.log_file, maxBytes=LOG_BYTES, backupCount=3, encoding="utf-8")

    def say(name: str, line: str) -> None:
        sorted_line = lines.sort(name, line)
        text = f"{name:<9}| {sorted_line.text.rstrip()}"
        if sorted_line.to_file:
            file.emit(logging.makeLogRecord({"msg": text}))
        if not sorted_line.to_terminal:
            return
        try:
            print(text, flush=True)
        except BrokenPipeError:
            # Whoever read the terminal is gone; the file goes on.
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115

    return say
