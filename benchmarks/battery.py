"""The fault world of the peers' battery with Steadyhand in it: `BATTERY=folder python -m benchmarks.battery`.

BATTERY names the folder of the battery (world.py, driver.py, run.py, table.py). It is copied to a temporary place,
our adapter is put beside the others, and the battery's own runner drives it against the whole product: database,
broker, web, worker and beat, started here for the occasion. Prints our row as the battery's table writes it, and what
is wrong with a cell; exit code 1 if any is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from console.embedded.children import BASE

ADAPTER = Path(__file__).with_name("battery_adapter.py")
NAME = "steadyhand"
MODES = ("basic", "full")
START_SECONDS = 120.0


def main() -> int:
    source = Path(os.environ.get("BATTERY", ""))
    if not (source / "run.py").is_file():
        print("Name the battery's folder with BATTERY (it holds run.py, world.py and driver.py).")
        return 2
    with tempfile.TemporaryDirectory(prefix="battery-") as folder:
        return _in(Path(folder), source)


def _in(folder: Path, source: Path) -> int:
    world_port, battery = _free_port(), _copied(source, folder / "battery")
    _prepare(battery, world_port)
    with _product(folder / "home", trusted=f"127.0.0.1:{world_port}") as (url, token):
        home = folder / "peers"
        _environment(home)
        env = {**os.environ, "PEERS_HOME": str(home), "STEADYHAND_URL": url, "STEADYHAND_TOKEN": token,
               "BATTERY_WORLD": f"http://127.0.0.1:{world_port}", "PYTHONPATH": str(BASE / "sdk")}  # fmt: skip
        subprocess.run([sys.executable, "run.py", NAME], cwd=battery, env=env, check=True)
    results = json.loads((battery / "results" / f"{NAME}.json").read_text())
    return _print(results, battery)


def _copied(source: Path, to: Path) -> Path:
    shutil.copytree(source, to, ignore=shutil.ignore_patterns("results", "__pycache__"))
    (to / "results").mkdir()
    shutil.copy(ADAPTER, to / "adapters" / f"{NAME}.py")
    return to


def _prepare(battery: Path, world_port: int) -> None:
    """Name our adapter to the runner and the table, and give the world a port that the product can be told before."""
    _replace(battery / "run.py", "PEERS = {", f'PEERS = {{"{NAME}": ("{NAME}", {list(MODES)!r}),')
    _replace(battery / "table.py", "ORDER = [", f'ORDER = ["{NAME}", ')
    _replace(battery / "world.py", '("127.0.0.1", 0)', f'("127.0.0.1", {world_port})')


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    if old not in text:
        raise SystemExit(f"{path.name} has changed: {old!r} is not in it.")
    path.write_text(text.replace(old, new, 1))


def _environment(home: Path) -> None:
    """The battery looks for an interpreter at NAME/venv/bin/python; ours is the one that runs this."""
    place = home / NAME / "venv" / "bin"
    place.mkdir(parents=True)
    python = place / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)


@contextmanager
def _product(home: Path, *, trusted: str) -> Iterator[tuple[str, str]]:
    """The product as `make up` starts it, in a folder of its own; its address and an agent's token."""
    port = _free_port()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DATABASE", "CELERY"))}
    env |= {"STEADYHAND_HOME": str(home), "TRUSTED_ENDPOINTS": trusted}
    log = home.with_suffix(".log")
    with log.open("wb") as out:
        command = [sys.executable, "manage.py", "up", "--port", str(port)]
        up = subprocess.Popen(command, cwd=BASE, env=env, stdout=out, stderr=out)
        try:
            url = f"http://127.0.0.1:{port}"
            _until_answers(up, url, log)
            _manage(env, "add_tenant", "battery", "Battery")
            yield url, _token(_manage(env, "agent_token", "battery", "battery-agent"))
        finally:
            up.send_signal(signal.SIGTERM)
            up.wait(timeout=60)


def _manage(env: dict[str, str], *words: str) -> str:
    done = subprocess.run([sys.executable, "manage.py", *words], cwd=BASE, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def _token(told: str) -> str:
    found = re.search(r"\bsh_[\w-]+", told)
    if found is None:
        raise SystemExit(f"No token in: {told}")
    return found.group()


def _until_answers(up: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and up.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise SystemExit(log.read_text()[-2000:])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _print(results: dict[str, Any], battery: Path) -> int:
    table = subprocess.run([sys.executable, "table.py"], cwd=battery, capture_output=True, text=True, check=True)
    print(table.stdout)
    wrong = [f"{mode} {name}: {fault}" for mode, cells in results.items() for name, cell in cells.items()
             if (fault := verdict(name, cell))]  # fmt: skip
    print("\n".join(wrong) if wrong else "Every cell is right.")
    return 1 if wrong else 0


def verdict(name: str, cell: dict[str, Any]) -> str:
    """What is wrong with a cell of the battery; empty where it is right.

    Right is one effect that the agent was told of or told to be unknown, no effect that it was told of, and no more
    arrivals than were decided. A redelivery that no key stops makes two effects whoever guards: there only silence or
    success would be wrong.
    """
    if name == "latency":
        return "" if cell.get("p50_ms") else "no latency was measured"
    if cell.get("crash") or cell.get("hung"):
        return f"the process crashed or hung: {str(cell.get('crash')).strip()[-200:]}"
    if not cell["arrivals"]:
        return f"nothing was sent: {str(cell['log'][:1])[:300]}"
    effects, told, unknown = cell["effects"], cell["told_success"], cell["unknown_reported"]
    if effects > 1:
        detected = name == "redeliver" and not told and unknown
        return "" if detected else f"{effects} effects"
    if effects == 0:
        return "told success beside no effect" if told else ""
    if not (told or unknown):
        return "one effect, and the agent was only told of a failure"
    more = cell["arrivals"] - effects
    return f"{cell['arrivals']} arrivals" if more and not name.startswith("redeliver") else ""


if __name__ == "__main__":
    sys.exit(main())
