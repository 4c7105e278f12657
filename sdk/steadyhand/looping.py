"""The ground of a boundary on an event loop. A cancelled task ends its tool, never the report about it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import Any, TypeVar

import httpx

from steadyhand import observe
from steadyhand.beats import keep_beating
from steadyhand.calls import Call, Seen, Tool, perform
from steadyhand.errors import Cancelled

T = TypeVar("T")


class Flight:
    """One call in the air: a cancellation reaches the tool, and the rest of the call goes on to its report."""

    def __init__(self) -> None:
        self.cancelled = False
        self.tool: asyncio.Future[Any] | None = None

    def cancel(self) -> None:
        self.cancelled = True
        if self.tool is not None:
            self.tool.cancel()


_flight: ContextVar[Flight] = ContextVar("steadyhand_flight")


class Line:
    """Sends requests over an HTTP client of the running loop; a socket of another loop, or process, is of no use."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None, options: dict[str, Any]) -> None:
        self._transport = transport
        self._options = options
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def request(self, method: str, path: str, **content: Any) -> httpx.Response:
        return await self._of_this_loop().request(method, path, **content)

    async def close(self) -> None:
        if self._client is not None and self._loop is asyncio.get_running_loop():
            await self._client.aclose()

    def _of_this_loop(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            transport = self._transport or httpx.AsyncHTTPTransport(retries=0)
            self._client, self._loop = httpx.AsyncClient(transport=transport, **self._options), loop
        return self._client


class Looping:
    """How a boundary sends, waits and calls on an event loop; a plain function runs in a thread."""

    def __init__(self, sleep: Callable[[float], Awaitable[Any]]) -> None:
        self._sleep = sleep

    def line(self, transport: Any, options: dict[str, Any]) -> Line:
        return Line(transport, options)

    def lock(self) -> AbstractAsyncContextManager[Any]:
        return asyncio.Lock()

    async def sleep(self, seconds: float) -> None:
        await self._sleep(seconds)

    async def invoke(self, is_async: bool, function: Callable[..., Any], *arguments: Any) -> Any:
        value = function(*arguments) if is_async else await asyncio.to_thread(function, *arguments)
        return await value if inspect.isawaitable(value) else value

    async def unbroken(self, work: Coroutine[Any, Any, T]) -> T:
        """Finish the work though this task is cancelled meanwhile; the cancellation goes on afterwards."""
        flight = Flight()
        task = asyncio.ensure_future(_flying(flight, work))
        cancelled = await _landed(task, flight)
        if cancelled is not None:
            if not task.cancelled():
                task.exception()  # read, so that asyncio does not call it lost
            raise cancelled
        return task.result()

    def waiter(self, is_async: bool) -> Callable[[Coroutine[Any, Any, Any]], Any]:
        """How a tool's function gets the answer to a heartbeat: it awaits it, or waits for it in its thread."""
        loop = asyncio.get_running_loop()
        if is_async:
            return lambda answer: answer
        return lambda answer: asyncio.run_coroutine_threadsafe(answer, loop).result()

    async def perform(self, tool: Tool, arguments: dict[str, Any], call: Call) -> Seen:
        flight = _flight.get()
        if flight.cancelled:
            return _never_begun()
        flight.tool = asyncio.ensure_future(perform(tool, arguments, call, self.invoke))
        beats = asyncio.ensure_future(_beating(call, flight.tool)) if tool.heartbeat else None
        await _landed(flight.tool, flight)
        if beats is not None:
            beats.cancel()
        if flight.tool.cancelled():
            return _never_begun()
        observation, interrupt = flight.tool.result()
        own = isinstance(interrupt, asyncio.CancelledError) and not flight.cancelled
        return observation, None if own else interrupt  # a cancellation that nobody asked of us is the tool's failure


async def _flying(flight: Flight, work: Coroutine[Any, Any, T]) -> T:
    _flight.set(flight)
    return await work


async def _landed(task: asyncio.Future[Any], flight: Flight) -> asyncio.CancelledError | None:
    """Wait for the end of a task; a cancellation of ours meanwhile cancels the tool, and is handed back."""
    cancelled = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
            flight.cancel()
    return cancelled


async def _beating(call: Call, tool: asyncio.Future[Any]) -> None:
    async def pause(seconds: float) -> bool:
        await asyncio.sleep(seconds)
        return False

    if isinstance(await keep_beating(call, pause), Cancelled):
        tool.cancel()


def _never_begun() -> Seen:
    return observe.not_sent("The call was cancelled before it was made."), asyncio.CancelledError()
