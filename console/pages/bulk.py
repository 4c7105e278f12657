"""Bulk operations: the list of them, a selection that is to be frozen, and one operation with its items."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console.looks import Look
from console.pages.common import Empty, Flash, Link, Live, Money, Tab
from console.pages.confirm import Select, TextField


@dataclass(frozen=True, slots=True)
class NewPage:
    """Context name `page` of bulk/new.html. `number` is "14 tasks"; the form posts key and `versions` to `url`.

    `blocked` is why nothing can be frozen, and then the form is left out. `tenants` stands where the selection
    reaches over several and one has to be chosen; `narrower` links to where it can be narrowed. `verbs` are what else
    could be done for the same tasks, `never` what is decided one by one and why.
    """

    title: str
    words: str
    number: str
    does: str
    url: str
    key: str
    button: str
    crumbs: list[Link]
    verbs: list[Tab]
    never: list[tuple[str, str]]
    blocked: str = ""
    tenants: list[Link] = field(default_factory=list)
    narrower: Link | None = None
    facts: list[tuple[str, str]] = field(default_factory=list)
    versions: Select | None = None
    flashes: list[Flash] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Move:
    """A button that moves the operation: a form that posts version and key to `url`, or the sentence against it."""

    label: str
    icon: str
    url: str
    version: str
    key: str
    css: str = ""
    blocked: str = ""


@dataclass(frozen=True, slots=True)
class StartForm:
    """Posts version, key, reason_code, reason and the names of `selects` and `fields`; `blocked` says why not yet.

    Its parts have the names that task/_reason.html draws.
    """

    url: str
    version: str
    key: str
    button: str
    selects: list[Select]
    fields: list[TextField]
    reason: str = ""
    reason_hint: str = ""
    reason_error: str = ""
    reason_required: bool = False
    blocked: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One total of the strip; `icon` may be empty."""

    label: str
    value: str
    note: str = ""
    icon: str = ""


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of the bar, in thousandths of its width; `css` is done, skipped, failed or pending."""

    x: int
    width: int
    css: str


@dataclass(frozen=True, slots=True)
class DryRow:
    """One class of the dry run, with how many items it holds and the commonest sentence."""

    look: Look
    count: int
    words: str
    url: str


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One item: its place, its task, its outcome, and what is known of its call now (`known` may be None)."""

    place: int
    number: str
    url: str
    title: str
    amount: Money | None
    state: Look
    known: Look | None
    words: str
    note: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class OperationPage:
    """Context name `page` of bulk/detail.html and bulk/_body.html. `identity` says the totals as a sum in words.

    `joined` says how many tasks came to the selection since it was frozen. `bar_words` is the bar for who cannot see
    it. `leftovers` leads to a new selection of what was not done.
    """

    title: str
    operation_id: str
    state: Look
    crumbs: list[Link]
    moves: list[Move]
    figures: list[Figure]
    segments: list[Segment]
    bar_words: str
    identity: str
    dry_at: datetime
    dry: list[DryRow]
    how: list[tuple[str, str]]
    by: str
    items: list[ItemRow]
    tabs: list[Tab]
    live: Live
    notice: Flash | None = None
    joined: Link | None = None
    joined_words: str = ""
    start: StartForm | None = None
    next_url: str = ""
    leftovers: Link | None = None
    empty: Empty | None = None
    flashes: list[Flash] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OperationRow:
    """One operation in the list; `counts` is its totals in words."""

    title: str
    url: str
    tenant: str
    words: str
    state: Look
    counts: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class OperationsPage:
    """Context name `page` of bulk/list.html."""

    title: str
    summary: str
    tabs: list[Tab]
    rows: list[OperationRow]
    crumbs: list[Link]
    empty: Empty | None = None
    next_url: str = ""
    flashes: list[Flash] = field(default_factory=list)
