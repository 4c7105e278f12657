"""Which wait stops a task's clock, and when an approval is asked for again, as tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recovery.rules import pauses
from recovery.rules.pauses import Waiting

NOW = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
ALL = ["snoozed", "provider", "requester"]


@pytest.mark.parametrize(
    ("waiting", "declared", "pause"),
    [
        (Waiting("user_input_required", "held", False), ALL, "requester"),
        (Waiting("user_input_required", "held", False), ["provider"], ""),
        (Waiting("external_outcome_unknown", "processing", False), ALL, "provider"),
        (Waiting("external_outcome_unknown", "unknown", False), ALL, ""),
        (Waiting("external_outcome_unknown", "unknown", True), ALL, "snoozed"),
        (Waiting("external_outcome_unknown", "unknown", True), [], ""),
        (Waiting("user_input_required", "processing", True), ALL, "requester"),
    ],
)
def test_a_clock_stops_only_for_a_declared_wait(waiting: Waiting, declared: list[str], pause: str) -> None:
    assert pauses.of(waiting, declared) == pause


def test_reminders_come_at_their_shares_of_the_time_in_order_and_end() -> None:
    until = NOW + timedelta(hours=10)
    asked = [pauses.remind_at(NOW, until, (0.8, 0.5), sent) for sent in range(3)]
    assert asked == [NOW + timedelta(hours=5), NOW + timedelta(hours=8), None]
    assert pauses.remind_at(NOW, until, (), 0) is None
