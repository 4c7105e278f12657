"""The Task page: three answers, then scope, ledger, attempts, evidence, worlds, remaining work and next actions."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console.looks import Look
from console.pages.common import (
    Answer,
    Customer,
    EffectRow,
    Flash,
    Link,
    Live,
    Money,
    Person,
    Sla,
    Total,
    Verb,
)
from console.pages.plan import PlanCard


@dataclass(frozen=True, slots=True)
class Scope:
    """Asked, granted, attempted, exceeds; every text may hold `code`, every note may be empty."""

    asked: str
    granted: str
    attempted: str
    exceeds: Look
    asked_note: str = ""
    granted_note: str = ""
    attempted_note: str = ""
    exceeds_note: str = ""
    source: str = ""
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What waits for an approval: the call field by field as it would be sent, who asked, and who may decide.

    `summary` and `context` are what the tool's author wants a reviewer to see. `until` ends the wait.
    """

    fields: list[tuple[str, str]]
    tool: str
    identity: str
    requester: str
    deciders: str
    amount: Money | None = None
    summary: str = ""
    context: list[tuple[str, str]] = field(default_factory=list)
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class LetterTry:
    """One try in the history of a dead letter."""

    number: int
    at: datetime
    words: str
    layer: str


@dataclass(frozen=True, slots=True)
class Letter:
    """The dead letter behind a task: what was wanted, what became of each try, and what may be done next."""

    state: Look
    failure: str
    generation: int
    request: list[tuple[str, str]]
    tries: list[LetterTry]
    completed: list[str]
    owner: str
    next_action: str
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One try: number of limit, when it was dispatched, latency in milliseconds, what came back, what is next.

    `left` is how many tries remain, None hides it. `dispatched_at` None prints "not sent". `next_text` is never
    empty: "none planned" is written out. `next_at` follows it when set.
    """

    tool: str
    number: int
    limit: int
    look: Look
    layer: str
    worker: str
    next_text: str
    dispatched_at: datetime | None = None
    latency_ms: int | None = None
    left: int | None = None
    note: str = ""
    next_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One fact with its source, strength (0 to 5 bars and words) and time; `claim` marks the agent's own words."""

    fact: str
    source: str
    strength: int
    strength_words: str
    at: datetime
    claim: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two facts that contradict each other, and one sentence that says how."""

    sentence: str
    left: EvidenceRow
    right: EvidenceRow


@dataclass(frozen=True, slots=True)
class World:
    """One cell of the unknown card. `look` from WORLD; `pro` and `con` are facts for and against it.

    `proof_label` is "Would prove it", "Ends by itself" or empty; `ruled_out` fades the cell.
    """

    name: str
    look: Look
    pro: list[str] = field(default_factory=list)
    con: list[str] = field(default_factory=list)
    proof_label: str = "Would prove it"
    proof: str = ""
    ruled_out: bool = False


@dataclass(frozen=True, slots=True)
class Worlds:
    """What may have happened to `tool`; `probe` names the one look-up that separates the four cells."""

    tool: str
    probe: str
    cells: list[World]


@dataclass(frozen=True, slots=True)
class RemainingRow:
    """One step that is left, with its look and what it will do or wait for (may hold `code`)."""

    number: int
    step: str
    look: Look
    words: str


@dataclass(frozen=True, slots=True)
class Claim:
    """Who holds the task, since when, until when; `warning` tells its holder that it is about to end."""

    by: Person
    since: datetime
    until: datetime
    left: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """A handover that waits for its receiver's yes until `until`: who offers it to whom, why, and the facts then."""

    state: Look
    title: str
    reason: str
    facts: list[tuple[str, str]]
    until: datetime
    verbs: list[Verb] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Presence:
    """A colleague on this page; `words` is "is deciding" or "is reading"."""

    by: Person
    words: str


@dataclass(frozen=True, slots=True)
class Details:
    """Ids and provenance. `reveal_url` is empty when the reader may not ask to reveal arguments, and `tags_url`
    when they may not change the tags.
    """

    run_id: str
    run_url: str
    action_id: str
    tenant: str
    opened_rule: str
    opened_words: str
    arguments: str = "Shown redacted: declared secret fields are hidden"
    reveal_url: str = ""
    tags: list[str] = field(default_factory=list)
    tags_url: str = ""


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One line of the history, newest first; `rest` is what stands behind "show more"."""

    words: str
    at: datetime
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Comment:
    """A colleague's words, shown as plain text; `rest` is what stands behind "show more"."""

    by: str
    at: datetime
    text: str
    rest: str = ""


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Context name `page` of task/detail.html and task/_body.html.

    `recommended` is the verb that stands under the answers and first in `verbs`; None when there is none, then
    `recommended_sentence` says why. `verbs` come in order: recommended, allowed, blocked. `operation` is the
    flash of the operation under way. `worlds` is set for an unknown write only. `conflicts` may be empty.
    `priority` says why it is urgent, `notes` who gave it to whom, until when it sleeps, how often it was asked again.
    `here_url` is told every few seconds that the reader is here.
    `facts_text` is what "Copy facts" copies. `previous_url` and `next_url` are neighbours in the group or empty.
    """

    number: str
    title: str
    state: Look
    workflow: str
    crumbs: list[Link]
    position: str
    run_url: str
    answers: list[Answer]
    recommended: Verb | None
    recommended_sentence: str
    verbs: list[Verb]
    scope: Scope
    effects: list[EffectRow]
    totals: list[Total]
    attempts: list[AttemptRow]
    evidence: list[EvidenceRow]
    remaining: list[RemainingRow]
    sla: Sla
    customer: Customer
    details: Details
    live: Live
    request: Request | None = None
    letter: Letter | None = None
    plan: PlanCard | None = None
    worlds: Worlds | None = None
    conflicts: list[Conflict] = field(default_factory=list)
    evidence_note: str = "Strongest first"
    warnings: list[str] = field(default_factory=list)
    remaining_note: str = ""
    remaining_none: str = "None. Every step is settled."
    claim: Claim | None = None
    claim_verbs: list[Verb] = field(default_factory=list)
    presence: list[Presence] = field(default_factory=list)
    history: list[HistoryRow] = field(default_factory=list)
    history_count: int = 0
    history_url: str = ""
    comments: list[Comment] = field(default_factory=list)
    comment_verb: Verb | None = None
    comment_draft: str = ""
    facts_text: str = ""
    previous_url: str = ""
    next_url: str = ""
    operation: Flash | None = None
    priority: str = ""
    notes: list[str] = field(default_factory=list)
    flashes: list[Flash] = field(default_factory=list)
    here_url: str = ""
    offer: Offer | None = None

    @property
    def allowed(self) -> int:
        """How many verbs the reader may use now."""
        return sum(verb.allowed for verb in self.verbs)

    @property
    def blocked(self) -> int:
        """How many verbs are shown but blocked."""
        return len(self.verbs) - self.allowed
