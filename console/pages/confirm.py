"""The confirmation of a verb: six steps, as a sheet with script and as a page without."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console.looks import Look
from console.pages.common import Flash, Link


@dataclass(frozen=True, slots=True)
class SentRow:
    """One field of what will be sent. `old` is struck when set; `locked` fields carry the lock and the word."""

    name: str
    value: str
    old: str = ""
    note: str = ""
    locked: bool = False
    changed: bool = False
    mono: bool = True


@dataclass(frozen=True, slots=True)
class FactRow:
    """One fact relied on, with its age; `mark` is the New or Changed look when it moved since the page was read."""

    words: str
    at: datetime
    mark: Look | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One option of a select."""

    value: str
    label: str
    selected: bool = False


@dataclass(frozen=True, slots=True)
class Select:
    """A select of the reason step; `error` stands at the field."""

    name: str
    label: str
    choices: list[Choice]
    error: str = ""


@dataclass(frozen=True, slots=True)
class TextField:
    """A further one-line field of the reason step (a reference, a budget); `error` stands at the field."""

    name: str
    label: str
    value: str = ""
    hint: str = ""
    error: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class Alternative:
    """A second, plain submit button of the same form: its name and value are posted with the rest."""

    label: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class ConfirmPage:
    """Context name `page` of task/confirm.html.

    `worst_css` is "idle" when nothing can change and "warn" when something is lost. `agree` is a sentence,
    `chain` its looks in order. The form posts to `url`: evidence_hash, version, key, reason_code, reason, and
    the names of `selects`, `fields` and the alternative that was pressed. `button` names verb and moment.
    `reason` is the typed text kept on a second showing. `blocked` is the sentence that stands in the way now: the
    button stays, cannot be pressed, and says it. `company` says who else has a sheet of this task open; `here_url` is
    told that the reader has this one.
    """

    verb: str
    title: str
    subtitle: str
    url: str
    back_url: str
    crumbs: list[Link]
    sent: list[SentRow]
    facts: list[FactRow]
    worst: str
    agree: str
    selects: list[Select]
    button: str
    icon: str
    key: str
    evidence_hash: str
    version: str
    worst_css: str = "idle"
    sent_intro: str = ""
    agree_rule: str = ""
    chain: list[Look] = field(default_factory=list)
    chain_note: str = ""
    fields: list[TextField] = field(default_factory=list)
    reason: str = ""
    reason_hint: str = "Your words go to the audit trail, not to the customer."
    reason_error: str = ""
    reason_required: bool = True
    key_note: str = "A second click returns the same single result."
    alternatives: list[Alternative] = field(default_factory=list)
    css: str = ""
    blocked: str = ""
    flash: Flash | None = None
    here_url: str = ""
    company: list[str] = field(default_factory=list)
