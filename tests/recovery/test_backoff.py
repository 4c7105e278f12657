"""When to try and to look again: never earlier than asked, never past the moment that counts (F031, F108)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.rules.backoff import CAP_SECONDS, next_look_at, retry_delay

T0 = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)


@given(st.integers(1, 60), st.floats(0, 1e6), st.floats(0, 1))
def test_F031_what_the_provider_asks_for_is_never_shortened(attempts: int, asked: float, spread: float) -> None:
    assert retry_delay(attempts, asked, spread) >= asked


@given(st.integers(1, 2000), st.floats(0, 1))
def test_F108_our_own_delay_grows_is_spread_and_bounded(attempts: int, spread: float) -> None:
    assert 0.1 <= retry_delay(attempts, None, spread) <= CAP_SECONDS
    assert retry_delay(attempts, None, spread) <= retry_delay(attempts, None, 1.0)


def planned(looks: int, *, now: float = 0, final: float | None = None, first: float = 5) -> float:
    at = next_look_at(
        now=T0 + timedelta(seconds=now), looks=looks, first_look_seconds=first, uncertain_since=T0,
        final_from=None if final is None else T0 + timedelta(seconds=final),
    )  # fmt: skip
    return (at - T0).total_seconds()


@pytest.mark.parametrize(("looks", "expected"), [(0, 5), (1, 10), (2, 20), (3, 40), (9, 300)])
def test_looks_come_less_and_less_often(looks: int, expected: float) -> None:
    assert planned(looks) == expected


def test_the_first_look_counts_from_the_loss_and_not_from_its_discovery() -> None:
    assert planned(0, now=3) == 5
    assert planned(0, now=60) == 60


def test_a_look_falls_exactly_on_the_moment_from_which_it_counts() -> None:
    assert planned(1, now=20, final=25) == 25
    assert planned(1, now=25, final=25) == 35


@given(st.integers(0, 49), st.integers(0, 10**5), st.integers(0, 10**5), st.integers(0, 600))
def test_no_look_is_planned_past_the_bound_without_one_on_it(
    looks: int, now: float, final: float, first: float
) -> None:
    at = planned(looks, now=now, final=final, first=first)
    assert at >= now - 0.001
    assert not now < final < at - 0.001
