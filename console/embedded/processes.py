"""How a child process is started so that it can never outlive the process that started it."""

import os
import shutil
import signal
import stat
import subprocess
from functools import cache
from pathlib import Path

from console.embedded.errors import Trouble

NOBODY = 65534
SLEEPING_FOR_GOOD = {"Z", "X"}


def tied(command: list[str], *, stop: signal.Signals = signal.SIGTERM) -> list[str]:
    """`command`, told by the kernel to stop with `stop` when the thread that started it is gone."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return command
    return [setpriv, "--pdeathsig", stop.name.removeprefix("SIG"), "--", *command]


def unprivileged(command: list[str]) -> list[str]:
    """`command` as somebody who is not root, for servers that refuse root; no user is created for it."""
    if os.geteuid() != 0:
        return command
    if namespaces_allowed():
        return ["unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}", "--", *command]
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--", *command]


def becomes_nobody() -> bool:
    """Whether a server of ours really runs as nobody: root, on a machine that refuses namespaces."""
    return os.geteuid() == 0 and not namespaces_allowed()


def hand_over(*folders: Path, home: Path) -> None:
    """Where root must really become nobody, the server's folders in `home` become nobody's too."""
    if not becomes_nobody():
        return
    home.chmod(0o711)
    closed = [parent for parent in home.parents if not parent.stat().st_mode & stat.S_IXOTH]
    if closed:
        raise Trouble(
            f"PostgreSQL refuses to run as root, and nobody else may enter {closed[0]}: "
            "start as an ordinary user, or set STEADYHAND_HOME to a folder that everyone may enter."
        )
    for folder in folders:
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


@cache
def namespaces_allowed() -> bool:
    """Whether this machine lets root map itself to nobody in a user namespace."""
    if shutil.which("unshare") is None:
        return False
    probe = ["unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}", "--", "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def is_alive(pid: int) -> bool:
    """Whether `pid` runs: a zombie that nobody has collected yet does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return not Path("/proc/self/stat").exists() and _answers(pid)
    return status.rpartition(")")[2].split()[0] not in SLEEPING_FOR_GOOD


def started_at(pid: int) -> str:
    """The kernel's start tick of `pid`, which tells a process from a later one with the same number."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
