"""The whole product as processes, for tests that end in the world: web, worker, broker, sandbox, one database.

Each process is started here and stopped here by its id. Time does not pass by sleeping: `later` moves the database's
clock, which is the only one that decides (DESIGN: time), for every process at once.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
from steadyhand import Boundary

from console.embedded import valkey
from console.embedded.processes import tied
from demo import workflows
from recovery.clients import issue_client
from recovery.work import sweep as sweeping
from runs import vault, wall
from runs.ids import new_id
from runs.models import Tenant
from sandbox import client as sandbox_client

BASE = Path(__file__).resolve().parent.parent
PATIENCE_SECONDS = 45.0


@dataclass
class Stack:
    """Running processes by name, and what a test wants from them."""

    folder: Path
    dsn_owner: str
    port: int
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    world: sandbox_client.Process | None = None
    tenant: Tenant = field(init=False)
    token: str = field(init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def sandbox(self) -> sandbox_client.Sandbox:
        assert self.world is not None
        return self.world.sandbox

    @property
    def sandbox_url(self) -> str:
        assert self.world is not None
        return self.world.url

    def agent_env(self) -> dict[str, str]:
        return {**os.environ, "AGENT_TOKEN": self.token}

    def start(self) -> None:
        self.world = sandbox_client.start(self.folder / "sandbox")
        os.environ["TRUSTED_ENDPOINTS"] = self.world.url.removeprefix("http://")
        os.environ["CELERY_BROKER_URL"] = f"redis+socket://{self.broker_socket}"
        self.start_broker()
        self.start_worker()
        self.start_web()
        self._make_tenant()

    @property
    def broker_socket(self) -> Path:
        """The same for every stack of a test process: Celery keeps its connections to where it first rang."""
        return Path(os.environ["STEADYHAND_TEST_HOME"]) / "broker.sock"

    def start_broker(self) -> None:
        (self.folder / "valkey").mkdir(exist_ok=True)
        self._run("broker", valkey.command(self.folder / "valkey", self.broker_socket))
        wait_for(lambda: valkey.is_ready(self.broker_socket), "the broker")

    def start_worker(self, name: str = "worker", *, on: Sequence[str] = (), **env: str) -> None:
        """`on`: what the command line begins with to run it on another machine."""
        command = [sys.executable, "-m", "celery", "--quiet", "-A", "console.celery", "worker", "--concurrency=1"]
        command += ["--without-gossip", "--without-mingle", "--without-heartbeat", "--pidfile="]
        self._run(name, [*on, *command], **env)

    def start_beat(self) -> None:
        command = [sys.executable, "-m", "celery", "--quiet", "-A", "console.celery", "beat"]
        self._run("beat", [*command, "--scheduler=celery.beat:Scheduler", "--pidfile="])

    def start_agent(self) -> None:
        """The demo's agent: the real framework with a scripted model, in its own environment."""
        token = self.folder / "agent.token"
        token.write_text(self.token)
        python = BASE / ".venv-openai-agents" / "bin" / "python"
        self._run(
            "agent",
            [str(python), "-m", "demo.agent"],
            STEADYHAND_URL=self.url,
            STEADYHAND_TOKEN_FILE=str(token),
            STEADYHAND_DEMO_STATE=str(self.folder / "agent.json"),
            SANDBOX_URL=self.sandbox_url,
        )

    def start_web(self, **env: str) -> None:
        wait_for(lambda: not answers("127.0.0.1", self.port), "the last web server's port to be free")
        command = [sys.executable, "-m", "gunicorn", "console.wsgi", f"--bind=127.0.0.1:{self.port}"]
        # Loaded once for all workers: one that was killed is replaced within milliseconds.
        command += ["--worker-class=gthread", "--workers=2", "--threads=8", "--preload", "--no-control-socket"]
        self._run("web", [*command, "--log-level=warning"], STEADYHAND_POOL="1", **env)
        wait_for(self._serves, "the web server")

    def _serves(self) -> bool:
        """Whether a request is answered: the port is open before anybody stands behind it."""
        try:
            return httpx.get(f"{self.url}/healthz", timeout=5, trust_env=False).is_success
        except httpx.HTTPError:
            return False

    def _run(self, name: str, command: list[str], **env: str) -> None:
        log = (self.folder / f"{name}.log").open("ab")
        environment = {**os.environ, "STEADYHAND_TEST_CHILD": "1", "DJANGO_SETTINGS_MODULE": "tests.settings"}
        environment |= {"STEADYHAND_DIE_AT": str(self.folder / "die"), **env}
        self.processes[name] = subprocess.Popen(
            tied(command), cwd=BASE, env=environment, stdout=log, stderr=log, start_new_session=True
        )

    def kill(self, name: str) -> None:
        """SIGKILL, the whole group: nothing is cleaned up."""
        process = self.processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def arm(self, point: str, *, always: bool = False) -> None:
        """The next process that comes to this crash point dies there by SIGKILL; `always`: each of them."""
        for grave in self.graves():
            grave.unlink()
        asked = self.folder / "asked"
        asked.write_text(f"{point} always" if always else point)
        asked.rename(self.folder / "die")

    def disarm(self) -> None:
        (self.folder / "die").unlink(missing_ok=True)

    def graves(self) -> list[Path]:
        """One file for each process that died at a crash point since it was armed, with its number in the name."""
        return list(self.folder.glob("died.*"))

    def died(self, point: str, times: int = 1) -> bool:
        """Whether so many processes have died at this point since it was armed."""
        graves = [grave.suffix[1:] for grave in self.graves() if grave.name.startswith(f"died.{point}.")]
        return len(graves) >= times and not any(_lives(int(pid)) for pid in graves)

    def wait_died(self, point: str, times: int = 1) -> None:
        """Until it has happened: a test in which nothing died has shown nothing."""
        wait_for(lambda: self.died(point, times), f"a death at {point}")

    def stop(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self.world is not None:
            self.world.stop()

    def _make_tenant(self) -> None:
        self.tenant, self.token = self.another_tenant("nordlicht", "Nordlicht Energie")

    def another_tenant(self, slug: str, name: str = "") -> tuple[Tenant, str]:
        """A tenant and the token of its agent."""
        tenant = Tenant(pk=new_id(), slug=slug, name=name or slug.capitalize(), sealed_key=vault.new_sealed_key())
        with wall.within(tenant.pk):
            tenant.save(force_insert=True)
            _, token = issue_client(tenant=tenant, name="billing-agent", workflows=[])
        return tenant, token

    # --- what a test does -----------------------------------------------------------------------------------

    def boundary(self, *, token: str = "", **options: Any) -> Boundary:
        return Boundary(self.url, token or self.token, **{"max_wait": 0.0, **options})

    def register(
        self,
        *,
        in_flight: float = 20,
        lag: float = 5,
        first_look: float = 60,
        token: str = "",
        made: Callable[[dict[str, Any]], dict[str, Any]] = dict,
        **changes: Any,
    ) -> str:
        """A billing workflow of its own name; `changes` are put into the manifest, `made` makes another of it."""
        assert self.world is not None
        manifest = workflows.billing(
            self.world.url, in_flight_seconds=in_flight, lag_seconds=lag, first_look_seconds=first_look
        )
        manifest = made({**manifest, **changes})
        name = f"billing_{uuid.uuid4().hex[:8]}"
        # An account of its own, and so a circuit: replies that one test loses by the dozen open none of another's.
        manifest["tools"] = [{**tool, "connection": name} for tool in manifest["tools"]]
        with self.boundary(token=token) as boundary:
            boundary.register(name, manifest)
        return name

    def later(self, seconds: float) -> None:
        """Move the clock that decides, for every process."""
        with psycopg.connect(self.dsn_owner, autocommit=True) as session:
            session.execute("UPDATE rehearsal_clock SET shift = shift + make_interval(secs => %s)", (seconds,))

    def sweep(self) -> dict[str, int]:
        """What beat would do every few seconds; the messages go to the real broker and the real worker."""
        from recovery.tasks import ring

        return sweeping.sweep(ring=ring)

    def sweep_until(self, done: Callable[[], bool], what: str) -> None:
        """Sweep as beat does until something has happened."""

        def once() -> bool:
            self.sweep()
            return done()

        wait_for(once, what, every=0.2)


@contextmanager
def running(folder: Path, dsn_owner: str) -> Iterator[Stack]:
    """A stack for as long as the block lasts."""
    with keeping("TRUSTED_ENDPOINTS", "CELERY_BROKER_URL"):
        stack = Stack(folder, dsn_owner, free_port())
        try:
            stack.start()
            yield stack
        finally:
            stack.stop()


@contextmanager
def keeping(*names: str) -> Iterator[None]:
    """The environment has its own values of these names again afterwards."""
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)


def wait_for(true: Callable[[], bool], what: str, *, every: float = 0.05, patience: float = PATIENCE_SECONDS) -> None:
    """Bounded waiting for another process to have done something."""
    deadline = time.monotonic() + patience
    while not true():
        assert time.monotonic() < deadline, f"waited {patience:.0f} s for {what}"
        time.sleep(every)


def free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return int(line.getsockname()[1])


def _lives(pid: int) -> bool:
    """Whether a process still runs; one that only waits to be collected is dead."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True
