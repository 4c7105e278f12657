"""Outage windows: what lies close together is one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from console.windows import QUIET, Bucket, windows

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def bucket(start: float, end: float | None = None) -> Bucket[float]:
    """From minute to minute after noon; its row is its first minute."""
    last = start if end is None else end
    return Bucket(NOON + timedelta(minutes=start), NOON + timedelta(minutes=last), start)


@pytest.mark.parametrize(
    ("minutes", "found"),
    [
        ([], []),
        ([3], [[3]]),
        ([0, 5, 10], [[0, 5, 10]]),
        ([0, 15], [[0, 15]]),
        ([0, 15.1], [[0], [15.1]]),
        ([40, 0, 12, 60, 20], [[0, 12, 20], [40], [60]]),
    ],
    ids=["none", "one", "close", "exactly as quiet", "quieter", "in any order"],
)
def test_a_longer_quiet_begins_another_window(minutes: list[float], found: list[list[float]]) -> None:
    assert [window.rows for window in windows(bucket(minute) for minute in minutes)] == found


def test_a_long_bucket_reaches_as_far_as_it_lasts_and_a_short_one_inside_it_ends_nothing() -> None:
    made = windows([bucket(0, 30), bucket(5), bucket(40)])
    assert [window.rows for window in made] == [[0, 5, 40]]
    assert (made[0].first, made[0].last) == (NOON, NOON + timedelta(minutes=40))


def test_the_quiet_is_a_bound_that_can_be_chosen() -> None:
    assert len(windows([bucket(0), bucket(5)], timedelta(minutes=4))) == 2
    assert timedelta(minutes=15) == QUIET
