"""A whole installation as a test sees it: started, watched, killed, in a home of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

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

    def log(self) -> str:
        return "".join(self.lines)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
