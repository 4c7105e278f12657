"""The product on a hub, with workers on two machines that reach database, broker and provider by the network only."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from console.celery import SWEEP_SECONDS
from sandbox import client as sandbox_client
from tests.crash.network import HUB, Network
from tests.stack import Stack, answers, free_port, keeping, wait_for

DATABASE_PORT, VALKEY_PORT, RABBITMQ_PORT = 5432, 6379, 5672
RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


@dataclass
class Machines(Stack):
    """A stack whose sweep is beat's: nothing is rung from here."""

    network: Network = field(kw_only=True)
    kind: str = field(kw_only=True)

    def start(self) -> None:
        self.world = sandbox_client.start(self.folder / "sandbox", extra=("--host", HUB))
        os.environ["TRUSTED_ENDPOINTS"] = self.world.url.removeprefix("http://")
        os.environ["CELERY_BROKER_URL"] = self.broker_url
        self.start_broker()
        self.start_relay()
        self.start_web()
        self._make_tenant()
        self.start_beat()

    @property
    def broker_url(self) -> str:
        if self.kind == "rabbitmq":
            return f"amqp://guest:guest@{HUB}:{RABBITMQ_PORT}//"
        return f"redis://{HUB}:{VALKEY_PORT}/0"

    def start_broker(self) -> None:
        if self.kind == "valkey":
            return super().start_broker()
        home = self.folder / "rabbitmq"
        home.mkdir()
        (home / "rabbitmq.conf").write_text(f"loopback_users = none\nlisteners.tcp.1 = {HUB}:{RABBITMQ_PORT}\n")
        (home / "plugins").write_text("[].\n")
        own = {name: str(home) for name in ("HOME", "RABBITMQ_MNESIA_BASE", "RABBITMQ_LOG_BASE")}
        own |= {
            "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
        }
        own |= {"RABBITMQ_NODENAME": "steadyhand@localhost", "RABBITMQ_CONF_ENV_FILE": "/dev/null"}
        own |= {"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-setcookie tests"}
        names = free_port()
        own |= {"ERL_EPMD_PORT": str(names)}
        # Erlang's name server: left to itself, RabbitMQ starts one that outlives it.
        self._run("names", ["epmd"], **own)
        wait_for(lambda: answers("127.0.0.1", names), "Erlang's name server")
        self._run("broker", [str(RABBITMQ)], **own)
        wait_for(lambda: answers(HUB, RABBITMQ_PORT), "RabbitMQ")
        return None

    def start_relay(self) -> None:
        sockets = conninfo_to_dict(os.environ["DATABASE_URL"])["host"]
        pairs = [f"{HUB}:{DATABASE_PORT}={sockets}/.s.PGSQL.5432"]
        if self.kind == "valkey":
            pairs.append(f"{HUB}:{VALKEY_PORT}={self.broker_socket}")
        self._run("relay", [sys.executable, "-m", "tests.crash.relay", *pairs])
        wait_for(lambda: answers(HUB, DATABASE_PORT), "the way to the database")

    def start_worker_on(self, which: str) -> None:
        """A worker that has nothing but the network."""
        database = conninfo_to_dict(os.environ["DATABASE_URL"])
        url = f"postgresql://{database['user']}@{HUB}:{DATABASE_PORT}/{database['dbname']}"
        self.start_worker(which, on=self.network.inside(which), DATABASE_URL=url)

    def sweep_until(self, done: Callable[[], bool], what: str) -> None:
        """Beat does it, and has done it once before anything is asked."""
        time.sleep(SWEEP_SECONDS + 1)
        wait_for(done, what)


@contextmanager
def machines(folder: Path, dsn_owner: str, network: Network, kind: str) -> Iterator[Machines]:
    """Everything for as long as the block lasts."""
    with keeping("TRUSTED_ENDPOINTS", "CELERY_BROKER_URL"):
        stack = Machines(folder, dsn_owner, free_port(), network=network, kind=kind)
        try:
            stack.start()
            yield stack
        finally:
            stack.stop()
