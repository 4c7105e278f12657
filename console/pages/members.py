"""Settings, members: who has which role, when they were last here, and what each role may do."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console.looks import Look
from console.pages.common import Flash, Link, Tab
from console.pages.confirm import Choice


@dataclass(frozen=True, slots=True)
class MemberRow:
    """One person in one tenant. `seen_at` is their last sign-in; `factor` says whether a second factor is set up.

    `change_url` is empty for who may not change these roles.
    """

    name: str
    email: str
    tenant: str
    roles: str
    state: Look
    factor: Look
    seen_at: datetime | None = None
    you: bool = False
    change_url: str = ""


@dataclass(frozen=True, slots=True)
class AbilityRow:
    """One ability in words, and for each role whether it includes it."""

    words: str
    held: list[Look]


@dataclass(frozen=True, slots=True)
class WaitingChange:
    """A change that waits for a second admin. `answer_url` is empty where the reader is not one; `fixed` says why."""

    person: str
    tenant: str
    before: str
    after: str
    by: str
    reason: str
    asked_at: datetime
    until: datetime
    answer_url: str = ""
    fixed: str = ""


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One ability before and after a change."""

    words: str
    before: Look
    after: Look
    changed: bool


@dataclass(frozen=True, slots=True)
class RolesPage:
    """Context name `page` of settings/roles.html. `chosen`: roles were chosen, and `rows` say what they change.

    `agree` says who has to agree, `blocked` why it cannot be done, `error` what was wrong with what was sent.
    """

    title: str
    subtitle: str
    crumbs: list[Link]
    tenant: str
    show_url: str
    url: str
    now: str
    choices: list[Choice]
    chosen: bool = False
    then: str = ""
    roles: list[str] = field(default_factory=list)
    rows: list[ChangeRow] = field(default_factory=list)
    agree: str = ""
    button: str = ""
    blocked: str = ""
    key: str = ""
    before: str = ""
    reason: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class MembersPage:
    """Context name `page` of settings/members.html. `roles` names the columns of `abilities`."""

    title: str
    summary: str
    tabs: list[Tab]
    rows: list[MemberRow]
    roles: list[str]
    abilities: list[AbilityRow]
    waiting: list[WaitingChange] = field(default_factory=list)
    next_url: str = ""
    flashes: list[Flash] = field(default_factory=list)
