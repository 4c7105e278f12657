"""Who runs, as data: the commands of the services, the console's processes, and the demo's."""

import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from console.embedded import postgres, valkey
from console.embedded.places import Places
from console.embedded.supervisor import Child, Stay

BASE = Path(__file__).resolve().parent.parent.parent
MANAGE = [sys.executable, str(BASE / "manage.py")]
CELERY = [sys.executable, "-m", "celery", "--quiet", "-A", "console.celery"]


# An address that means "every interface" is asked on this machine's own.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


@dataclass(frozen=True)
class Plan:
    """One start: where, on which address, and with which inherited socket."""

    places: Places
    web_socket: int
    host: str
    port: int
    demo: bool = False
    # The demo's outside world: where it listens now, then where it listened before.
    sandbox_ports: tuple[int, ...] = ()
    # A deployment's pages name their files by content: they are collected at each start.
    collects: bool = False

    @property
    def reached_at(self) -> str:
        """Host and port as this machine asks for it."""
        host = EVERYWHERE.get(self.host, self.host)
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    @property
    def address(self) -> str:
        return f"http://{self.reached_at}"

    @property
    def sandbox_port(self) -> int:
        return self.sandbox_ports[0]

    @property
    def sandbox_address(self) -> str:
        return f"http://127.0.0.1:{self.sandbox_port}"

    @property
    def agent_token(self) -> Path:
        """Where the demo keeps its agent's token; the folder is the owner's alone."""
        return self.places.home / "demo" / "agent.token"


def database(places: Places) -> Child:
    command = postgres.command(places.postgres_data, places.sockets)
    return Child("postgres", command, stop=signal.SIGINT, tied=False, service=True)


def broker(places: Places) -> Child:
    return Child("valkey", valkey.command(places.valkey_data, places.valkey_socket), service=True)


def residents(plan: Plan) -> list[Child]:
    """The console's own processes, in the order they start."""
    return [
        web(plan),
        _portless("worker", plan, "--concurrency=2", "--without-gossip", "--without-mingle", "--without-heartbeat"),
        # The schedule lives in memory: a file of it may be torn by a kill.
        _portless("beat", plan, "--scheduler=celery.beat:Scheduler"),
    ]


def web(plan: Plan) -> Child:
    gunicorn = [sys.executable, "-m", "gunicorn", "console.wsgi", f"--bind=fd://{plan.web_socket}"]
    # An agent thinks longer than two seconds between calls: keep its connection, and its next call saves a handshake.
    gunicorn += ["--worker-class=gthread", "--workers=2", "--threads=8", "--keep-alive=75", "--graceful-timeout=5"]
    gunicorn += ["--no-control-socket", "--log-level=warning"]
    return Child("web", gunicorn, env={"STEADYHAND_POOL": "1"}, passes=(plan.web_socket,))


def _portless(name: str, plan: Plan, *arguments: str) -> Child:
    ready = {"STEADYHAND_READY_FILE": str(plan.places.ready(name))}
    return Child(name, [*CELERY, name, *arguments, "--pidfile="], env=ready)


def demo_services(plan: Plan) -> list[Child]:
    """The small outside world: its own process, its own ledger."""
    sandbox = [sys.executable, "-m", "sandbox", "--port", str(plan.sandbox_port), "--steadyhand", plan.address]
    sandbox += ["--beliefs", f"{plan.address}/api/v1/actions?limit=200", "--beliefs-token", str(plan.agent_token)]
    return [Child("sandbox", [*sandbox, "--data", str(plan.places.home / "sandbox")])]


def demo_guests(plan: Plan) -> list[Child]:
    """The agent that works the demo's cases; it may end when they are done."""
    env = {
        "STEADYHAND_URL": plan.address,
        "STEADYHAND_TOKEN_FILE": str(plan.agent_token),
        "STEADYHAND_DEMO_STATE": str(plan.agent_token.with_name("agent.json")),
        "SANDBOX_URL": plan.sandbox_address,
    }
    return [Child("agent", [_agent_python(), "-m", "demo.agent"], stay=Stay.GUEST, env=env)]


def step(name: str, *arguments: str) -> Child:
    """A management command that runs once."""
    return Child(name, [*MANAGE, *arguments], stay=Stay.ONCE)


def steps_before_start(plan: Plan) -> list[Child]:
    collect = [step("collect", "collectstatic", "--noinput", "--verbosity=0")] if plan.collects else []
    return [step("roles", "refresh_roles"), *collect]


def steps_after_start(plan: Plan) -> list[Child]:
    """What is said or prepared once the console answers."""
    if plan.demo:
        return [step("demo", "load_demo", "--address", plan.address, "--sandbox", plan.sandbox_address)]
    return [step("invite", "invite_admin", "--quiet-if-known", "--address", plan.address)]


def _agent_python() -> str:
    """The agent's own environment, with its framework; ours if it was not made."""
    own = BASE / ".venv-openai-agents" / "bin" / "python"
    return str(own) if own.exists() else sys.executable
