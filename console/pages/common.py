"""Parts that several pages share: money, people, verbs, flashes, live regions and the frame around every page."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console.looks import Look


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in minor units (cents) with its ISO 4217 code."""

    minor: int
    currency: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a text; `hit` where it is what was looked for."""

    text: str
    hit: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A link with its word; `icon` is a lucide name or empty, `title` the whole text where the label is cut."""

    label: str
    url: str
    icon: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class RailItem:
    """One entry of the rail. `count` is already capped text or empty; `kind` is "", "unk" or "bad".

    `key` opens it after G.
    """

    label: str
    icon: str
    url: str
    count: str = ""
    kind: str = ""
    current: bool = False
    key: str = ""


@dataclass(frozen=True, slots=True)
class TenantChoice:
    """One entry of the tenant switcher; `name` also chooses the tenant mark, empty for all of a person's tenants."""

    label: str
    url: str
    name: str = ""
    current: bool = False


@dataclass(frozen=True, slots=True)
class Account:
    """The signed-in person at the foot of the rail; both addresses are links or forms that exist."""

    name: str
    role: str
    logout_url: str
    account_url: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the tour: the part of the page (`data-part`) that it stands beside, and what it says."""

    part: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything around the page. An empty `search_url` hides the search box, an empty `rehearsal` its banner.

    `search_tenant` is the slug that a search stays in, empty for all of the person's tenants. `tour` is empty for
    whoever has ended it.
    """

    rail: list[RailItem]
    tenants: list[TenantChoice]
    account: Account
    home_url: str = "/"
    search_url: str = ""
    search_tenant: str = ""
    help_url: str = ""
    tour: list[Step] = field(default_factory=list)
    tour_url: str = ""
    rehearsal: str = ""

    @property
    def tenant(self) -> TenantChoice | None:
        """The choice in force, or None when the person belongs to no tenant."""
        return next((choice for choice in self.tenants if choice.current), None)


@dataclass(frozen=True, slots=True)
class Flash:
    """What happened (`title`) and what that means for the reader (`text`, may hold `code`); `look` from NOTICE.

    `alert` marks errors, which are read out at once. `focus` puts the focus on it when the page opens.
    `at` is shown exactly after the text.
    """

    look: Look
    title: str
    text: str = ""
    at: datetime | None = None
    action: Link | None = None
    alert: bool = False
    focus: bool = False


@dataclass(frozen=True, slots=True)
class Empty:
    """An empty list: what was looked for, when it was checked, and one useful link."""

    title: str
    text: str
    action: Link | None = None


@dataclass(frozen=True, slots=True)
class Live:
    """A region that polls `url` every `seconds` with If-None-Match `etag`; the answer replaces the region."""

    url: str
    etag: str
    checked_at: datetime
    seconds: int = 5


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab or a filter pill. `count` is capped text ("1000+"); `kind` is "bad" only for a breaching count."""

    label: str
    url: str
    count: str = ""
    current: bool = False
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Person:
    """A person beside a task: `you` writes "You", `deciding` turns the ring amber."""

    name: str
    you: bool = False
    deciding: bool = False


@dataclass(frozen=True, slots=True)
class Sla:
    """The clock of a task: opened, due; the ring shows the share that is left, while it is `running`.

    `pause` says why it stands still; empty while it does not.
    """

    opened_at: datetime
    due_at: datetime
    note: str = ""
    tier: str = ""
    running: bool = True
    pause: str = ""


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb as a button.

    method  "get" links to the confirmation page at `url`, "link" to any other page; "post" sends the form at once
            (claim, release).
    rule    rule id ("9e"), may be empty; `sentence` is the one sentence from policy, starting "Blocked:" when
            `allowed` is False.
    note    short text at the right ("1 of 5 checks used"); `badge` a look in its place ("Second person").
    css     "" or "danger"; the filled button follows from `recommended`.
    evidence_hash, version, key  are posted as hidden inputs when `method` is "post".
    """

    name: str
    label: str
    icon: str
    url: str
    sentence: str
    allowed: bool = True
    recommended: bool = False
    method: str = "get"
    rule: str = ""
    note: str = ""
    badge: Look | None = None
    key_hint: str = ""
    css: str = ""
    evidence_hash: str = ""
    version: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One of the three answers: the question, the answer in `look.word`, facts (may hold `code`), the rule id."""

    question: str
    look: Look
    facts: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class EffectRow:
    """One row of the effects ledger.

    `words` says what it is and whether it can be taken back. `external_id` empty prints `external_note`.
    `amount` None prints `amount_note`, or "none". `proof` is what proves it; `proof_note` and `proof_at` follow
    in grey.
    """

    step: str
    look: Look
    words: str
    proof: str
    external_id: str = ""
    external_note: str = "none"
    amount: Money | None = None
    amount_note: str = ""
    proof_note: str = ""
    proof_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Total:
    """One sum under the ledger, by currency; `css` "unk" for the unknown sum, else empty.

    `undeclared` is how many of its writes have a tool that declares no amount.
    """

    label: str
    sums: list[Money] = field(default_factory=list)
    css: str = ""
    undeclared: int = 0


@dataclass(frozen=True, slots=True)
class Customer:
    """What the customer was told, word for word, and whether the ledger agrees (a look)."""

    text: str
    agrees: Look
