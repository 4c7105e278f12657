"""The Queue page: cause groups, the open group's tasks, tabs and the bar that announces new work."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console.looks import Look
from console.pages.common import Empty, Flash, Link, Live, Money, Person, Sla, Tab, Verb
from console.pages.confirm import Choice


@dataclass(frozen=True, slots=True)
class Row:
    """One task of an open group. `owner` None writes "Unowned"; `owner_note` is "24 min left", "is deciding".

    `claim_why` says why there is no `claim`, `priority` why the task stands where it does. `undeclared` counts writes
    whose amount is not declared. `company` names who is deciding besides the owner.
    """

    number: str
    title: str
    url: str
    changed: Look
    retry: Look
    at_risk: list[Money]
    last_seen_at: datetime
    sla: Sla
    owner: Person | None = None
    owner_note: str = ""
    claim: Verb | None = None
    claim_why: str = ""
    undeclared: int = 0
    priority: str = ""
    company: str = ""
    task_id: str = ""


@dataclass(frozen=True, slots=True)
class ChosenBar:
    """What may be done for the tasks that are ticked: a form that leads to `url` with verb, tenant and their ids."""

    url: str
    tenant: str
    verbs: list[Choice]


@dataclass(frozen=True, slots=True)
class Group:
    """One cause: tenant, workflow, reason code and tool, with what its tasks have in common.

    `key` is safe in an id attribute. `toggle_url` opens or closes it without script. `rows` is empty while
    closed; `more` is how many further tasks stand behind `more_url`. `verb` is set only when all members share
    it, otherwise `url` is offered as "Open". `claim` is there for a cause with one free task, for the key alone;
    `claim_why` says why it is not. `chosen` is there while it is open, for somebody who may do something.
    """

    key: str
    title: str
    url: str
    toggle_url: str
    tenant: str
    reason_code: str
    tool: str
    workflow: str
    changed: Look
    retry: Look
    count: int
    at_risk: list[Money]
    first_seen_at: datetime
    last_seen_at: datetime
    sla: Sla
    owner: Person | None = None
    owner_note: str = ""
    verb: Verb | None = None
    open: bool = False
    rows: list[Row] = field(default_factory=list)
    more: int = 0
    more_url: str = ""
    claim: Verb | None = None
    claim_why: str = ""
    undeclared: int = 0
    priority: str = ""
    company: str = ""
    chosen: ChosenBar | None = None


@dataclass(frozen=True, slots=True)
class News:
    """The bar on top of the table: "4 new tasks in 2 causes"; `url` reloads the list with them."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class ViewPill:
    """A saved view: `icon` says whose it is; the one this list came from is `current`, `unsaved` once they differ.

    `broken` says what of it cannot be opened any more; `url` then leads to where it can be deleted.
    """

    label: str
    url: str
    icon: str
    current: bool = False
    unsaved: bool = False
    broken: str = ""


@dataclass(frozen=True, slots=True)
class SavedBar:
    """Saved views over the list. `save_url` saves `query` over the current one, `save_as_url` leads to a new one.

    `link` is the whole address of this list, to be given to a colleague.
    """

    pills: list[ViewPill]
    query: str
    save_as_url: str
    manage_url: str
    link: str
    save_url: str = ""


@dataclass(frozen=True, slots=True)
class FilterField:
    """One field of the filters: its parameter, its word, what is typed in it and what is offered."""

    name: str
    label: str
    value: str
    offers: list[str] = field(default_factory=list)
    hint: str = ""


@dataclass(frozen=True, slots=True)
class FilterForm:
    """The filters as a form that reads the list anew; `kept` are the parameters that go along."""

    url: str
    fields: list[FilterField]
    kept: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class QueuePage:
    """Context name `page` of task/list.html. `summary` is "37 tasks in 7 causes"; `sums` the money by currency;
    `next_url` leads to the causes that come after these.

    `unreadable` lists ids of records that could not be read; each is shown as a row of its own.
    """

    title: str
    summary: str
    sums: list[Money]
    tabs: list[Tab]
    groups: list[Group]
    live: Live
    sort: str = "Consequence, then SLA left"
    filters: list[Link] = field(default_factory=list)
    news: News | None = None
    empty: Empty | None = None
    flashes: list[Flash] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    undeclared: int = 0
    saved: SavedBar | None = None
    narrowing: FilterForm | None = None
    bulk_url: str = ""
    next_url: str = ""
