"""The Stops page: what is kept from leaving now, a form to set one, and what was lifted before."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console.looks import Look
from console.pages.common import Empty, Flash
from console.pages.confirm import Select


@dataclass(frozen=True, slots=True)
class StopRow:
    """One switch. `what` may hold `code`, `url` leads to the run that it names or is empty.

    `lift_url` is empty where the reader may not lift it or where it has ended; `lift_error` stands at its field.
    `ended_by` and `ended_words` say who lifted it and why.
    """

    stop_id: str
    state: Look
    what: str
    mode: str
    reason: str
    by: str
    tenant: str
    set_at: datetime
    url: str = ""
    until: datetime | None = None
    lift_url: str = ""
    lift_error: str = ""
    lift_reason: str = ""
    ended_at: datetime | None = None
    ended_by: str = ""
    ended_words: str = ""


@dataclass(frozen=True, slots=True)
class SetForm:
    """The form that sets one: its selects, the typed texts, and an error by field; `names` are offered for `name`."""

    url: str
    selects: list[Select]
    name: str = ""
    until: str = ""
    reason: str = ""
    names: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StopsPage:
    """Context name `page` of stop/list.html. `form` is None for somebody who may set none; `form_words` says so."""

    title: str
    summary: str
    standing: list[StopRow]
    past: list[StopRow]
    empty: Empty | None = None
    form: SetForm | None = None
    form_words: str = ""
    flashes: list[Flash] = field(default_factory=list)
