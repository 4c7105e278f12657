"""The link to a requester as its maker sees it, and the page behind it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from console.pages.common import Link


@dataclass(frozen=True, slots=True)
class LinkPage:
    """Context name `page` of task/link.html; `address` is shown this once, `mailed` says what became of the mail."""

    crumbs: list[Link]
    number: str
    back_url: str
    address: str
    label: str
    until: datetime | None
    mailed: str


@dataclass(frozen=True, slots=True)
class AskedPage:
    """Context name `page` of answer/form.html: one field. `choices` are (value, word); empty for typed answers.

    `about` is the tool's title, empty where its contract has none.
    """

    by: str
    about: str
    label: str
    hint: str
    choices: list[tuple[str, str]]
    longest: int
    long: bool
    numeric: bool
    typed: str = ""
    error: str = ""
