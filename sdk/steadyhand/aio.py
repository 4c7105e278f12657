"""The execution boundary for asyncio: the same promises, kept by the same code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from steadyhand.async_run import AsyncRun
from steadyhand.connection import Connection, Opening
from steadyhand.contract import ActionPage, EventPage, Ingested, Manifest
from steadyhand.decorate import decorator
from steadyhand.ground import Ground
from steadyhand.looping import Looping

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from steadyhand.decorate import Promises

__all__ = ["AsyncBoundary", "AsyncRun"]


class AsyncBoundary(Connection):
    """A connection for an event loop. Tools may be async, or plain: those run in a thread each.

    `transport` is an httpx.AsyncBaseTransport, `sleep` a coroutine function.
    """

    def _ground_of(self, sleep: Callable[[float], Any] | None) -> Ground:
        return Looping(sleep or asyncio.sleep)

    def run(self, **opening: Unpack[Opening]) -> Coming:
        """`async with boundary.run(…) as run`, or `run = await boundary.run(…)`. See Boundary.run."""
        return Coming(self._open(opening))

    def resume(self, run_id: str, workflow_id: str | None = None) -> Coming:
        """`async with boundary.resume(…) as run`, or `run = await boundary.resume(…)`. See Boundary.resume."""
        return Coming(self._resumed(run_id, workflow_id))

    def tool(self, function: Callable[..., Any] | None = None, **promises: Unpack[Promises]) -> Any:
        """Decorate a function, async or plain: inside the block of a run, awaiting it is `await run.call`."""
        return decorator(function, promises, AsyncRun)

    async def register(self, name: str, manifest: Manifest | dict[str, Any]) -> dict[str, Any]:
        """See Boundary.register."""
        return await self._register(name, manifest)

    async def events(self, after: str | None = None, limit: int = 100) -> EventPage:
        """See Boundary.events."""
        return await self._events(after, limit)

    async def actions(self, limit: int = 100) -> ActionPage:
        """See Boundary.actions."""
        return await self._actions(limit)

    async def ingest(self, records: Iterable[Any]) -> Ingested:
        """See Boundary.ingest."""
        return await self._ingest(records)

    async def deliver_spooled(self) -> int:
        """See Boundary.deliver_spooled."""
        return await self._deliver_spooled()

    async def close(self) -> None:
        await self._close()

    async def __aenter__(self) -> AsyncBoundary:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Coming:
    """A run that is about to be opened: await it, or enter it."""

    def __init__(self, opening: Coroutine[Any, Any, AsyncRun]) -> None:
        self._opening = opening
        self._run: AsyncRun | None = None

    def __await__(self) -> Generator[Any, Any, AsyncRun]:
        return self._opening.__await__()

    async def __aenter__(self) -> AsyncRun:
        self._run = await self._opening
        return await self._run.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._run is not None:
            await self._run.__aexit__(kind, error, trace)
