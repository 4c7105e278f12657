"""The execution boundary: agents open runs here and call every tool through them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from steadyhand.blocking import Blocking, now
from steadyhand.connection import Connection, Opening
from steadyhand.contract import ActionPage, EventPage, Ingested, Manifest
from steadyhand.decorate import decorator
from steadyhand.errors import Refused, Stopped, Suspended, Unavailable
from steadyhand.ground import Ground
from steadyhand.run import Run

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from steadyhand.decorate import Promises

__all__ = ["Boundary", "Refused", "Run", "Stopped", "Suspended", "Unavailable"]


class Boundary(Connection):
    """A connection for code without an event loop. Thread-safe, and of use in a forked child."""

    def _ground_of(self, sleep: Callable[[float], Any] | None) -> Ground:
        return Blocking(sleep or time.sleep)

    def run(self, **opening: Unpack[Opening]) -> Run:
        """Open a run, or the one that this `client_ref` opened. Raises Problem (unknown workflow, bad scope) or
        Unavailable."""
        return Run(now(self._open(opening)))

    def resume(self, run_id: str, workflow_id: str | None = None) -> Run:
        """Take up a run where the record stands: calls whose effect is proven return their result again.

        `workflow_id`: the version that the caller is written for; another one needs a person. Raises Suspended while
        the run is not ready, Stopped once it has ended.
        """
        return Run(now(self._resumed(run_id, workflow_id)))

    def tool(self, function: Callable[..., Any] | None = None, **promises: Unpack[Promises]) -> Any:
        """Decorate a function: inside the block of a run, calling it is `run.call`."""
        return decorator(function, promises, Run)

    def register(self, name: str, manifest: Manifest | dict[str, Any]) -> dict[str, Any]:
        """Register a workflow; the same manifest again keeps its version. Returns workflow_id, name and version.

        A dict goes out as it is, so that the server names every fault at once (Problem, `errors`).
        """
        return now(self._register(name, manifest))

    def events(self, after: str | None = None, limit: int = 100) -> EventPage:
        """A page of the feed of this client's runs, oldest first; ask again with `after=page.next`."""
        return now(self._events(after, limit))

    def actions(self, limit: int = 100) -> ActionPage:
        """What Steadyhand believes about the latest writes, under the references that the providers saw."""
        return now(self._actions(limit))

    def ingest(self, records: Iterable[Any]) -> Ingested:
        """Tell what already happened elsewhere; the answer names each bad record. Sending it twice is harmless."""
        return now(self._ingest(records))

    def deliver_spooled(self) -> int:
        """Deliver what earlier processes could not report; how many reports were taken."""
        return now(self._deliver_spooled())

    def close(self) -> None:
        now(self._close())

    def __enter__(self) -> Boundary:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
