"""Handing in reports: a report that cannot be delivered now is kept, never lost without a word."""

from __future__ import annotations

import logging
import threading

from steadyhand.contract import Report, Reported
from steadyhand.errors import Problem, SteadyhandError, Unavailable, Unrecorded
from steadyhand.transport import Transport

log = logging.getLogger("steadyhand")
_MAY_PASS = frozenset({401, 403, 404})


class Reports:
    """The reports of one run. The server takes the same report twice, so a late delivery repeats no tool call."""

    def __init__(self, transport: Transport, run_id: str) -> None:
        self._transport = transport
        self._run_id = run_id
        self._path = f"/runs/{run_id}/reports"
        self._kept: list[Report] = []
        self._lock = threading.RLock()

    def hand_in(self, report: Report) -> Reported:
        """Deliver a report now. Raises Unrecorded if that fails; the report is then kept."""
        try:
            return self._transport.post(self._path, report, Reported)
        except SteadyhandError as lost:
            with self._lock:
                self._kept.append(report)
            raise Unrecorded(self._run_id) from lost

    def catch_up(self) -> None:
        """Deliver what was kept, oldest first. Raises Unrecorded while that fails."""
        with self._lock:
            while self._kept:
                self._again(self._kept[0])
                self._kept.pop(0)

    def close(self) -> None:
        """The last chance to deliver. What stays is logged by its attempt; its lease then makes it unknown."""
        try:
            self.catch_up()
        except Unrecorded:
            for report in self._kept:
                log.exception("run %s: the report of attempt %s was not delivered", self._run_id, report.attempt_id)

    def _again(self, report: Report) -> None:
        try:
            self._transport.post(self._path, report, Reported)
        except Problem as problem:
            if problem.status in _MAY_PASS:
                raise Unrecorded(self._run_id) from problem
            # Refused for good: without a report the server treats the attempt as unknown.
            log.exception("run %s: the late report of attempt %s was refused", self._run_id, report.attempt_id)
        except Unavailable as lost:
            raise Unrecorded(self._run_id) from lost
