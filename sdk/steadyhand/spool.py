"""Reports that could not be delivered, in a file that outlives the process: one JSON line each, in order.

What a tool answered stands in it as the report has it. POSIX only: two processes are kept apart by file locks.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from steadyhand.contract import Report

log = logging.getLogger("steadyhand")
MAX_BYTES = 16 * 1024 * 1024
OWNER_ONLY = 0o600


@dataclass(frozen=True)
class Kept:
    """One line: the report of a run, or None where the line cannot be read."""

    line: bytes
    run_id: str = ""
    report: Report | None = None


class Spool:
    """`<path>` holds the lines, `<path>.bad` those that will never be taken; two lock files stand beside them."""

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes

    def keep(self, run_id: str, report: Report) -> bool:
        """Write a report down, on the disk when this returns. False if the file is full: then nothing is written."""
        line = json.dumps({"run_id": run_id, "report": report.model_dump(mode="json", exclude_none=True)}) + "\n"
        with self._changing():
            if self._size() + len(line) > self._max_bytes:
                log.error("the spool %s is full: no room for attempt %s", self._path, report.attempt_id)
                return False
            _append(self._path, line.encode())
        return True

    def waiting(self) -> list[Kept]:
        """The lines as they stand, oldest first."""
        return [_read(line) for line in self._lines()]

    def holds(self) -> set[str]:
        """The attempts whose reports still wait."""
        return {kept.report.attempt_id for kept in self.waiting() if kept.report is not None}

    def begin(self) -> IO[bytes] | None:
        """The right to deliver, which one process at a time has; None while another one has it."""
        if self._size() == 0:
            return None
        file = _opened(self._beside("delivering"))
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        return file

    def end(self, right: IO[bytes], delivered: list[bytes], bad: list[bytes]) -> None:
        """Take out what was delivered or is bad, and give the right back. Lines written meanwhile stay."""
        try:
            with self._changing():
                if bad:
                    _append(self._beside("bad"), b"".join(bad))
                if delivered or bad:
                    self._replace(_without(self._lines(), delivered + bad))
        finally:
            fcntl.flock(right, fcntl.LOCK_UN)
            right.close()

    def _lines(self) -> list[bytes]:
        return self._path.read_bytes().splitlines(keepends=True) if self._path.exists() else []

    def _size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0

    def _beside(self, suffix: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{suffix}")

    def _replace(self, lines: list[bytes]) -> None:
        fresh = self._beside("new")
        fresh.unlink(missing_ok=True)
        _append(fresh, b"".join(lines))
        os.replace(fresh, self._path)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with _opened(self._beside("lock")) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)  # said aloud: a forked child may hold the same open file


def _read(line: bytes) -> Kept:
    try:
        document = json.loads(line)
        return Kept(line, str(document["run_id"]), Report.model_validate(document["report"]))
    except (ValueError, KeyError, TypeError, ValidationError):
        return Kept(line)


def _without(lines: list[bytes], taken: list[bytes]) -> list[bytes]:
    gone, left = Counter(taken), []
    for line in lines:
        if gone[line] > 0:
            gone[line] -= 1
        else:
            left.append(line)
    return left


def _opened(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, OWNER_ONLY), "ab")


def _append(path: Path, content: bytes) -> None:
    with _opened(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
