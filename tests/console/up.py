"""A whole installation as a test sees it: started, watched, killed, in a home of its own."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import httpx

from console.embedded import processes

BASE = Path(__file__).resolve().parents[2]
OURS = ("STEADYHAND_", "DATABASE_", "CELERY_", "TRUSTED_", "DJANGO_")


def free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return int(line.getsockname()[1])


def environment(home: Path, **extra: str) -> dict[str, str]:
    """A shell that knows nothing of the tests' own database."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return {**plain, "STEADYHAND_HOME": str(home), **extra}


def refused(home: Path, *arguments: str, **extra: str) -> str:
    """What `up` says when it cannot start: one line on stderr, exit code 1."""
    done = subprocess.run(
        [sys.executable, "manage.py", "up", *arguments],
        cwd=BASE, env=environment(home, **extra), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("steadyhand: ")
    return line


def manage(home: Path, *arguments: str) -> str:
    """What a command prints that went well."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=BASE, env=environment(home), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Installation:
    """One run of `manage.py up`; its lines are collected as they come."""

    def __init__(self, home: Path, *arguments: str, **extra: str) -> None:
        self.home = home
        self.port = free_port()
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            processes.tied([sys.executable, "manage.py", "up", "--port", str(self.port), *arguments]),
            cwd=BASE, env=environment(home, **extra), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ready(self) -> "Installation":
        self.until(lambda: self.says("Steadyhand is ready"), seconds=90)
        return self

    def says(self, text: str) -> bool:
        return any(text in line for line in list(self.lines))

    def until(self, holds: Callable[[], bool], *, seconds: float = 30) -> None:
        """Wait for something outside this process; the log is the message if it never comes."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def children(self) -> dict[str, int]:
        rows = json.loads((self.home / "children.json").read_text())
        return {name: row[0] for name, row in rows.items()}

    def read(self, path: str, **headers: str) -> str:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return str(answer.read().decode())

    def ask_for_a_password(self, email: str) -> str:
        """Fill in the form for a forgotten password; the page that answers."""
        address = f"http://127.0.0.1:{self.port}/accounts/password/reset/"
        with httpx.Client(follow_redirects=True, timeout=10, trust_env=False) as browser:
            (mark,) = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', browser.get(address).text)
            form = {"email": email, "csrfmiddlewaretoken": mark}
            return browser.post(address, data=form, headers={"Referer": address}).text

    def get(self, path: str) -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return int(answer.status)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=10)

    def stop(self) -> int:
        """Ctrl-C; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=40)
        self._reader.join(timeout=5)
        return code

    def log_file(self) -> str:
        return (self.home / "log" / "steadyhand.log").read_text()

    def log(self) -> str:
        return "".join(self.lines)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
