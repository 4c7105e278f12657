"""How urgent a question is, from what it may cost, and why, in words (issue: priority from consequence). Pure.

The queue sorts by the rank first and by the time left second.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

NEAR_SHARE = 4
SHORTEST_NEAR = timedelta(minutes=15)
NEAR_WORDS = "the customer's deadline is near"


@dataclass(frozen=True)
class Stake:
    """What hangs on the answer.

    asks_requester    whether only the requester can answer.
    effect            of the call in question: read, write, or empty for a question about the run itself.
    over_threshold    whether it moves more than one person may decide.
    """

    asks_requester: bool
    effect: str
    over_threshold: bool
    irreversible: bool


@dataclass(frozen=True)
class Priority:
    """`rank` 0 to 3, one more once the customer's deadline is near; `words` say why."""

    rank: int
    words: str


def of(stake: Stake) -> Priority:
    """3 over the threshold or no way back, 2 another write, 1 work that stands still, 0 the requester's turn."""
    if stake.asks_requester:
        return Priority(0, "the requester has to answer")
    if stake.effect == "read":
        return Priority(1, "work stands still; the call only reads")
    if stake.effect != "write":
        return Priority(1, "work stands still")
    if stake.over_threshold and stake.irreversible:
        return Priority(3, "its amount is above the threshold and it cannot be undone")
    if stake.over_threshold:
        return Priority(3, "its amount is above the threshold")
    if stake.irreversible:
        return Priority(3, "it cannot be undone")
    return Priority(2, "a write below the threshold")


def raised(priority: Priority) -> Priority:
    """The same question shortly before the customer's deadline."""
    return Priority(priority.rank + 1, f"{priority.words}; {NEAR_WORDS}")


def near_from(opened_at: datetime, deadline_at: datetime | None) -> datetime | None:
    """From when on the customer's deadline counts as near: the last quarter of the time, a quarter hour at least."""
    if deadline_at is None:
        return None
    margin = max((deadline_at - opened_at) / NEAR_SHARE, SHORTEST_NEAR)
    return max(opened_at, deadline_at - margin)
