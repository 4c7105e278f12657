"""The plan of a rollback, as the Run and the Task page show it: in the order in which it is carried out."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console.looks import Look
from console.pages.common import Empty, Link, Live, Money


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One effect: its step, the tool that takes it back, where that stands, and why it cannot be or what stays.

    `cost` is what taking it back costs by its contract; `left` is what stayed after it, `left_words` how that came.
    `until` is when its provider stops taking it back; `until_words` stand there where it never does.
    `reversal` says whether it can be taken back at all, `undo_look` how far the call for it has come.
    """

    number: int
    step: str
    undo: str
    look: Look
    reversal: Look
    undo_look: Look | None = None
    words: str = ""
    amount: Money | None = None
    cost: Money | None = None
    left: Money | None = None
    left_words: str = ""
    until: datetime | None = None
    until_words: str = ""


@dataclass(frozen=True, slots=True)
class PlanCard:
    """Context name `plan` of frame/_plan.html. `summary` counts its rows, `remaining` names what is left of it.

    `undeclared` counts the effects of which nobody said how much they moved, which is no part of `sums`.
    `approval` says whether a second person has to agree or has agreed; empty where nobody has to.
    """

    rows: list[PlanRow]
    hash: str
    summary: str
    remaining: list[str] = field(default_factory=list)
    sums: list[Money] = field(default_factory=list)
    costs: list[Money] = field(default_factory=list)
    left: list[Money] = field(default_factory=list)
    approval: str = ""
    undeclared: int = 0


@dataclass(frozen=True, slots=True)
class PlanWord:
    """What somebody decided about the plan; `standing` is a note on whether it holds for the plan as it is now."""

    at: datetime
    who: str
    what: str
    reason: str
    plan_hash: str
    standing: str = ""


@dataclass(frozen=True, slots=True)
class PlanPage:
    """Context name `page` of run/plan.html and run/_plan.html.

    `told` says in a sentence whether this is what would be undone or what is being undone. `moves` are the verbs that
    the run's task offers to the reader now, and `moves_words` says who moves it.
    """

    run_id: str
    title: str
    told: str
    state: Look
    crumbs: list[Link]
    live: Live
    run: Link
    plan: PlanCard | None = None
    words: list[PlanWord] = field(default_factory=list)
    moves: list[Link] = field(default_factory=list)
    moves_words: str = ""
    empty: Empty | None = None
