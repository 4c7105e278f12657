"""What a boundary of either kind is: a way to Steadyhand, and the requests that belong to no run."""

from __future__ import annotations

import logging
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict

from steadyhand import batches
from steadyhand.async_run import AsyncRun
from steadyhand.contract import (
    OUTCOME_OF,
    ActionPage,
    EventPage,
    Ingested,
    Manifest,
    OpenRun,
    Resume,
    ResumeAnswer,
    RunOpened,
    Scope,
    StructuredError,
)
from steadyhand.errors import Stopped, Suspended
from steadyhand.ground import Ground, Means, Ways, spool_at
from steadyhand.reports import deliver
from steadyhand.transport import Transport, options

ENDED = frozenset({"completed", "failed", "cancelled"})
log = logging.getLogger("steadyhand")


class Work(TypedDict):
    """What every run has."""

    workflow: str
    intent: str


class Opening(Work, total=False):
    """How a run is opened.

    The same `client_ref` opens the same run again, so a lost answer costs nothing. `parent` is the run (or its id)
    whose budgets pay for this one too.
    """

    scope: Scope | dict[str, Any] | None
    client_ref: str | None
    requester: str | None
    customer_ref: str | None
    deadline_at: datetime | None
    model: str | None
    prompt_version: str | None
    trace_id: str | None
    parent: Any


class Connection(ABC):
    """A connection to Steadyhand for one agent client; close it, or use it as a context manager.

    `timeout` (seconds) bounds each request to Steadyhand, which is never sent twice. `max_wait` bounds how long a
    call waits in place before it raises Suspended. `layer` names this program in the record. `fail_open_reads` names
    the reads that may be made while Steadyhand cannot be reached; writes never are. `spool` is a file for reports
    that could not be delivered: this process or the next one delivers them. It holds what tools answered.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 10,
        max_wait: float = 30.0,
        transport: Any = None,
        layer: str = "agent",
        fail_open_reads: Iterable[str] = (),
        spool: Path | str | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Any] | None = None,
    ) -> None:
        ground = self._ground_of(sleep)
        line = Transport(ground.line(transport, options(url, token, timeout)))
        self._means = Means(line, ground, Ways(max_wait, layer, frozenset(fail_open_reads), clock), spool_at(spool))

    @abstractmethod
    def _ground_of(self, sleep: Callable[[float], Any] | None) -> Ground:
        """How this kind of boundary sends, waits and calls."""

    async def _open(self, opening: Opening) -> AsyncRun:
        given: dict[str, Any] = dict(opening)
        parent = given.pop("parent", None)
        given["client_ref"] = given.get("client_ref") or uuid.uuid4().hex
        given["scope"] = Scope.model_validate(given.get("scope") or {})
        given["parent_run_id"] = getattr(parent, "run_id", parent)
        request = OpenRun(**given)
        await self._deliver_spooled()
        opened = await self._means.transport.post("/runs", request, RunOpened)
        return AsyncRun(self._means, opened, request.intent)

    async def _resumed(self, run_id: str, workflow_id: str | None) -> AsyncRun:
        await self._deliver_spooled()
        told = Resume(workflow_id=workflow_id) if workflow_id is not None else None
        answer = await self._means.transport.post(f"/runs/{run_id}/resume", told, ResumeAnswer)
        if answer.state in ENDED:
            raise Stopped(answer.run_id, _ended(answer), answer.outcome)
        if not answer.ready:
            raise Suspended(answer.run_id, answer.due_at, answer.reason_code)
        return AsyncRun(self._means, answer, answer.intent)

    async def _register(self, name: str, manifest: Manifest | dict[str, Any]) -> dict[str, Any]:
        document = manifest if isinstance(manifest, dict) else manifest.model_dump(mode="json", exclude_unset=True)
        told = await self._means.transport.put(f"/workflows/{name}", document)
        for warning in told.get("warnings") or ():
            log.warning("workflow %s: %s: %s", name, warning.get("field"), warning.get("remedy"))
        return told

    async def _events(self, after: str | None, limit: int) -> EventPage:
        return await self._means.transport.get("/events", EventPage, after=after, limit=limit)

    async def _actions(self, limit: int) -> ActionPage:
        return await self._means.transport.get("/actions", ActionPage, limit=limit)

    async def _ingest(self, records: Iterable[Any]) -> Ingested:
        told, sent = Ingested(accepted=0, duplicates=0), 0
        for batch in batches.of(records):
            answer = await self._means.transport.post_json("/ingest", batch.body, Ingested)
            told = batches.together(told, answer, offset=sent)
            sent += batch.count
        return told

    async def _deliver_spooled(self) -> int:
        if self._means.spool is None:
            return 0
        return await deliver(self._means.transport, self._means.ground, self._means.spool)

    async def _close(self) -> None:
        await self._deliver_spooled()
        await self._means.transport.close()


def _ended(answer: ResumeAnswer) -> StructuredError:
    code = answer.reason_code if answer.reason_code in OUTCOME_OF else "completed"
    return StructuredError(code=code or "completed", message=f"The run has ended: it is {answer.state}.")
