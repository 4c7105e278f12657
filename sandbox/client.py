"""For tests and the demo: start a sandbox, write its faults, read its ledger."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

from sandbox.calls import MAX_LIST_ITEMS

ROOT = Path(__file__).resolve().parent.parent
MAX_PAGES = 200
START_SECONDS = 15.0


class SandboxError(Exception):
    """The sandbox refused a control call; the message is its own."""


class Sandbox:
    """The control side of a running sandbox; it never calls a service by itself, and never tries twice."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._opener = build_opener(ProxyHandler({}))

    def fault(
        self,
        service: str,
        operation: str | None = None,
        script: Sequence[dict[str, Any]] = (),
        *,
        kind: str | None = None,
        reference: str | None = None,
        field: dict[str, Any] | None = None,
    ) -> int:
        """Script what goes wrong, one entry per matched call; returns the script's id."""
        given: dict[str, Any] = {"service": service, "operation": operation, "kind": kind}
        given |= {"reference": reference, "field": field}
        match = {name: value for name, value in given.items() if value is not None}
        made = self._control("POST", "faults", {"match": match, "script": list(script)})
        return int(made["fault_id"])

    def faults(self) -> list[dict[str, Any]]:
        """The scripts with entries left."""
        return list(self._control("GET", "faults")["items"])

    def clear_faults(self) -> None:
        """Behave from now on."""
        self._control("POST", "faults/clear", {})

    def effects(self, **filters: str) -> list[dict[str, Any]]:
        """What really changed; filters: service, operation, reference, action_id, key, effect_id."""
        return self._whole("effects", "seq", filters)

    def arrivals(self, **filters: str) -> list[dict[str, Any]]:
        """What reached a service; filters: also kind (read, write), method and outcome."""
        return self._whole("arrivals", "id", filters)

    def pending(self) -> list[dict[str, Any]]:
        """Late commits still under way."""
        return list(self._ledger({})["pending"])

    def counts(self) -> dict[str, Any]:
        """Totals, and per operation."""
        return self._control("GET", "counts")

    def mode(self, service: str, **mode: Any) -> None:
        """``keys="honour"`` or ``"ignore"``, ``retention_seconds=…``."""
        self._control("POST", "modes", {"service": service, **mode})

    def advance(self, seconds: float) -> None:
        """Put this world's clock ahead instead of waiting."""
        self._control("POST", "clock", {"advance_seconds": seconds})

    def reset(self) -> None:
        """An empty world."""
        self._control("POST", "reset", {})

    def wait_for_effects(self, count: int, *, timeout: float = 10.0, **filters: str) -> list[dict[str, Any]]:
        """Poll until at least ``count`` effects fit; ``TimeoutError`` with the last count otherwise."""
        until = time.monotonic() + timeout
        while len(found := self.effects(**filters)) < count:
            if time.monotonic() > until:
                raise TimeoutError(f"{len(found)} of {count} effects after {timeout} s")
            time.sleep(0.02)
        return found

    def wait_for_late_commits(self, *, timeout: float = 10.0) -> None:
        """Poll until no promised commit is left; ``TimeoutError`` otherwise."""
        until = time.monotonic() + timeout
        while self.pending():
            if time.monotonic() > until:
                raise TimeoutError(f"late commits still under way after {timeout} s")
            time.sleep(0.02)

    def _whole(self, what: str, number: str, filters: Mapping[str, str]) -> list[dict[str, Any]]:
        """All rows that fit, page by page: a list cut short would read like a world in which less happened."""
        found: list[dict[str, Any]] = []
        for _ in range(MAX_PAGES):
            page = self._ledger({**filters, "after": str(found[-1][number] if found else 0)})[what]
            found += page
            if len(page) < MAX_LIST_ITEMS:
                return found
        raise SandboxError(f"more than {MAX_PAGES} pages of {what}: narrow the filters")

    def _ledger(self, filters: dict[str, str]) -> dict[str, Any]:
        return self._control("GET", "ledger" + (f"?{urlencode(filters)}" if filters else ""))

    def _control(self, method: str, name: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        raw = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        url = f"{self.url}/_control/{name}"
        request = Request(url, data=raw, method=method, headers=headers)  # noqa: S310 - our own address
        try:
            with self._opener.open(request, timeout=10) as reply:
                return dict(json.loads(reply.read()))
        except HTTPError as error:
            raise SandboxError(json.loads(error.read())["error"]["message"]) from error


@dataclass
class Process:
    """A sandbox in its own process; it stops by itself when the process that started it is gone."""

    url: str
    data_dir: Path
    popen: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.popen.pid

    @property
    def port(self) -> int:
        """The port it listens on; give it to ``start`` to come back at the same address."""
        return int(self.url.rsplit(":", 1)[1])

    @property
    def sandbox(self) -> Sandbox:
        """Its control side."""
        return Sandbox(self.url)

    def stop(self, timeout: float = 10.0) -> int:
        """SIGTERM and wait; returns the exit status, 0 when it was clean."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """``kill -9`` and wait."""
        self.popen.kill()
        self.popen.wait()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def start(data_dir: Path, port: int = 0, *, extra: Sequence[str] = ()) -> Process:
    """Start a sandbox and return once it accepts calls; ``RuntimeError`` with its own words otherwise.

    ``extra`` goes to the command line (``--beliefs`` and the like). Its output is in ``sandbox.log``.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    ready, log = data_dir / "ready", data_dir / "sandbox.log"
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "sandbox", "--port", str(port), "--data", str(data_dir)]
    command += ["--ready-file", str(ready), "--parent", str(os.getpid()), *extra]
    with log.open("ab") as output:
        popen = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    until = time.monotonic() + START_SECONDS
    while not ready.exists():
        if popen.poll() is not None or time.monotonic() > until:
            popen.kill()
            popen.wait()
            raise RuntimeError(f"The sandbox did not start: {log.read_text()[-2000:].strip()}")
        time.sleep(0.01)
    return Process(url=ready.read_text().strip(), data_dir=data_dir, popen=popen)
