"""Settings, workflows: the list, one version of one of them, and what differs between two versions."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console.looks import Look
from console.pages.common import Empty, Flash, Link, Tab


@dataclass(frozen=True, slots=True)
class WorkflowRow:
    """One workflow by its newest version. `open_runs` and `older_runs` are capped text, empty where there are none;
    `tools` says how many and of which kind, `cautions` how many, empty where none."""

    name: str
    url: str
    tenant: str
    version: int
    title: str
    tools: str
    registered_at: datetime
    by: str
    open_runs: str = ""
    older_runs: str = ""
    cautions: str = ""


@dataclass(frozen=True, slots=True)
class WorkflowsPage:
    """Context name `page` of settings/workflows.html."""

    title: str
    summary: str
    tabs: list[Tab]
    rows: list[WorkflowRow]
    unreadable: list[str] = field(default_factory=list)
    next_url: str = ""
    empty: Empty | None = None
    flashes: list[Flash] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ToolRow:
    """One tool in words, each may hold `code`: what it is, how a lost reply is found out about, how it is taken back,
    and what holds it back before it leaves."""

    name: str
    title: str
    kind: str
    found_out: list[str]
    undo: str
    limits: list[str]


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version. `diff_url` leads to what differs from the one before, empty for the first."""

    number: int
    url: str
    registered_at: datetime
    by: str
    open_runs: str
    current: bool = False
    diff_url: str = ""


@dataclass(frozen=True, slots=True)
class WorkflowPage:
    """Context name `page` of settings/workflow.html. `cautions`: a path and a sentence each. `facts`: label, words.

    `raw` is the manifest as JSON, without secrets; `raw_note` says where it was cut. `more_tools` counts those that
    stand in it only.
    """

    title: str
    subtitle: str
    crumbs: list[Link]
    facts: list[tuple[str, str]]
    cautions: list[tuple[str, str]]
    tools: list[ToolRow]
    more_tools: int
    versions: list[VersionRow]
    older_url: str
    raw: str
    raw_note: str = ""
    flashes: list[Flash] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One field that differs. `where` may hold `code`; `old` and `new` are JSON, empty where there was or is none."""

    where: str
    look: Look
    old: str
    new: str
    weaker: str = ""
    mark: Look | None = None


@dataclass(frozen=True, slots=True)
class DiffPage:
    """Context name `page` of settings/diff.html. `cut` counts the differences that are not shown."""

    title: str
    summary: str
    crumbs: list[Link]
    numbers: list[int]
    url: str
    tenant: str
    old: int
    new: int
    rows: list[DiffRow]
    weaker: int = 0
    cut: int = 0
    empty: Empty | None = None
