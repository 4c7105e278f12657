"""The Unknown writes page: writes whose outcome nobody knows, by what they went through and when that began."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console.looks import Look
from console.pages.common import Empty, Flash, Live, Money, Verb
from console.pages.queue import News
from console.waterfall import Waterfall


@dataclass(frozen=True, slots=True)
class WriteRow:
    """One unknown write of an open window. `looked` says what the last look-up found; empty before one was made."""

    title: str
    url: str
    number: str
    step: str
    since: datetime
    state: Look
    amount: Money | None = None
    looked: str = ""
    final_at: datetime | None = None
    owner: str = ""


@dataclass(frozen=True, slots=True)
class WindowRow:
    """The unknown writes of one connector that began close together.

    `final` says from when a look-up that finds nothing would prove it, with `final_words` beside its icon. `verb` is
    the one action for all of them, filled for the most urgent row only; `hint` says why there is none. `rows` are set
    for the open window; `more_url` leads to its next ones.
    """

    key: str
    title: str
    tools: str
    tenant: str
    first: datetime
    last: datetime
    count: int
    at_risk: list[Money]
    undeclared: int
    oldest: datetime
    final: Look
    health: Look
    toggle_url: str
    health_words: str = ""
    owners: str = ""
    verb: Verb | None = None
    hint: str = ""
    open: bool = False
    rows: list[WriteRow] = field(default_factory=list)
    more_url: str = ""


@dataclass(frozen=True, slots=True)
class UnknownPage:
    """Context name `page` of unknown/list.html. `cut` is set where more windows exist than are shown."""

    title: str
    summary: str
    sums: list[Money]
    undeclared: int
    live: Live
    windows: list[WindowRow]
    chart: Waterfall | None = None
    news: News | None = None
    cut: str = ""
    empty: Empty | None = None
    flashes: list[Flash] = field(default_factory=list)
