"""A hub and two machines as network namespaces, joined by a line each that can be cut and healed."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HUB = "10.77.0.1"
"""Where both machines find what they share; no address of this network is known outside of the namespaces."""
CLONE_NEWNET = 0x40000000
MACHINES = {"first": 1, "second": 2}


class CannotRun(Exception):
    """The tests between two machines cannot be made here; the message says what is missing."""


@dataclass(frozen=True)
class Network:
    """The names of the namespaces begin with `name`."""

    name: str

    @property
    def hub(self) -> str:
        return f"{self.name}-hub"

    def machine(self, which: str) -> str:
        return f"{self.name}-{MACHINES[which]}"

    def inside(self, which: str) -> list[str]:
        """What a command line begins with to run on a machine."""
        return ["ip", "netns", "exec", self.machine(which)]

    def cut(self, which: str) -> None:
        """Nothing arrives any more, and nobody is told: packets are lost in both directions."""
        _ip("-n", self.hub, "link", "set", f"to{MACHINES[which]}", "down")

    def heal(self, which: str) -> None:
        _ip("-n", self.hub, "link", "set", f"to{MACHINES[which]}", "up")

    def make(self) -> None:
        """Every line is made inside the namespaces: nothing of it ever stands in the network of this machine."""
        for name in (self.hub, *map(self.machine, MACHINES)):
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", self.hub, "addr", "add", f"{HUB}/32", "dev", "lo")
        for which, number in MACHINES.items():
            there = self.machine(which)
            _ip("-n", self.hub, "link", "add", f"to{number}", "type", "veth", "peer", "name", "hub", "netns", there)
            _ip("-n", self.hub, "addr", "add", f"10.77.{number}.1/30", "dev", f"to{number}")
            _ip("-n", self.hub, "link", "set", f"to{number}", "up")
            _ip("-n", there, "addr", "add", f"10.77.{number}.2/30", "dev", "hub")
            _ip("-n", there, "link", "set", "hub", "up")
            _ip("-n", there, "route", "add", HUB, "via", f"10.77.{number}.1")

    def remove(self) -> None:
        """A line goes with its namespace."""
        for name in (*map(self.machine, MACHINES), self.hub):
            if (Path("/run/netns") / name).exists():
                _ip("netns", "del", name)


@contextmanager
def network() -> Iterator[Network]:
    """The network, with this thread and what it starts in the hub. Raises CannotRun with what is missing."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        raise CannotRun("The tests between two machines need root and 'ip netns' (package iproute2).")
    made = Network(f"sh{os.getpid()}")
    try:
        made.make()
        with _standing_in(made.hub):
            yield made
    except subprocess.CalledProcessError as refused:
        raise CannotRun(f"Network namespaces cannot be made here: {refused.stderr.strip()}") from refused
    finally:
        made.remove()


@contextmanager
def _standing_in(name: str) -> Iterator[None]:
    """Only the calling thread moves; its children are born where it stands."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{name}", os.O_RDONLY)
    try:
        _enter(there)
        yield
    finally:
        _enter(home)
        os.close(home)
        os.close(there)


def _enter(namespace: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        raise CannotRun(f"A network namespace cannot be entered here: {os.strerror(ctypes.get_errno())}.")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True, timeout=20)
