"""The help: what the words mean, the rules by their ids, and the tour of the queue."""

from __future__ import annotations

from dataclasses import dataclass, field

from console.pages.common import Flash, Link


@dataclass(frozen=True, slots=True)
class Entry:
    """One word or rule with its short answer (may hold `code`) and its page."""

    name: str
    short: str
    url: str


@dataclass(frozen=True, slots=True)
class HelpPage:
    """Context name `page` of help/index.html. `tour_url` takes the POST that starts the tour again."""

    title: str
    entries: list[Entry]
    rules: list[Entry]
    tour_url: str
    flashes: list[Flash] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TopicPage:
    """Context name `page` of help/topic.html: paragraphs (may hold `code`) and where to read on."""

    title: str
    crumbs: list[Link]
    paragraphs: list[str]
    see: list[Link] = field(default_factory=list)
