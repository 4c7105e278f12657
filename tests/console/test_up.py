"""`manage.py up` as a person meets it: it starts, heals, stops, and says in one sentence why it cannot."""

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from console.embedded import processes, valkey
from console.embedded.places import APP_ROLE, OWNER_ROLE, SUPER_ROLE, Places
from tests.console.up import Installation, free_port, refused
from tests.postgres import Cluster

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sh-up-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def running(home: Path) -> Iterator[Installation]:
    installation = Installation(home).ready()
    yield installation
    if installation.process.poll() is None:
        installation.stop()


def test_an_empty_machine_serves_the_console(running: Installation) -> None:
    assert running.get("/healthz") == 200


def test_a_new_installation_offers_the_first_admin_link(running: Installation) -> None:
    assert running.says(f"http://127.0.0.1:{running.port}/first-admin/")


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
    assert "up       | stopped" in (home / "log" / "steadyhand.log").read_text()


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"Port {port} on 127.0.0.1 cannot be used" in refused(tmp_path, "--port", str(port))


def test_a_sandbox_port_in_use_names_its_own_option(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        sentence = refused(tmp_path, "--demo", "--port", str(free_port()), "--sandbox-port", port)
    assert "choose another with --sandbox-port" in sentence


def test_a_database_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    url = f"postgresql://steadyhand_app:hunter2hunter2@127.0.0.1:{free_port()}/facts"
    sentence = _refused_with(tmp_path, DATABASE_URL=url)
    assert "DATABASE_URL does not lead to a database (Connection refused" in sentence
    assert "hunter2" not in sentence


@pytest.mark.parametrize("url", ["mysql://somebody@db/facts", "postgresql://db:port/facts"])
def test_a_database_url_of_another_kind_is_one_sentence(tmp_path: Path, url: str) -> None:
    assert "DATABASE_URL" in refused(tmp_path, DATABASE_URL=url)


def test_an_unknown_database_is_one_sentence(tmp_path: Path, cluster: Cluster) -> None:
    sentence = _refused_with(tmp_path, DATABASE_URL=cluster.dsn(APP_ROLE, "nowhere"))
    assert 'database "nowhere" does not exist' in sentence


def test_an_unmigrated_database_is_one_sentence(tmp_path: Path, cluster: Cluster) -> None:
    cluster.provision("unmigrated")
    sentence = _refused_with(tmp_path, DATABASE_URL=cluster.dsn(APP_ROLE, "unmigrated"))
    assert "The database is not migrated: set DATABASE_OWNER_URL" in sentence


def test_a_role_that_passes_the_fences_is_refused(tmp_path: Path, cluster: Cluster) -> None:
    sentence = _refused_with(tmp_path, DATABASE_URL=cluster.dsn(SUPER_ROLE, "postgres"))
    assert "passes every tenant fence" in sentence


def test_the_demo_never_runs_where_others_can_reach_it(tmp_path: Path) -> None:
    assert "--host 0.0.0.0 lets other machines in" in refused(tmp_path, "--host", "0.0.0.0")


def test_a_database_and_a_broker_from_outside_replace_the_embedded_ones(
    tmp_path: Path, cluster: Cluster, running_broker: str
) -> None:
    cluster.provision("outside")
    installation = Installation(
        tmp_path,
        DATABASE_URL=cluster.dsn(APP_ROLE, "outside"),
        DATABASE_OWNER_URL=cluster.dsn(OWNER_ROLE, "outside"),
        CELERY_BROKER_URL=running_broker,
    ).ready()
    try:
        assert set(installation.children()) == {"web", "worker", "beat"}
        assert not (tmp_path / "postgres").exists()
    finally:
        assert installation.stop() == 0


@pytest.fixture
def running_broker() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="sh-vk-") as folder:
        address = Path(folder) / "valkey.sock"
        server = subprocess.Popen(processes.tied(valkey.command(Path(folder), address)), stdout=subprocess.DEVNULL)
        yield f"redis+socket://{address}"
        server.terminate()
        server.wait(timeout=10)


def _refused_with(home: Path, **variables: str) -> str:
    return refused(home, "--port", str(free_port()), CELERY_BROKER_URL="redis://127.0.0.1:1/0", **variables)


def _serves(installation: Installation) -> bool:
    try:
        return installation.get("/healthz") == 200
    except OSError:
        return False
