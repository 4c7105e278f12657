"""After os.fork a child shares no socket and no lock with its parent."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    def renew(self) -> None:
        """Take new what must not be shared with the parent; close nothing of the parent's."""


_alive: WeakSet[Renewable] = WeakSet()


def renew_in_child(thing: Renewable) -> None:
    """Have a thing renewed in every child process, for as long as it lives."""
    _alive.add(thing)


def _renew_all() -> None:
    for thing in list(_alive):
        thing.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
