"""Handing in reports: a report that cannot be delivered now is kept, never lost without a word."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from steadyhand.contract import Report, Reported
from steadyhand.errors import Problem, SteadyhandError, Unavailable, Unrecorded
from steadyhand.ground import Ground
from steadyhand.transport import Transport

if TYPE_CHECKING:
    from steadyhand.spool import Kept, Spool

log = logging.getLogger("steadyhand")
_MAY_PASS = frozenset({401, 403, 404})
_WRONG_TOKEN = frozenset({401, 403})


class Reports:
    """The reports of one run. The server takes the same report twice, so a late delivery repeats no tool call.

    What cannot be delivered waits in the spool if there is one (and there is room), else in this process.
    """

    def __init__(self, transport: Transport, ground: Ground, spool: Spool | None, run_id: str) -> None:
        self._transport = transport
        self._ground = ground
        self._spool = spool
        self._run_id = run_id
        self._kept: list[Report] = []
        self._spooled: set[str] = set()
        self._lock = ground.lock()

    async def hand_in(self, report: Report) -> Reported:
        """Deliver a report now. Raises Unrecorded if that fails; the report is then kept."""
        try:
            return await self._transport.post(_path(self._run_id), report, Reported)
        except BaseException as lost:
            await self._keep(report)
            if isinstance(lost, SteadyhandError):
                raise Unrecorded(self._run_id) from lost
            raise

    async def catch_up(self) -> None:
        """Deliver what was kept, oldest first. Raises Unrecorded while that fails."""
        if not self._kept and not self._spooled:
            return
        async with self._lock:
            while self._kept:
                await self._again(self._kept[0])
                self._kept.pop(0)
            if self._spooled and self._spool is not None:
                await deliver(self._transport, self._ground, self._spool)
                self._spooled &= await self._ground.invoke(False, self._spool.holds)
            if self._spooled:
                raise Unrecorded(self._run_id)

    async def close(self) -> None:
        """The last chance to deliver. What is in no spool is logged by its attempt; its lease makes it unknown."""
        try:
            await self.catch_up()
        except Unrecorded:
            for report in self._kept:
                log.exception("run %s: the report of attempt %s was not delivered", self._run_id, report.attempt_id)

    async def _keep(self, report: Report) -> None:
        if self._spool is not None and await self._ground.invoke(False, self._spool.keep, self._run_id, report):
            self._spooled.add(report.attempt_id)
        else:
            self._kept.append(report)

    async def _again(self, report: Report) -> None:
        try:
            await self._transport.post(_path(self._run_id), report, Reported)
        except Problem as problem:
            if problem.status in _MAY_PASS:
                raise Unrecorded(self._run_id) from problem
            # Refused for good: without a report the server treats the attempt as unknown.
            log.exception("run %s: the late report of attempt %s was refused", self._run_id, report.attempt_id)
        except Unavailable as lost:
            raise Unrecorded(self._run_id) from lost


async def deliver(transport: Transport, ground: Ground, spool: Spool) -> int:
    """Deliver what a spool holds, oldest first, until one gets no answer; how many were delivered.

    Nothing is delivered where another process is at it. A line that cannot be read, or that Steadyhand refuses for
    good, goes to the `.bad` file and holds up nothing.
    """
    right = await ground.invoke(False, spool.begin)
    if right is None:
        return 0
    delivered: list[bytes] = []
    bad: list[bytes] = []
    try:
        for kept in await ground.invoke(False, spool.waiting):
            (delivered if await _taken(transport, kept) else bad).append(kept.line)
    except SteadyhandError as lost:
        log.warning("spooled reports wait: %s", lost)
    finally:
        await ground.invoke(False, spool.end, right, delivered, bad)
    return len(delivered)


async def _taken(transport: Transport, kept: Kept) -> bool:
    """Whether Steadyhand took the report. Raises where the next ones will fare no better."""
    if kept.report is None:
        log.error("a line of the spool cannot be read")
        return False
    try:
        await transport.post(_path(kept.run_id), kept.report, Reported)
    except Problem as problem:
        if problem.status in _WRONG_TOKEN:
            raise
        log.exception("run %s: the spooled report of attempt %s was refused", kept.run_id, kept.report.attempt_id)
        return False
    return True


def _path(run_id: str) -> str:
    return f"/runs/{run_id}/reports"
