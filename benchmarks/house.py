"""A house for the measurements alone: a database that waits for its disk, the product's tables, its web server.

It lies in the folder `bench` of STEADYHAND_HOME and is thrown away afterwards. Leave Django alone before `settle`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from console.embedded import children, places, postgres, processes, roles, startup, valkey
from console.embedded.children import Plan
from console.embedded.places import OWNER_ROLE, SUPER_ROLE, Places

# What a shell may have set for another installation; this one is its own.
FOREIGN = ("DATABASE_URL", "DATABASE_OWNER_URL", "CELERY_BROKER_URL", "TRUSTED_ENDPOINTS", "STEADYHAND_HOSTS",
           "STEADYHAND_POOL", "STEADYHAND_LOOPBACK")  # fmt: skip
PEERS_DATABASE = "peers"


@contextmanager
def settle() -> Iterator[Places]:
    """The house with its database up and migrated, and Django pointed at it; nothing of it stays behind."""
    where = Places(places.at(os.environ, default=children.BASE / "var").home / "bench")
    shutil.rmtree(where.home, ignore_errors=True)
    for name in FOREIGN:
        os.environ.pop(name, None)
    os.environ |= {"STEADYHAND_HOME": str(where.home), "DJANGO_SETTINGS_MODULE": "console.settings"}
    startup.prepare_folders(where)
    try:
        with _database(where):
            _migrate(where)
            yield where
    finally:
        shutil.rmtree(where.home, ignore_errors=True)


@contextmanager
def web(where: Places) -> Iterator[str]:
    """The web server as an installation starts it (two workers, eight threads each); its address."""
    line = startup.listen("127.0.0.1", 0)
    port = line.getsockname()[1]
    child = children.web(Plan(where, line.fileno(), "127.0.0.1", port))
    with (
        line,
        _running(
            where, child.name, processes.tied(child.command), stop=child.stop, env=child.env, passes=child.passes
        ),
    ):
        _until(lambda: startup.answers(f"127.0.0.1:{port}"), what="the web server")
        yield f"http://127.0.0.1:{port}"


@contextmanager
def broker(where: Places) -> Iterator[None]:
    """The broker that carries the messages to the worker."""
    with _running(where, "valkey", valkey.command(where.valkey_data, where.valkey_socket), stop=signal.SIGTERM):
        _until(lambda: valkey.is_ready(where.valkey_socket), what="the broker")
        yield


@contextmanager
def worker_and_clock(where: Places, *, trusted: str) -> Iterator[None]:
    """The worker and what starts its sweep, as an installation starts them; `trusted`: a host:port it may ask."""
    _, *portless = children.residents(Plan(where, -1, "127.0.0.1", 0))
    with ExitStack() as running:
        for child in portless:
            env = {**child.env, "TRUSTED_ENDPOINTS": trusted}
            running.enter_context(
                _running(where, child.name, processes.tied(child.command), stop=child.stop, env=env)
            )
        for child in portless:
            _until(where.ready(child.name).exists, what=f"the {child.name}")
        yield


def dsn(where: Places, *, owner: bool = False) -> str:
    """A connection string for code that goes round Django; the roles are the product's."""
    return where.database_url(OWNER_ROLE if owner else places.APP_ROLE)


def gather_statistics(where: Places) -> None:
    """What autovacuum does by itself, now."""
    import psycopg

    with psycopg.connect(where.database_url(SUPER_ROLE), autocommit=True) as session:
        session.execute("VACUUM ANALYZE")


def mark_for_rehearsal(where: Places) -> None:
    """Let the clock of this database be moved."""
    import psycopg

    with psycopg.connect(dsn(where, owner=True), autocommit=True) as session:
        session.execute("SELECT app_enable_rehearsal()")


def move_clock(where: Places, *, seconds: float) -> None:
    import psycopg

    with psycopg.connect(dsn(where, owner=True), autocommit=True) as session:
        session.execute("UPDATE rehearsal_clock SET shift = shift + make_interval(secs => %s)", [seconds])


def busy_seconds(backend_pid: int) -> float:
    """Processor time that the server has spent on one connection so far."""
    fields = Path(f"/proc/{backend_pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peers_dsn(where: Places) -> str:
    """An empty database in the same server, for programs that make their own tables."""
    import psycopg

    with psycopg.connect(where.database_url(SUPER_ROLE, "postgres"), autocommit=True) as session:
        session.execute(f"CREATE DATABASE {PEERS_DATABASE}")
    return where.database_url(SUPER_ROLE, PEERS_DATABASE)


@contextmanager
def _database(where: Places) -> Iterator[None]:
    postgres.create(where.postgres_data)
    processes.hand_over(where.sockets, home=where.home)
    command = postgres.command(where.postgres_data, where.sockets)
    with _running(where, "postgres", command, stop=signal.SIGINT):
        _until(lambda: postgres.is_ready(where.postgres_data), what="the database")
        roles.provision(
            super_dsn=where.database_url(SUPER_ROLE, "postgres"),
            database_dsn=where.database_url(SUPER_ROLE),
            database=places.DATABASE,
        )
        yield


def _migrate(where: Places) -> None:
    import django
    from django.core.management import call_command
    from django.db import connections

    django.setup()
    call_command("migrate", database="owner", verbosity=0, interactive=False)
    connections.close_all()


@contextmanager
def _running(
    where: Places,
    name: str,
    command: list[str],
    *,
    stop: signal.Signals,
    env: Mapping[str, str] | None = None,
    passes: tuple[int, ...] = (),
) -> Iterator[None]:
    log = Path(where.logs) / f"{name}.log"
    with log.open("ab") as out:
        running = subprocess.Popen(
            command, cwd=children.BASE, env={**os.environ, **(env or {})}, pass_fds=passes, stdout=out, stderr=out
        )
    try:
        yield
    except BaseException:
        print(log.read_text()[-2000:])
        raise
    finally:
        running.send_signal(stop)
        running.wait(timeout=30)


def _until(ready: Callable[[], bool], *, what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not come up in {seconds:.0f} s")
        time.sleep(0.05)
