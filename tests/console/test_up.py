"""`manage.py up` as a person meets it: it starts, heals, stops, and says in one sentence why it cannot."""

import os
import re
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command

from console.embedded import endpoints, external, processes, secrets, valkey
from console.embedded.children import Plan
from console.embedded.errors import Trouble
from console.embedded.places import APP_ROLE, OWNER_ROLE, SUPER_ROLE, Places
from console.management.commands import up
from tests.console.up import Installation, free_port, manage, refused
from tests.postgres import Cluster

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sh-up-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


Refuse = Callable[..., str]


@pytest.fixture
def refuse(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """The sentence of a start that cannot be; within this process, for a process of its own takes its second."""

    def inner(*arguments: str, **variables: str) -> str:
        settings.PLACES = Places(tmp_path)
        for name in ("DATABASE_URL", "DATABASE_OWNER_URL", "CELERY_BROKER_URL"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(Trouble) as trouble:
            call_command("up", *(arguments or ("--port", str(free_port()))))
        return str(trouble.value)

    return inner


@pytest.fixture(scope="module")
def running(home: Path) -> Iterator[Installation]:
    installation = Installation(home).ready()
    yield installation
    if installation.process.poll() is None:
        installation.stop()


def test_an_empty_machine_serves_the_console(running: Installation) -> None:
    assert running.get("/healthz") == 200


def test_a_new_installation_offers_the_first_admin_link(running: Installation) -> None:
    link = f"http://127.0.0.1:{running.port}/first-admin/"
    assert running.says(link)
    assert link not in running.log_file(), "a link that makes an admin is kept in no file"


def test_a_forgotten_password_is_printed_here_and_kept_in_no_file(running: Installation) -> None:
    manage(running.home, "add_tenant", "harbor", "Harbor Travel")
    person = manage(running.home, "add_person", "omar@example.org", "Omar", "--tenant=harbor", "--role=oncall")
    start = f"http://127.0.0.1:{running.port}/accounts/password/reset/key/"
    assert start in person, "the command knows where the console answers"
    assert "the link was printed where it runs" in running.ask_for_a_password("omar@example.org")
    running.until(lambda: running.says(f"|   {start}"))
    assert running.says("Mail to omar@example.org: Steadyhand: set a new password")
    assert "/password/reset/key/" not in running.log_file()


def test_a_server_that_talks_about_itself_is_kept_and_not_shown(running: Installation) -> None:
    assert "LOG:  database system is ready" in running.log_file()
    assert not running.says("LOG: ")
    assert not running.says("Memory overcommit")


def test_the_tables_belong_to_the_owner_and_not_to_the_console(running: Installation) -> None:
    with psycopg.connect(Places(running.home).database_url(APP_ROLE)) as session:
        owners = session.execute(
            "SELECT DISTINCT tableowner, current_user::text FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall()
    assert owners == [(OWNER_ROLE, APP_ROLE)]


def test_nothing_of_it_listens_on_the_network_but_the_console(running: Installation) -> None:
    with psycopg.connect(Places(running.home).database_url(APP_ROLE)) as session:
        assert session.execute("SHOW listen_addresses").fetchone() == ("",)


def test_a_second_start_from_the_same_home_is_refused(running: Installation) -> None:
    sentence = refused(running.home, "--port", str(free_port()))
    assert f"already runs from {running.home} (process {running.process.pid})" in sentence


@pytest.mark.parametrize("name", ["web", "worker", "valkey", "postgres"])
def test_a_killed_child_comes_back(running: Installation, name: str) -> None:
    before = running.children()[name]
    os.kill(before, signal.SIGKILL)
    running.until(lambda: running.children().get(name, before) != before)
    assert running.says(f"{name} ended (killed by SIGKILL); it starts again")
    running.until(lambda: _serves(running))


def test_a_start_after_the_supervisor_was_killed_is_clean(running: Installation, home: Path) -> None:
    left_behind = running.children()
    assert set(left_behind) == {"valkey", "postgres", "web", "worker", "beat"}
    running.kill()
    again = Installation(home).ready()
    assert not [name for name, pid in left_behind.items() if processes.is_alive(pid)]
    assert again.get("/healthz") == 200
    children = again.children()
    assert again.stop() == 0, again.log()
    assert not [name for name, pid in children.items() if processes.is_alive(pid)]
    assert "Traceback" not in again.log()
    assert "up       | stopped" in again.log_file()


def test_a_port_in_use_is_one_sentence_that_serves_both_ways_of_starting(refuse: Refuse, taken: int) -> None:
    sentence = refuse("--port", str(taken))
    assert f"Port {taken} on 127.0.0.1 cannot be used" in sentence
    assert "choose another with PORT=… (make) or --port … (manage.py)" in sentence


def test_a_sandbox_port_in_use_names_its_own_option(refuse: Refuse, taken: int) -> None:
    sentence = refuse("--demo", "--port", str(free_port()), "--sandbox-port", str(taken))
    assert "choose another with SANDBOX_PORT=… (make) or --sandbox-port …" in sentence


def test_a_console_on_the_sandboxs_port_is_one_sentence(refuse: Refuse) -> None:
    port = str(free_port())
    assert f"Port {port} is the sandbox's" in refuse("--demo", "--port", port, "--sandbox-port", port)


def test_the_sandbox_stays_where_its_first_start_put_it(tmp_path: Path) -> None:
    first, other = free_port(), free_port()
    where = Places(tmp_path)
    assert endpoints.choose(where, asked=None, web=first - 1) == (first,)
    assert endpoints.choose(where, asked=None, web=first + 100) == (first,)
    assert endpoints.choose(where, asked=other, web=first + 100) == (other, first)
    assert endpoints.choose(where, asked=None, web=first + 100) == (first, other)


def test_a_spoiled_note_of_sandbox_ports_is_a_first_start(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    port = free_port()
    for spoiled in ("", "{", '{"a": 1}', '["x", 0, 70000]'):
        (tmp_path / "demo" / "sandbox-ports.json").write_text(spoiled)
        assert endpoints.choose(Places(tmp_path), asked=port, web=1) == (port,)


def test_the_demo_trusts_every_port_its_sandbox_ever_had(tmp_path: Path) -> None:
    plan = Plan(Places(tmp_path), 0, "127.0.0.1", 8000, demo=True, sandbox_ports=(9001, 8001))
    environment = up._environment(plan)
    assert environment["TRUSTED_ENDPOINTS"] == "127.0.0.1:9001,127.0.0.1:8001"
    assert environment["SANDBOX_URL"] == "http://127.0.0.1:9001"


def test_a_database_that_does_not_answer_is_one_sentence(refuse: Refuse) -> None:
    url = f"postgresql://steadyhand_app:hunter2hunter2@127.0.0.1:{free_port()}/facts"
    sentence = refuse(DATABASE_URL=url)
    assert "DATABASE_URL does not lead to a database (Connection refused" in sentence
    assert "hunter2" not in sentence


@pytest.mark.parametrize("url", ["mysql://somebody@db/facts", "postgresql://db:port/facts"])
def test_a_database_url_of_another_kind_is_one_sentence(tmp_path: Path, url: str) -> None:
    assert "DATABASE_URL" in refused(tmp_path, DATABASE_URL=url)


def test_an_unknown_database_is_one_sentence(refuse: Refuse, cluster: Cluster) -> None:
    sentence = refuse(DATABASE_URL=cluster.dsn(APP_ROLE, "nowhere"))
    assert 'database "nowhere" does not exist' in sentence


def test_an_unmigrated_database_is_one_sentence(refuse: Refuse, cluster: Cluster, taken: int) -> None:
    cluster.provision("unmigrated")
    broker = f"redis://127.0.0.1:{taken}/0"
    sentence = refuse(DATABASE_URL=cluster.dsn(APP_ROLE, "unmigrated"), CELERY_BROKER_URL=broker)
    assert "The database is not migrated: set DATABASE_OWNER_URL" in sentence


def test_a_role_that_passes_the_fences_is_refused(refuse: Refuse, cluster: Cluster) -> None:
    assert "passes every tenant fence" in refuse(DATABASE_URL=cluster.dsn(SUPER_ROLE, "postgres"))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("redis://:hunter2hunter2@127.0.0.1:{port}/0", "127.0.0.1:{port}, Connection refused"),
        ("amqp://steadyhand:hunter2hunter2@127.0.0.1:{port}//", "127.0.0.1:{port}, Connection refused"),
        ("redis://127.0.0.1:{port}/0;redis://127.0.0.1:{port}/1", "127.0.0.1:{port}, Connection refused"),
        ("redis+socket:///nowhere/valkey.sock", "/nowhere/valkey.sock, No such file or directory"),
        ("localhost:{port}", "write redis://, rediss://, redis+socket://, amqp:// or amqps://"),
        ("redis://db:hunter2hunter2", "the address cannot be read"),
        ("redis://[::1", "the address cannot be read"),
    ],
)
def test_a_broker_that_does_not_answer_is_one_sentence(refuse: Refuse, url: str, reason: str) -> None:
    port = str(free_port())
    sentence = refuse(CELERY_BROKER_URL=url.replace("{port}", port))
    told = reason.replace("{port}", port)
    assert sentence == f"CELERY_BROKER_URL does not lead to a broker ({told}): start it, correct it, or unset it."
    assert "hunter2" not in sentence


def test_one_of_several_brokers_is_enough(taken: int) -> None:
    external.check_broker(f"redis://127.0.0.1:{free_port()}/0;redis://127.0.0.1:{taken}/0")


def test_the_demo_never_runs_where_others_can_reach_it(refuse: Refuse) -> None:
    assert "--host 0.0.0.0 lets other machines in" in refuse("--host", "0.0.0.0")


def test_a_deployment_takes_its_database_and_its_broker_from_outside_and_collects_its_files(
    tmp_path: Path, cluster: Cluster, running_broker: str
) -> None:
    cluster.provision("outside")
    secrets.create(tmp_path)
    installation = Installation(
        tmp_path,
        DATABASE_URL=cluster.dsn(APP_ROLE, "outside"),
        DATABASE_OWNER_URL=cluster.dsn(OWNER_ROLE, "outside"),
        CELERY_BROKER_URL=running_broker,
        STEADYHAND_HOSTS="console.example.org",
        STEADYHAND_BEHIND_PROXY="1",
    ).ready()
    try:
        assert set(installation.children()) == {"web", "worker", "beat"}
        assert not (tmp_path / "postgres").exists()
        proxied = {"Host": "console.example.org", "X-Forwarded-Proto": "https"}
        page = installation.read("/accounts/login/", **proxied)
        (style,) = re.findall(r'"(/static/[^"]+\.[0-9a-f]{12}\.css)"', page)[:1]
        assert "{" in installation.read(style, **proxied)
    finally:
        assert installation.stop() == 0, installation.log()


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which somebody listens already."""
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        line.listen()
        yield int(line.getsockname()[1])


@pytest.fixture
def running_broker() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="sh-vk-") as folder:
        address = Path(folder) / "valkey.sock"
        server = subprocess.Popen(processes.tied(valkey.command(Path(folder), address)), stdout=subprocess.DEVNULL)
        yield f"redis+socket://{address}"
        server.terminate()
        server.wait(timeout=10)


def _serves(installation: Installation) -> bool:
    try:
        return installation.get("/healthz") == 200
    except OSError:
        return False
