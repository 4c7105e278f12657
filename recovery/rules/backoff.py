"""When to try again and when to look again. Pure: seconds in, times out."""

from __future__ import annotations

from datetime import datetime, timedelta

FIRST_RETRY_SECONDS = 1.0
CAP_SECONDS = 300.0


def retry_delay(attempts: int, asked: float | None, spread: float) -> float:
    """Seconds to wait after `attempts` tries: what the provider asked for, never less, else full jitter.

    `spread` is a number from 0 to 1, drawn by the caller, so that the same inputs give the same answer (F108).
    """
    if asked is not None:
        return asked
    ceiling = min(CAP_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(attempts - 1, 30))
    return max(0.1, ceiling * spread)


def next_look_at(
    *,
    now: datetime,
    looks: int,
    first_look_seconds: float,
    final_from: datetime | None,
    uncertain_since: datetime,
) -> datetime:
    """The time of the next look by itself.

    The first comes `first_look_seconds` after the outcome became unknown; each further one waits twice as long. No
    look is planned past `final_from`, the moment from which one counts as final, without one there or, if nobody
    has looked since, at once.
    """
    delay = timedelta(
        seconds=first_look_seconds if looks == 0 else min(CAP_SECONDS, max(first_look_seconds, 5.0) * 2**looks)
    )
    planned = max(now, uncertain_since + delay) if looks == 0 else now + delay
    if final_from is not None and final_from < planned and (looks == 0 or now < final_from):
        return max(now, final_from)
    return planned
