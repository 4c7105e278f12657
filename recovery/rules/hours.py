"""Time as a team works it: open hours in a time zone, on some days of the week, without holidays. Pure.

Opening and closing are wall-clock times; a day on which the clocks change is as long as it is. Hours that do not
exist on such a day (the clock jumps over them) are no hours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

MOST_DAYS = 8_000
"""How far ahead is counted: 30 days of work at one hour a week, with a year of holidays between."""


class NoHours(ValueError):
    """These hours never add up to so much time."""


@dataclass(frozen=True)
class Hours:
    """`days` 0 Monday to 6 Sunday; `closes` None stands for midnight."""

    zone: ZoneInfo
    days: frozenset[int]
    opens: time
    closes: time | None
    holidays: frozenset[date] = field(default_factory=frozenset)


def add(hours: Hours | None, start: datetime, seconds: float) -> datetime:
    """When so many open seconds after `start` are over. Without hours every second is open. Raises NoHours."""
    if hours is None or seconds <= 0:
        return start + timedelta(seconds=max(seconds, 0))
    left = seconds
    for opened, closed in _spans(hours, start):
        begins = max(opened, start)
        open_for = (closed - begins).total_seconds()
        if open_for <= 0:
            continue
        if left <= open_for:
            return begins + timedelta(seconds=left)
        left -= open_for
    raise NoHours


def between(hours: Hours | None, start: datetime, end: datetime) -> float:
    """How many open seconds lie between two moments; 0 where the end comes first."""
    if end <= start:
        return 0.0
    if hours is None:
        return (end - start).total_seconds()
    total = 0.0
    for opened, closed in _spans(hours, start):
        if opened >= end:
            break
        total += max((min(closed, end) - max(opened, start)).total_seconds(), 0.0)
    return total


def _spans(hours: Hours, start: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The open spans from the local day before `start` on, as moments; at most MOST_DAYS days of them."""
    first = start.astimezone(hours.zone).date() - timedelta(days=1)
    for number in range(MOST_DAYS):
        day = first + timedelta(days=number)
        if day.weekday() in hours.days and day not in hours.holidays:
            yield _moment(day, hours.opens, hours.zone), _closing(day, hours)


def _closing(day: date, hours: Hours) -> datetime:
    if hours.closes is None:
        return _moment(day + timedelta(days=1), time(0), hours.zone)
    return _moment(day, hours.closes, hours.zone)


def _moment(day: date, at: time, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, at, zone).astimezone(UTC)
