"""Settings, connectors: what each promises, where it stands, what its last test said, and the button for one more."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console.looks import Look
from console.pages.common import Empty, Flash, Link, Live, Tab


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The last test: its look and sentence, who asked, when it was asked or over; `latency_ms` None while it runs."""

    look: Look
    fact: str
    by: str = ""
    at: datetime | None = None
    latency_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DemotionRow:
    """A bound that was not kept. `lift_url` is empty for who may not lift it; `error` and `reason` come back."""

    demotion_id: str
    reason: str
    since: datetime
    run_url: str
    lift_url: str = ""
    error: str = ""
    typed: str = ""


@dataclass(frozen=True, slots=True)
class ConnectorRow:
    """One connector as the newest version of a workflow declares it. `promises` are sentences, may hold `code`.

    `test_url` is empty where it cannot be tested by the reader, and `fixed` says why. `circuit` is the look of a
    circuit that is not closed. `listed` says how far its effects were listed; `trouble` why that failed last.
    """

    name: str
    kind: str
    host: str
    tenant: str
    workflow: Link
    promises: list[str]
    check: CheckResult
    key: str = ""
    test_url: str = ""
    fixed: str = ""
    circuit: Look | None = None
    circuit_url: str = ""
    listed: str = ""
    trouble: str = ""
    demotions: list[DemotionRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ConnectorsPage:
    """Context name `page` of settings/connectors.html and of its live part settings/_connectors.html."""

    title: str
    summary: str
    tabs: list[Tab]
    rows: list[ConnectorRow]
    live: Live
    next_url: str = ""
    empty: Empty | None = None
    flashes: list[Flash] = field(default_factory=list)
