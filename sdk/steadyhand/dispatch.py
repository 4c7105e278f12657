"""A permitted call on its way: what the tool's function is told, the credential it may need, and its heartbeats."""

from __future__ import annotations

import copy
import logging
from typing import Any

import httpx

from steadyhand import observe
from steadyhand.calls import Arguments, Call, Seen, Tool, is_async
from steadyhand.contract import Heartbeat, Leased, Permit
from steadyhand.errors import Cancelled, CredentialsRejected, Problem
from steadyhand.ground import Means

log = logging.getLogger("steadyhand")
DEFAULT_TIMEOUT_SECONDS = 30.0


class Dispatch:
    """Makes the calls of one run. `reads` names its tools that change nothing."""

    def __init__(self, means: Means, run_id: str, reads: frozenset[str]) -> None:
        self._means = means
        self._run_id = run_id
        self._reads = reads

    async def perform(self, tool: Tool, arguments: Arguments, permit: Permit, asked_at: float) -> Seen:
        """The call, once, after the new credential that it may need. `asked_at`: when the permit was asked for."""
        call = self._call(tool, permit, asked_at)
        if call.refresh_credential and tool.refresh is not None:
            try:
                await self._means.ground.invoke(is_async(tool.refresh), tool.refresh)
            except Exception as failed:
                # Its words may hold a secret, so only its kind goes anywhere.
                kind = type(failed).__name__
                log.error("run %s: the credential of %s could not be refreshed (%s)", self._run_id, tool.name, kind)
                return observe.from_exception(CredentialsRejected(f"Refresh failed ({kind}).")), None
        return await self._means.ground.perform(tool, arguments, call)

    async def without_record(self, tool: Tool, arguments: Arguments) -> Any:
        """What a tool returns when it is called without a permit; what it raises goes to the caller."""
        call = self._call(tool, Permit(answer="execute", run_id=self._run_id, step=tool.name), None)
        value = await self._means.ground.invoke(tool.is_async, tool.function, copy.deepcopy(arguments), call)
        return value.raise_for_status().json() if isinstance(value, httpx.Response) else value

    def _call(self, tool: Tool, permit: Permit, asked_at: float | None) -> Call:
        clock, within = self._means.ways.clock, permit.dispatch_within_seconds
        seconds = permit.timeout_seconds or DEFAULT_TIMEOUT_SECONDS
        call = Call(
            run_id=self._run_id,
            tool=tool.name,
            step=permit.step,
            timeout_seconds=seconds,
            deadline=clock() + seconds,
            idempotency_key=permit.idempotency_key,
            action_id=permit.action_id,
            attempt_id=permit.attempt_id,
            attempt=permit.attempt or 1,
            is_read=tool.name in self._reads,
            refresh_credential=bool(permit.refresh_credential),
            # The permit's clock started after we asked, so measuring from the question can only be too strict.
            begin_by=None if within is None or asked_at is None else asked_at + within,
            clock=clock,
            waiter=self._means.ground.waiter(tool.is_async),
        )
        if permit.attempt_id is not None:
            beat = Heartbeat(attempt_id=permit.attempt_id, fence=permit.fence or 0)
            call.pulse = lambda: self._beat(call, beat)
        return call

    async def _beat(self, call: Call, beat: Heartbeat) -> Leased:
        try:
            leased = await self._means.transport.post(f"/runs/{self._run_id}/heartbeats", beat, Leased)
        except Problem:
            call.lost = True
            raise
        if leased.stop and call.is_read:
            raise Cancelled(self._run_id)
        return leased
