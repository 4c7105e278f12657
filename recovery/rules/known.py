"""Everything recorded about one action, as the rules get it: contract, tries, what was learned. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from steadyhand.manifest import Tool

from recovery.rules.evidence import Goal, Undo


@dataclass(frozen=True)
class Try:
    """One attempt: how it ended (`observed` None while it is under way), and when it was over for us.

    `sent_at`: when it was permitted. `generation`: counts the keys of the action, so that tries with the same number
    went out under the same key.
    """

    number: int
    observed: str | None
    ended_at: datetime | None
    sent_at: datetime | None = None
    generation: int = 1


@dataclass(frozen=True)
class Fact:
    """One piece of evidence: what it says, after which attempt, and how many effects it counted."""

    kind: str
    verdict: str
    after_attempt: int
    started_at: datetime
    count: int | None = None


@dataclass(frozen=True)
class Known:
    """Everything recorded about one action that bears on what may happen next.

    `ends_at`: when the run's time is over; a job that was accepted is waited for until then. `undo`: how far the undo
    of this effect has come. `undo_in_time`: whether the window for undoing it is still open. `demoted`: the look-up's
    connector did not keep its bounds, so `tool` is without them and no verdict that rested on them counts in full.
    """

    tool: Tool
    connector_kind: str | None
    tries: tuple[Try, ...]
    facts: tuple[Fact, ...]
    goal: Goal
    looks_made: int
    due_at: datetime | None
    first_dispatched_at: datetime | None
    max_attempts: int
    budget_left: bool
    deadline_at: datetime | None
    next_due_at: datetime | None
    over_threshold: bool
    gate_open: bool
    never_again: bool
    ends_at: datetime | None = None
    undo: Undo = "none"
    undo_in_time: bool = True
    demoted: bool = False
