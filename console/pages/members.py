"""Settings, members: who has which role, when they were last here, and what each role may do."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console.looks import Look
from console.pages.common import Flash, Tab


@dataclass(frozen=True, slots=True)
class MemberRow:
    """One person in one tenant. `seen_at` is their last sign-in; `factor` says whether a second factor is set up."""

    name: str
    email: str
    tenant: str
    roles: str
    state: Look
    factor: Look
    seen_at: datetime | None = None
    you: bool = False


@dataclass(frozen=True, slots=True)
class AbilityRow:
    """One ability in words, and for each role whether it includes it."""

    words: str
    held: list[Look]


@dataclass(frozen=True, slots=True)
class MembersPage:
    """Context name `page` of settings/members.html. `roles` names the columns of `abilities`."""

    title: str
    summary: str
    tabs: list[Tab]
    rows: list[MemberRow]
    roles: list[str]
    abilities: list[AbilityRow]
    next_url: str = ""
    flashes: list[Flash] = field(default_factory=list)
