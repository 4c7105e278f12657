"""Working time: weekends, holidays, nights, and the days on which the clocks change."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.rules import hours
from recovery.rules.hours import Hours

BERLIN, SYDNEY, NEW_YORK = (ZoneInfo(name) for name in ("Europe/Berlin", "Australia/Sydney", "America/New_York"))
WEEK = frozenset(range(5))
OFFICE = Hours(BERLIN, WEEK, time(9), time(17))
HOUR = 3600


def at(text: str, zone: ZoneInfo = BERLIN) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone)


@pytest.mark.parametrize(
    ("start", "worked", "due"),
    [
        ("2026-03-11 10:00", 2, "2026-03-11 12:00"),
        ("2026-03-11 16:00", 2, "2026-03-12 10:00"),
        ("2026-03-13 16:30", 1, "2026-03-16 09:30"),  # over a weekend
        ("2026-03-14 12:00", 1, "2026-03-16 10:00"),  # on a Saturday
        ("2026-03-11 03:00", 8, "2026-03-11 17:00"),  # before opening, to closing time exactly
        ("2026-03-11 23:00", 16, "2026-03-13 17:00"),
    ],
)
def test_time_is_counted_while_the_team_works(start: str, worked: float, due: str) -> None:
    assert hours.add(OFFICE, at(start), worked * HOUR) == at(due)


def test_holidays_do_not_count() -> None:
    easter = Hours(BERLIN, WEEK, time(9), time(17), frozenset({date(2026, 4, 3), date(2026, 4, 6)}))
    assert hours.add(easter, at("2026-04-02 16:00"), 2 * HOUR) == at("2026-04-07 10:00")
    assert hours.between(easter, at("2026-04-02 16:00"), at("2026-04-07 10:00")) == 2 * HOUR


def test_without_hours_every_second_counts() -> None:
    start = at("2026-03-14 23:30")
    assert hours.add(None, start, 90) == start + timedelta(seconds=90)
    assert hours.between(None, start, start + timedelta(seconds=90)) == 90


@pytest.mark.parametrize(
    ("day", "length"),
    [("2026-03-28", 24), ("2026-03-29", 23), ("2026-10-25", 25)],
)
def test_a_day_on_which_the_clocks_change_is_as_long_as_it_is(day: str, length: int) -> None:
    always = Hours(BERLIN, frozenset(range(7)), time(0), None)
    start = at(f"{day} 00:00").astimezone(UTC)
    tomorrow = (at(f"{day} 12:00") + timedelta(days=1)).replace(hour=0).astimezone(UTC)
    assert hours.between(always, start, tomorrow) == length * HOUR
    assert hours.add(always, start, length * HOUR) == tomorrow


def test_nine_stays_nine_on_the_wall_when_the_clocks_change() -> None:
    due = hours.add(OFFICE, at("2026-03-27 16:00"), 2 * HOUR)
    assert due == at("2026-03-30 10:00")
    assert due.astimezone(UTC).hour == 8


def test_hours_that_the_clock_jumps_over_are_none() -> None:
    night = Hours(BERLIN, frozenset({6}), time(2), time(3))
    assert hours.between(night, at("2026-03-29 00:00"), at("2026-03-29 12:00")) == 0
    assert hours.add(night, at("2026-03-28 12:00"), HOUR) == at("2026-04-05 03:00")


def test_hours_that_never_come_end_in_an_error_and_not_in_a_loop() -> None:
    with pytest.raises(hours.NoHours):
        hours.add(Hours(BERLIN, frozenset(), time(9), time(17)), at("2026-03-11 10:00"), HOUR)


ZONES = st.sampled_from([BERLIN, SYDNEY, NEW_YORK, ZoneInfo("UTC"), ZoneInfo("Asia/Kolkata")])
MOMENTS = st.integers(0, 3 * 365 * 86400).map(
    lambda seconds: datetime(2025, 1, 1, tzinfo=UTC) + timedelta(0, seconds)
)
TIMES = st.tuples(st.integers(0, 22), st.integers(1, 23)).map(lambda pair: (min(pair), max(min(pair) + 1, max(pair))))


@st.composite
def offices(draw: st.DrawFn) -> Hours:
    opens, closes = draw(TIMES)
    days = frozenset(draw(st.sets(st.integers(0, 6), min_size=1)))
    free = frozenset(draw(st.sets(st.dates(date(2025, 1, 1), date(2027, 12, 31)), max_size=5)))
    return Hours(draw(ZONES), days, time(opens), None if closes == 23 else time(closes), free)


@given(offices(), MOMENTS, st.integers(1, 30 * 86400))
def test_what_was_added_is_what_lies_between(office: Hours, start: datetime, seconds: int) -> None:
    due = hours.add(office, start, seconds)
    assert due >= start + timedelta(seconds=seconds)
    assert abs(hours.between(office, start, due) - seconds) < 1e-3


@given(offices(), MOMENTS, st.integers(1, 86400), st.integers(1, 86400))
def test_time_adds_up(office: Hours, start: datetime, first: int, second: int) -> None:
    whole = hours.add(office, start, first + second)
    step = hours.add(office, hours.add(office, start, first), second)
    assert abs((whole - step).total_seconds()) < 1e-3


@given(offices(), MOMENTS, st.integers(0, 20 * 86400), st.integers(0, 20 * 86400))
def test_no_working_time_is_longer_than_the_time_itself(
    office: Hours, start: datetime, first: int, second: int
) -> None:
    middle, end = start + timedelta(seconds=first), start + timedelta(seconds=first + second)
    whole = hours.between(office, start, end)
    assert 0 <= whole <= first + second
    parts = hours.between(office, start, middle) + hours.between(office, middle, end)
    assert abs(whole - parts) < 1e-3
