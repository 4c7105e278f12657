"""Named places where a process may die, for the tests that make it die there (FAULTS 2.2).

A point does nothing unless the environment of the process names it; a production environment never does.
"""

from __future__ import annotations

import os
import signal

_DIE_AT = os.environ.get("STEADYHAND_DIE_AT", "")


def point(name: str) -> None:
    """Die by SIGKILL if the test that started this process asked for it here."""
    if name == _DIE_AT:
        os.kill(os.getpid(), signal.SIGKILL)
