"""The search page: what was found, by kind, and which forms of text are understood."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console.looks import Look
from console.pages.common import Flash, Piece


@dataclass(frozen=True, slots=True)
class FoundRow:
    """One thing that was found. `why` says by what, `detail` is the text that held it, in pieces as the title is."""

    url: str
    title: list[Piece]
    state: Look
    tenant: str
    why: str
    at: datetime
    detail: list[Piece] = field(default_factory=list)
    note: str = ""


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """All that was found of one kind; `more` says that there is more than is shown, or is empty."""

    kind: str
    name: str
    count: str
    rows: list[FoundRow]
    more: str = ""
    unreadable: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Form:
    """A form of text that a search understands, with an example."""

    name: str
    example: str
    words: str


@dataclass(frozen=True, slots=True)
class SearchPage:
    """Context name `page` of search/page.html. `forms` are shown while there is nothing else to show."""

    title: str
    summary: str
    url: str
    sought: str = ""
    groups: list[FoundGroup] = field(default_factory=list)
    kept: list[tuple[str, str]] = field(default_factory=list)
    none: str = ""
    forms: list[Form] = field(default_factory=list)
    flashes: list[Flash] = field(default_factory=list)
