"""The Circuits page: which dependencies are given a rest, why and until when, and the form that holds one open."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console.looks import Look
from console.pages.common import Empty, Flash
from console.pages.confirm import Select


@dataclass(frozen=True, slots=True)
class CircuitRow:
    """One circuit. `what` may hold `code`; `cause` is why it stands so, `by` who holds it open or let it go.

    `counted` says what was counted, `waiting` how many calls it keeps back. `release_url` is empty where it is not
    held or the reader may not release it, and `fixed` says which; `error` and `reason` are what its form held when it
    came back.
    """

    circuit_id: str
    state: Look
    what: str
    tenant: str
    cause: str
    counted: str
    waiting: str
    since: datetime
    by: str = ""
    until: datetime | None = None
    release_url: str = ""
    fixed: str = ""
    error: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HoldForm:
    """The form that holds one open: its selects, the typed name and reason, and an error by field."""

    url: str
    selects: list[Select]
    names: list[str] = field(default_factory=list)
    name: str = ""
    reason: str = ""
    errors: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CircuitsPage:
    """Context name `page` of circuit/list.html. `form` is None for who may hold none; `form_words` says so."""

    title: str
    summary: str
    troubled: list[CircuitRow]
    well: list[CircuitRow]
    empty: Empty | None = None
    form: HoldForm | None = None
    form_words: str = ""
    flashes: list[Flash] = field(default_factory=list)
