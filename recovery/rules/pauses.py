"""When a task's clock stands still because nobody of the team could go on, and when an approval is asked for again.

Pure. Which of the waits stop the clock is the workflow's or the tenant's to say; without a word none does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

PAUSES = ("requester", "provider", "snoozed")
WORDS = {
    "requester": "waits for the requester",
    "provider": "waits for the provider, who is still at it",
    "snoozed": "snoozed",
}


@dataclass(frozen=True)
class Waiting:
    """What a task waits for: its reason, the state of its call (empty without one), and whether it was snoozed."""

    reason_code: str
    action_state: str
    snoozed: bool


def of(waiting: Waiting, declared: Sequence[str]) -> str:
    """Which declared pause holds now, the first of PAUSES; empty while the clock runs."""
    holds = {
        "requester": waiting.reason_code == "user_input_required",
        "provider": waiting.action_state == "processing",
        "snoozed": waiting.snoozed,
    }
    return next((name for name in PAUSES if name in declared and holds[name]), "")


def remind_at(asked_at: datetime, until: datetime, shares: Sequence[float], sent: int) -> datetime | None:
    """When to ask again for an approval that was asked for `sent` more times already; None once all were sent."""
    if sent >= len(shares):
        return None
    return asked_at + (until - asked_at) * sorted(shares)[sent]
