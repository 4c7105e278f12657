"""The ground of a boundary without an event loop: every step is done at once, so its coroutines never pause."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

import httpx

from steadyhand.beats import keep_beating
from steadyhand.calls import Call, Seen, Tool, perform
from steadyhand.forks import renew_in_child

T = TypeVar("T")


def now(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never pauses."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    work.close()
    raise RuntimeError("This coroutine waits for an event loop: use AsyncBoundary.")


@contextmanager
def held(block: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """An async context manager on this ground as an ordinary one."""
    value = now(block.__aenter__())
    try:
        yield value
    except BaseException as error:
        if not now(block.__aexit__(type(error), error, error.__traceback__)):
            raise
    else:
        now(block.__aexit__(None, None, None))


class Lock:
    """A lock of threads, for code that is written for both grounds."""

    def __init__(self) -> None:
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        self._lock = threading.RLock()

    async def __aenter__(self) -> None:
        self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


class Line:
    """Sends requests over an HTTP client of its own."""

    def __init__(self, transport: httpx.BaseTransport | None, options: dict[str, Any]) -> None:
        self._transport = transport
        self._options = options
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        self._client = httpx.Client(transport=self._transport or httpx.HTTPTransport(retries=0), **self._options)

    async def request(self, method: str, path: str, **content: Any) -> httpx.Response:
        return self._client.request(method, path, **content)

    async def close(self) -> None:
        self._client.close()


class Blocking:
    """How a boundary sends, waits and calls in the thread that uses it."""

    def __init__(self, sleep: Callable[[float], Any]) -> None:
        self._sleep = sleep

    def line(self, transport: Any, options: dict[str, Any]) -> Line:
        return Line(transport, options)

    def lock(self) -> Lock:
        return Lock()

    async def sleep(self, seconds: float) -> None:
        self._sleep(seconds)

    async def invoke(self, is_async: bool, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    async def unbroken(self, work: Coroutine[Any, Any, T]) -> T:
        """Nobody can break off what runs in this thread, save Ctrl-C, which `perform` hands back."""
        return await work

    def waiter(self, is_async: bool) -> Callable[[Coroutine[Any, Any, Any]], Any]:
        """How a tool's function gets the answer to a heartbeat."""
        return now

    async def perform(self, tool: Tool, arguments: dict[str, Any], call: Call) -> Seen:
        with _beating(call) if tool.heartbeat else contextlib.nullcontext():
            return await perform(tool, arguments, call, self.invoke)


@contextmanager
def _beating(call: Call) -> Iterator[None]:
    over = threading.Event()

    async def pause(seconds: float) -> bool:
        return over.wait(seconds)

    beats = threading.Thread(target=lambda: now(keep_beating(call, pause)), daemon=True)
    beats.start()
    try:
        yield
    finally:
        over.set()
        beats.join(timeout=1)
