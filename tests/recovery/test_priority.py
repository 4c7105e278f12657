"""How urgent a question is, as a table: money, no way back, the customer's deadline, and the words for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recovery.rules import priority
from recovery.rules.priority import Stake

NOW = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("asks", "effect", "over", "irreversible", "rank", "words"),
    [
        (True, "write", True, True, 0, "the requester has to answer"),
        (False, "", False, False, 1, "work stands still"),
        (False, "read", False, False, 1, "work stands still; the call only reads"),
        (False, "write", False, False, 2, "a write below the threshold"),
        (False, "write", True, False, 3, "its amount is above the threshold"),
        (False, "write", False, True, 3, "it cannot be undone"),
        (False, "write", True, True, 3, "its amount is above the threshold and it cannot be undone"),
    ],
)
def test_money_and_no_way_back_come_first(
    asks: bool, effect: str, over: bool, irreversible: bool, rank: int, words: str
) -> None:
    found = priority.of(Stake(asks, effect, over, irreversible))
    assert (found.rank, found.words) == (rank, words)


def test_a_near_deadline_raises_any_question_by_one_and_says_so() -> None:
    for stake in (Stake(True, "", False, False), Stake(False, "write", True, True)):
        before, after = priority.of(stake), priority.raised(priority.of(stake))
        assert after.rank == before.rank + 1
        assert after.words == f"{before.words}; the customer's deadline is near"


@pytest.mark.parametrize(
    ("hours", "near_after"),
    [(None, None), (8, timedelta(hours=6)), (0.5, timedelta(minutes=15)), (0.1, timedelta())],
)
def test_a_deadline_is_near_in_its_last_quarter_or_quarter_hour(
    hours: float | None, near_after: timedelta | None
) -> None:
    deadline = NOW + timedelta(hours=hours) if hours is not None else None
    expected = NOW + near_after if near_after is not None else None
    assert priority.near_from(NOW, deadline) == expected
