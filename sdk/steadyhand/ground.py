"""What the protocol stands on: one implementation for both kinds of boundary, blocking.py and looping.py beneath."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from steadyhand.calls import Call, Seen, Tool
from steadyhand.transport import Line, Transport

if TYPE_CHECKING:
    from steadyhand.spool import Spool

T = TypeVar("T")


class Ground(Protocol):
    """How a boundary sends, waits and calls."""

    def line(self, transport: Any, options: dict[str, Any]) -> Line: ...

    def lock(self) -> AbstractAsyncContextManager[Any]: ...

    async def sleep(self, seconds: float) -> None: ...

    async def invoke(self, is_async: bool, function: Callable[..., Any], *arguments: Any) -> Any: ...

    async def unbroken(self, work: Coroutine[Any, Any, T]) -> T: ...

    def waiter(self, is_async: bool) -> Callable[[Coroutine[Any, Any, Any]], Any]: ...

    async def perform(self, tool: Tool, arguments: dict[str, Any], call: Call) -> Seen: ...


@dataclass(frozen=True)
class Ways:
    """How a boundary behaves: patience, layer, clock, and the reads that may go on without a record."""

    max_wait: float
    layer: str
    fail_open_reads: frozenset[str]
    clock: Callable[[], float]


@dataclass(frozen=True)
class Means:
    """What the runs of a boundary share."""

    transport: Transport
    ground: Ground
    ways: Ways
    spool: Spool | None


def spool_at(path: Path | str | None) -> Spool | None:
    """The spool of a boundary; imported here, for only a POSIX system has the locks that it needs."""
    if path is None:
        return None
    from steadyhand.spool import Spool

    return Spool(Path(path))
