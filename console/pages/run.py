"""The Run pages: the list, and one run with its answers, waterfall, budgets, state path, effects and events."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console.looks import Look
from console.pages.common import Customer, EffectRow, Empty, Flash, Link, Live, Tab, Total, Verb
from console.pages.plan import PlanCard
from console.waterfall import Waterfall


@dataclass(frozen=True, slots=True)
class Fact:
    """One cell of the answer strip. `alarm` is a second part in `alarm_css` ("1 unknown, 120.00 EUR", "unk")."""

    label: str
    value: str
    mono: bool = False
    alarm: str = ""
    alarm_css: str = ""
    look: Look | None = None
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Budget:
    """One budget: numbers for the bar, `text` as printed ("18,204 / 40,000"); `fired_at` marks the one that fired."""

    name: str
    used: int
    limit: int
    text: str
    fired_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PathStep:
    """One state passed: its wire name, when it was entered and how many seconds were spent there.

    Nothing is spent in a `final` one.
    """

    state: str
    look: Look
    entered_at: datetime
    seconds: float
    current: bool = False
    final: bool = False


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event; `actor` from ACTOR, `before` and `after` are states on the wire or empty, `detail` may hold code.

    `rest` is what stands behind "show more".
    """

    event_id: str
    seq: int
    at: datetime
    actor: Look
    detail: str
    actor_name: str = ""
    before: str = ""
    after: str = ""
    kind: str = "evidence"
    rest: str = ""


@dataclass(frozen=True, slots=True)
class RunPage:
    """Context name `page` of run/detail.html and run/_body.html.

    `budgets` come with the one that fired first. `moves` are the verbs that its task offers to the reader now, and
    `moves_words` says in a sentence who moves it. `verbs` are those of the run itself. `operation` says what it
    waits for. `plan` is set for a run that is or was being taken back.
    """

    run_id: str
    title: str
    state: Look
    crumbs: list[Link]
    facts: list[Fact]
    waterfall: Waterfall
    budgets: list[Budget]
    path: list[PathStep]
    effects: list[EffectRow]
    totals: list[Total]
    events: list[EventRow]
    live: Live
    customer: Customer | None = None
    plan: PlanCard | None = None
    links: list[Link] = field(default_factory=list)
    verbs: list[Verb] = field(default_factory=list)
    moves: list[Link] = field(default_factory=list)
    moves_words: str = "This state is final."
    event_tabs: list[Tab] = field(default_factory=list)
    raw_url: str = ""
    bundle_url: str = ""
    plan_url: str = ""
    more_events_url: str = ""
    operation: Flash | None = None
    flashes: list[Flash] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run in the list. `effects` is text ("1 proven"), `unknown` the violet part or empty; `delayed` a badge."""

    run_id: str
    title: str
    url: str
    tenant: str
    workflow: str
    state: Look
    effects: str
    started_at: datetime
    changed_at: datetime
    outcome: str = ""
    reason_code: str = ""
    unknown: str = ""
    delayed: bool = False


@dataclass(frozen=True, slots=True)
class RunListPage:
    """Context name `page` of run/list.html. `next_url` leads to older runs or is empty.

    `find_url` is the address of the look-up and `find` what was looked for; `find_kept` are its hidden fields.
    """

    title: str
    summary: str
    tabs: list[Tab]
    rows: list[RunRow]
    live: Live
    sort: str = "Newest first"
    next_url: str = ""
    empty: Empty | None = None
    flashes: list[Flash] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    find_url: str = ""
    find: str = ""
    find_kept: list[tuple[str, str]] = field(default_factory=list)
