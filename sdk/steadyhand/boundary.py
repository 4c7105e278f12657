"""The execution boundary: agents open runs here and call every tool through them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import httpx

from steadyhand.contract import (
    OUTCOME_OF,
    ActionPage,
    EventPage,
    Manifest,
    OpenRun,
    ResumeAnswer,
    RunOpened,
    Scope,
    StructuredError,
)
from steadyhand.errors import Refused, Stopped, Suspended, Unavailable
from steadyhand.run import Run, Ways
from steadyhand.transport import Transport

__all__ = ["Boundary", "Refused", "Run", "Stopped", "Suspended", "Unavailable"]

ENDED = frozenset({"completed", "failed", "cancelled"})


class Boundary:
    """A connection to Steadyhand for one agent client. Thread-safe; close it, or use it as a context manager.

    `timeout` (seconds) bounds each request to Steadyhand, which is never sent twice. `max_wait` bounds how long a
    call waits in place before it raises Suspended. `fail_open_reads` names the reads that may be made while
    Steadyhand cannot be reached; writes never are.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 10,
        max_wait: float = 30.0,
        transport: httpx.BaseTransport | None = None,
        layer: str = "agent",
        fail_open_reads: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._transport = Transport(url, token, timeout=timeout, transport=transport)
        self._ways = Ways(max_wait, layer, frozenset(fail_open_reads), clock, sleep)

    def run(
        self,
        *,
        workflow: str,
        intent: str,
        scope: Scope | dict[str, Any] | None = None,
        client_ref: str | None = None,
        requester: str | None = None,
        customer_ref: str | None = None,
        deadline_at: datetime | None = None,
        model: str | None = None,
        prompt_version: str | None = None,
        trace_id: str | None = None,
    ) -> Run:
        """Open a run. The same `client_ref` opens the same run again, so a lost answer costs nothing.

        Raises Problem (unknown workflow, bad scope) or Unavailable.
        """
        request = OpenRun(
            workflow=workflow,
            client_ref=client_ref or uuid.uuid4().hex,
            intent=intent,
            scope=Scope.model_validate(scope or {}),
            requester=requester,
            customer_ref=customer_ref,
            deadline_at=deadline_at,
            model=model,
            prompt_version=prompt_version,
            trace_id=trace_id,
        )
        opened = self._transport.post("/runs", request, RunOpened)
        return Run(self._transport, self._ways, run_id=opened.run_id, workflow_id=opened.workflow_id, intent=intent)

    def resume(self, run_id: str) -> Run:
        """Take up a run where the record stands: calls whose effect is proven return their result again.

        Raises Suspended while it is not ready, Stopped once it has ended.
        """
        answer = self._transport.post(f"/runs/{run_id}/resume", None, ResumeAnswer)
        if answer.state in ENDED:
            raise Stopped(answer.run_id, _ended(answer), answer.outcome)
        if not answer.ready:
            raise Suspended(answer.run_id, answer.due_at, answer.reason_code)
        return Run(
            self._transport,
            self._ways,
            run_id=answer.run_id,
            workflow_id=answer.workflow_id,
            intent=answer.intent,
            steps=answer.steps,
        )

    def register(self, name: str, manifest: Manifest | dict[str, Any]) -> dict[str, Any]:
        """Register a workflow; the same manifest again keeps its version. Returns workflow_id, name and version.

        A dict goes out as it is, so that the server names every fault at once (Problem, `errors`).
        """
        document = manifest if isinstance(manifest, dict) else manifest.model_dump(mode="json", exclude_unset=True)
        return self._transport.put(f"/workflows/{name}", document)

    def events(self, after: str | None = None, limit: int = 100) -> EventPage:
        """A page of the feed of this client's runs, oldest first; ask again with `after=page.next`."""
        return self._transport.get("/events", EventPage, after=after, limit=limit)

    def actions(self, limit: int = 100) -> ActionPage:
        """What Steadyhand believes about the latest writes, under the references that the providers saw."""
        return self._transport.get("/actions", ActionPage, limit=limit)

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Boundary:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _ended(answer: ResumeAnswer) -> StructuredError:
    code = answer.reason_code if answer.reason_code in OUTCOME_OF else "completed"
    return StructuredError(code=code or "completed", message=f"The run has ended: it is {answer.state}.")
