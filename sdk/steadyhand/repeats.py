"""One permit, one request: a client inside the tool that sends the same request again is stopped (F107).

Everything that speaks HTTP through the standard library (http.client, so urllib, urllib3 and requests) tells Python's
audit hooks before it writes. The same head sent twice under one permit is somebody's own retry: it never leaves.
`http_call` has a guard of its own; a client with sockets of its own is seen only by the counting look.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

from steadyhand.errors import OutcomeUnknown

_VERBS = (b"POST ", b"PUT ", b"PATCH ", b"DELETE ")


class SentTwice(OutcomeUnknown):
    """A client inside the tool tried to send the same request a second time under one permit; it did not leave."""


class Sends:
    """The requests that left under one permit, and how many repeats were stopped."""

    def __init__(self) -> None:
        self.stopped = 0
        self._seen: set[tuple[Any, ...]] = set()

    def check(self, connection: Any, head: Any) -> None:
        """Note a request that is about to leave. Raises SentTwice if it left before."""
        if not isinstance(head, bytes) or not head.startswith(_VERBS):
            return
        request = (getattr(connection, "host", None), getattr(connection, "port", None), head)
        if request in self._seen:
            self.stopped += 1
            raise SentTwice("A client inside the tool tried to send the same request again; it was stopped.")
        self._seen.add(request)


_current: ContextVar[Sends | None] = ContextVar("steadyhand_sends", default=None)
_installed = Lock()
_hooked = False


@contextmanager
def guarded() -> Iterator[Sends]:
    """Watch what leaves in this context until the block ends."""
    _install()
    sends = Sends()
    token = _current.set(sends)
    try:
        yield sends
    finally:
        _current.reset(token)


def _install() -> None:
    """Python keeps an audit hook for the life of the process, so it is added once and does nothing outside a call."""
    global _hooked
    with _installed:
        if not _hooked:
            sys.addaudithook(_hook)
            _hooked = True


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "http.client.send":
        return
    sends = _current.get()
    if sends is not None:
        sends.check(*arguments[:2])
