"""Outage windows: moments that lie close together are one window, a longer quiet between them begins another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, TypeVar

QUIET = timedelta(minutes=15)

T = TypeVar("T")


@dataclass(frozen=True)
class Bucket(Generic[T]):
    """What happened between two moments, and the rows that say it."""

    first: datetime
    last: datetime
    row: T


@dataclass
class Window(Generic[T]):
    """Neighbouring buckets; `first` and `last` are the moments of its oldest and newest event."""

    first: datetime
    last: datetime
    rows: list[T] = field(default_factory=list)


def windows(buckets: Iterable[Bucket[T]], quiet: timedelta = QUIET) -> list[Window[T]]:
    """The buckets of one source as windows, the oldest first; between two of them lie more than `quiet`."""
    found: list[Window[T]] = []
    for bucket in sorted(buckets, key=lambda one: (one.first, one.last)):
        if not found or bucket.first - found[-1].last > quiet:
            found.append(Window(bucket.first, bucket.last))
        found[-1].last = max(found[-1].last, bucket.last)
        found[-1].rows.append(bucket.row)
    return found
