"""The Saved views page: what is kept, and the form that keeps one more."""

from __future__ import annotations

from dataclasses import dataclass, field

from console.looks import Look
from console.pages.common import Empty, Flash
from console.pages.confirm import Select


@dataclass(frozen=True, slots=True)
class ViewRow:
    """One view. `words` say what it shows; `broken` why it cannot be opened, and then `url` and `link` are empty.

    `rename_url` and `delete_url` are empty for somebody who may not change it; `error` stands at its name.
    """

    id: str
    name: str
    icon: str
    whose: str
    words: str
    broken: str
    look: Look
    url: str
    link: str
    rename_url: str = ""
    delete_url: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class SaveForm:
    """The form of a new view: `query` is what it keeps, `words` the same for a reader."""

    url: str
    query: str
    words: str
    where: Select
    name: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class ViewsPage:
    """Context name `page` of view/list.html. `form` is None for somebody without a tenant."""

    title: str
    summary: str
    rows: list[ViewRow]
    form: SaveForm | None = None
    empty: Empty | None = None
    flashes: list[Flash] = field(default_factory=list)
