"""Heartbeats beside a long call: its lease lasts as long as somebody is at work on it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from steadyhand.calls import Call
from steadyhand.errors import SteadyhandError, Unavailable

log = logging.getLogger("steadyhand")
BEATS_PER_TIMEOUT = 3


async def keep_beating(call: Call, pause: Callable[[float], Awaitable[bool]]) -> SteadyhandError | None:
    """Beat until the call is over (`pause` says so) or may not go on; then what ended it.

    A lease lasts at least the call's timeout, so a beat that got no answer is made up for by the next.
    """
    while not await pause(call.timeout_seconds / BEATS_PER_TIMEOUT):
        try:
            await call.pulse()
        except Unavailable:
            log.warning("run %s: a heartbeat of %s got no answer", call.run_id, call.step)
        except SteadyhandError as ended:
            return ended
    return None
