"""The Dead letters page: every call that used all its tries, open or ended, with its owner and what may be done."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console.looks import Look
from console.pages.common import Empty, Flash, Link, Tab


@dataclass(frozen=True, slots=True)
class LetterRow:
    """One letter. `task` leads to its open task or is None, `run_url` to its run; `next_action` is never empty."""

    state: Look
    step: str
    tool: str
    failure: str
    generation: int
    tries: int
    owner: str
    next_action: str
    tenant: str
    workflow: str
    recorded_at: datetime
    run_url: str
    task: Link | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LettersPage:
    """Context name `page` of letter/list.html. `next_url` leads to older letters or is empty."""

    title: str
    summary: str
    tabs: list[Tab]
    rows: list[LetterRow]
    next_url: str = ""
    empty: Empty | None = None
    flashes: list[Flash] = field(default_factory=list)
