"""What one supervisor leaves in its home for the next: a lock while it lives, and the numbers of its children."""

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from console.embedded import processes
from console.embedded.errors import Trouble

PATIENCE = 10.0


@dataclass(frozen=True)
class Record:
    """The files of the supervisor at `home`."""

    home: Path

    @contextmanager
    def only_one(self) -> Iterator[None]:
        """Hold the home for this process; the kernel lets go of it however the process ends."""
        with (self.home / "up.lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Trouble(
                    f"Steadyhand already runs from {self.home} (process {_holder(lock.name)}): "
                    "stop it first, or set STEADYHAND_HOME to another folder."
                ) from error
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            yield

    def write(self, children: Mapping[str, int]) -> None:
        """Note who runs: the start tick tells a child from a later process with its number."""
        rows = {name: [pid, processes.started_at(pid)] for name, pid in children.items()}
        draft = self._path.with_suffix(".new")
        draft.write_text(json.dumps(rows))
        draft.replace(self._path)

    def end_orphans(self) -> list[str]:
        """Wait for children whose supervisor was killed, and end those who do not go; their names."""
        orphans = dict(self._left_behind())
        deadline = time.monotonic() + PATIENCE
        while any(map(processes.is_alive, orphans.values())) and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in orphans.values():
            # The whole group: a worker's own children may have outlived it.
            _kill_group(pid)
        return sorted(orphans)

    @property
    def _path(self) -> Path:
        return self.home / "children.json"

    def _left_behind(self) -> Iterator[tuple[str, int]]:
        try:
            rows = json.loads(self._path.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return
        for name, (pid, started) in rows.items():
            if processes.is_alive(pid) and processes.started_at(pid) == started:
                yield name, pid


def _holder(path: str) -> str:
    return Path(path).read_text().strip() or "unknown"


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
