"""The order in which everything comes up, and the sentence when it cannot."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

from console.embedded import children, external, places, postgres, processes, roles, valkey
from console.embedded.children import Plan
from console.embedded.errors import Trouble
from console.embedded.places import Places
from console.embedded.supervisor import Child, Supervisor

# Residents that say by a file that they are at work.
PORTLESS = ("worker", "beat")
# How somebody chooses another port, whichever way they started.
WEB_PORT = "PORT=… (make) or --port … (manage.py)"
SANDBOX_PORT = "SANDBOX_PORT=… (make) or --sandbox-port … (manage.py)"


@dataclass(frozen=True)
class Outside:
    """What somebody else runs; an empty text means the embedded part."""

    database: str = ""
    owner: str = ""
    broker: str = ""


def outside(environ: Mapping[str, str]) -> Outside:
    return Outside(
        database=environ.get("DATABASE_URL", ""),
        owner=environ.get("DATABASE_OWNER_URL", ""),
        broker=environ.get("CELERY_BROKER_URL", ""),
    )


def prepare_folders(where: Places) -> None:
    try:
        for folder in (where.home, where.sockets, where.valkey_data, where.logs, where.static):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Trouble(
            f"{where.home} cannot be used ({error.strerror}): set STEADYHAND_HOME to your own folder."
        ) from error
    ours = {os.getuid(), processes.NOBODY} if processes.becomes_nobody() else {os.getuid()}
    if where.sockets.lstat().st_uid not in ours:
        raise Trouble(
            f"{where.sockets} belongs to somebody else: set STEADYHAND_HOME to a folder with a shorter path."
        )


def listen(host: str, port: int, *, option: str = WEB_PORT) -> socket.socket:
    """The socket the web server will answer on; we hold it, so a restart of the server refuses nobody."""
    line = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        line.bind((host, port))
        line.listen(256)
    except OSError as error:
        line.close()
        raise Trouble(
            f"Port {port} on {host} cannot be used ({error.strerror}): choose another with {option}."
        ) from error
    return line


def check_free(port: int, *, option: str) -> None:
    """Trouble now, rather than a child that cannot start."""
    listen("127.0.0.1", port, option=option).close()


def start_services(up: Supervisor, where: Places, others: Outside) -> None:
    """PostgreSQL and the broker, ours or another's, both answering and the database migrated."""
    _check_others(others)
    if not others.broker:
        up.start(children.broker(where))
    if not others.database:
        _start_postgres(up, where)
    _migrate(up, owned=not others.database or bool(others.owner))
    if not others.broker:
        up.wait("valkey", lambda: valkey.is_ready(where.valkey_socket), seconds=20)


def start_residents(up: Supervisor, plan: Plan) -> None:
    """The console's processes; returns when its front door answers, its worker works and its clock ticks."""
    _run_steps(up, children.steps_before_start(plan))
    for name in PORTLESS:
        plan.places.ready(name).unlink(missing_ok=True)
    for child in [*(children.demo_services(plan) if plan.demo else []), *children.residents(plan)]:
        up.start(child)
    up.wait("web", lambda: answers(plan.reached_at), seconds=60)
    for name in PORTLESS:
        up.wait(name, plan.places.ready(name).exists, seconds=60)
    plan.places.address_note.write_text(f"{plan.address}\n")
    _run_steps(up, children.steps_after_start(plan))
    for child in children.demo_guests(plan) if plan.demo and not up.stopping else []:
        up.start(child)


def _run_steps(up: Supervisor, steps: list[Child]) -> None:
    for child in steps:
        if not up.stopping and up.run_once(child) > 0:
            raise Trouble(f"{child.name} did not succeed: its lines above say why.")


def answers(address: str) -> bool:
    """Whether a web server speaks there; a refusal is an answer too, for a deployment knows only its own names."""
    line = HTTPConnection(address, timeout=2)
    try:
        line.request("GET", "/healthz", headers={"Host": "localhost", "X-Forwarded-Proto": "https"})
        return line.getresponse().status < 500
    except (OSError, HTTPException):
        return False
    finally:
        line.close()


def _check_others(others: Outside) -> None:
    if others.database:
        external.check_app(others.database)
    if others.database and others.owner:
        external.check_owner(others.owner)
    if others.broker:
        external.check_broker(others.broker)


def _start_postgres(up: Supervisor, where: Places) -> None:
    postgres.wait_gone(where.postgres_data)
    postgres.create(where.postgres_data)
    processes.hand_over(where.sockets, home=where.home)
    server = up.start(children.database(where))
    up.wait("postgres", lambda: postgres.is_ready(where.postgres_data), seconds=60)
    if not up.stopping and server.poll() is None:
        roles.provision(
            super_dsn=where.database_url(places.SUPER_ROLE, "postgres"),
            database_dsn=where.database_url(places.SUPER_ROLE),
            database=places.DATABASE,
        )


def _migrate(up: Supervisor, *, owned: bool) -> None:
    if owned:
        child = children.step("migrate", "migrate", "--database=owner", "--noinput", "--verbosity=0")
        sentence = "The database could not be migrated: the lines above say why."
    else:
        child = children.step("migrate", "migrate", "--check", "--verbosity=0")
        sentence = (
            "The database is not migrated: set DATABASE_OWNER_URL to the role that owns it and start again, "
            "or run 'manage.py migrate --database=owner' with it."
        )
    if not up.stopping and up.run_once(child) > 0:
        raise Trouble(sentence)
