"""Named places where a process may die, for the tests that make it die there (FAULTS 2.2).

A point does nothing unless the environment of the process names a file that asks for it; no installation's does.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

_ASKED = os.environ.get("STEADYHAND_DIE_AT", "")


def point(name: str) -> None:
    """Die by SIGKILL if the test that started this process asked for it here."""
    if _ASKED:
        _die_if_asked(Path(_ASKED), name)


def _die_if_asked(asked: Path, name: str) -> None:
    """Whoever takes the file away dies, and leaves its name; the process that comes after it lives.

    `always` after the point's name leaves the file where it is: then every process dies here (F020).
    """
    wanted = _read(asked)
    if wanted[:1] != [name]:
        return
    grave = asked.with_name(f"died.{name}.{os.getpid()}")
    if wanted[1:] == ["always"]:
        grave.touch()
    elif not _renamed(asked, grave):
        return
    os.kill(os.getpid(), signal.SIGKILL)


def _read(asked: Path) -> list[str]:
    try:
        return asked.read_text().split()
    except FileNotFoundError:
        return []


def _renamed(asked: Path, grave: Path) -> bool:
    try:
        asked.rename(grave)
    except FileNotFoundError:
        return False  # another process was asked at the same moment and was faster
    return True
