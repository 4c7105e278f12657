"""How long a provider asks us to wait, read from whatever it wrote (F031, F032, ruling 3). Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

MAX_RETRY_AFTER_SECONDS = 7 * 86400.0
ABSURD_SECONDS = 366 * 86400.0
AN_EPOCH = 1e9
SKEW_WORTH_TELLING = 60.0

Clock = Callable[[], datetime]


@dataclass(frozen=True)
class Delay:
    """Seconds asked for, None where nothing usable was said; and a sentence about what was ignored or is odd."""

    seconds: float | None = None
    note: str = ""


def asked_for(headers: Mapping[str, str], told: str | None, clock: Clock) -> Delay:
    """The delay in `told` (a typed exception's own) or in the headers, whose names come in any case.

    A date counts from the reply's own `Date`: the two were written by the same clock.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    text = told if told is not None else lower.get("retry-after")
    if text is not None:
        return _from_text(text, _written_at(lower.get("date")), clock)
    return Delay(_from_milliseconds(lower.get("retry-after-ms")) or _until_reset(lower, clock))


def retry_after(text: str | None, clock: Clock) -> float | None:
    """Seconds asked for, from seconds or an HTTP date, at most a week; None where it says nothing usable.

    A long wait is kept long, so that it runs into the deadline; only what no provider can mean is ignored.
    """
    return None if text is None else _from_text(text, None, clock).seconds


def _from_text(text: str, written_at: datetime | None, clock: Clock) -> Delay:
    seconds, note = _number(text), ""
    if seconds is None:
        until = _written_at(text)
        now = clock() if until else None
        seconds = (until - (written_at or now)).total_seconds() if until and now else None
        note = _skew(written_at, now)
    kept = _usable(seconds)
    return Delay(kept, note) if kept is not None else Delay(None, "Its delay was ignored; our own pause is used.")


def _skew(written_at: datetime | None, now: datetime | None) -> str:
    """A sentence where the provider's clock is far from ours."""
    if written_at is None or now is None:
        return ""
    ahead = (written_at - now).total_seconds()
    if abs(ahead) < SKEW_WORTH_TELLING:
        return ""
    return f"Its clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} ours."


def _number(text: str) -> float | None:
    try:
        return float(text.strip())
    except ValueError:
        return None


def _written_at(text: str | None) -> datetime | None:
    """The time in an HTTP date; None where it is none, or names no zone."""
    try:
        at = parsedate_to_datetime(text) if text else None
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return at if at is not None and at.tzinfo is not None else None


def _usable(seconds: float | None) -> float | None:
    if seconds is None or not 0 <= seconds <= ABSURD_SECONDS:  # a NaN is in no range
        return None
    return min(seconds, MAX_RETRY_AFTER_SECONDS)


def _from_milliseconds(text: str | None) -> float | None:
    number = _number(text) if text else None
    return _usable(number / 1000) if number is not None else None


def _until_reset(lower: Mapping[str, str], clock: Clock) -> float | None:
    """The end of a limit's window: seconds from now, or a time in seconds since 1970."""
    text = lower.get("x-ratelimit-reset", lower.get("ratelimit-reset"))
    number = _number(text) if text else None
    if number is None or number < AN_EPOCH:
        return _usable(number)
    return _usable(number - (_written_at(lower.get("date")) or clock()).timestamp())
