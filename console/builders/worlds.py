"""The four-cell card of an unknown write: what may have happened, the facts for and against, and what would tell."""

from __future__ import annotations

from datetime import datetime

from steadyhand.manifest import Tool

from console import looks
from console.builders import words
from console.builders.attempts import came_back
from console.builders.record import Record
from console.pages.task import World, Worlds
from recovery.case import Case
from recovery.rules import policy
from runs.models import Evidence

_OPEN = ("unknown", "ok_invalid")


def card(case: Case, record: Record) -> Worlds | None:
    """None unless a write was sent and nothing settles whether it landed."""
    if case.action.settled_at is not None or case.evidence.effect != "write":
        return None
    if case.evidence.observation not in _OPEN or not case.known.tries or policy.surely_nothing(case.evidence):
        return None
    view = _View(case, record)
    if case.evidence.verdict == "partial_final":
        return Worlds(case.action.tool, "It is proven that a part of it happened", view.only_a_part())
    return Worlds(case.action.tool, view.probe(), [view.never(), view.happened(), view.in_progress(), view.partial()])


class _View:
    """The facts about one unknown write, asked cell by cell."""

    def __init__(self, case: Case, record: Record) -> None:
        self.case = case
        self.tool: Tool = case.tool
        facts = record.facts(case.action)
        self.looks = [fact for fact in facts if fact.kind == "probe"]
        self.parts = [fact for fact in facts if fact.verdict in ("partial", "partial_final")]
        self.last = record.tries(case.action)[-1]
        self.final_at: datetime | None = case.final_at
        self.can_look = case.evidence.reconcilable

    @property
    def final_now(self) -> bool:
        return self.final_at is not None and self.final_at <= self.case.now

    def _at(self, at: datetime) -> str:
        return words.moment(at, self.case.now)

    def probe(self) -> str:
        if not self.can_look:
            return "No look-up is declared: only the provider can tell"
        if self.final_at is None:
            return "No look-up separates all four: no bound is declared"
        moment = "now" if self.final_now else f"from {self._at(self.final_at)} on"
        return f"One look-up {moment} separates all four"

    def never(self) -> World:
        proof = (
            f"a look-up that finds none from {self._at(self.final_at)} on" if self.can_look and self.final_at else ""
        )
        return World(
            "Never happened",
            looks.WORLD["possible"],
            pro=[f"Look-up at {self._at(fact.started_at)} found none" for fact in self._said("absent")],
            con=self._sent(),
            proof_label="Would prove it" if proof else "Cannot be proven by a look-up",
            proof=proof or "finding nothing would not be final",
        )

    def happened(self) -> World:
        found = self._said("present", "present_final")
        return World(
            "Happened, reply lost",
            looks.WORLD["possible"],
            pro=[*self._sent(), *(f"Look-up at {self._at(fact.started_at)}: {fact.fact}" for fact in found)],
            con=[f"Look-up at {self._at(fact.started_at)} found none" for fact in self._said("absent")],
            proof="one record of ours with all fields equal" if self.can_look else "the provider's own record",
        )

    def in_progress(self) -> World:
        running = [f"Look-up at {self._at(fact.started_at)}: {fact.fact}" for fact in self._said("processing")]
        if self.final_now and not running and self.final_at is not None:
            ended = f"The declared bounds ended at {self._at(self.final_at)}"
            return World("Still in progress", looks.WORLD["ruled_out"], con=[ended], proof_label="", ruled_out=True,
                         proof=f"Contract `{self.tool.name}` v{self.tool.version}")  # fmt: skip
        return World(
            "Still in progress",
            looks.WORLD["possible"],
            pro=[*running, self._bounds()],
            proof_label="Ends by itself" if self.final_at else "Never ends by itself",
            proof=self._at(self.final_at) if self.final_at else "no bound is declared",
        )

    def only_a_part(self) -> list[World]:
        """Nothing is left open: a part is proven, so the other three are not what happened."""
        names = ("Never happened", "Happened, reply lost", "Still in progress")
        out = [World(name, looks.WORLD["ruled_out"], proof_label="", ruled_out=True) for name in names]
        return [*out, World("Partial", looks.WORLD["proven"], pro=self._parts(), proof_label="")]

    def _parts(self) -> list[str]:
        """What speaks for a part: said by a look, or by the reply itself where it names its items."""
        return [
            f"{'Look-up' if fact.kind == 'probe' else 'Reply'} at {self._at(fact.started_at)}: {fact.fact}"
            for fact in [*self.parts, *self._said("conflict")]
        ]

    def partial(self) -> World:
        parts = self._parts()
        compared = self.tool.reconcile.look.match if self.tool.reconcile and self.tool.reconcile.look else {}
        none = [] if parts else ["Nothing seen so far points to it"]
        return World(
            "Partial",
            looks.WORLD["possible"],
            pro=parts,
            con=none,
            proof="a record of ours that differs in " + ", ".join(f"`{name}`" for name in compared)
            if compared
            else "the provider's own record",
        )

    def _said(self, *verdicts: str) -> list[Evidence]:
        return [fact for fact in self.looks if fact.verdict in verdicts]

    def _sent(self) -> list[str]:
        seen = self.last.observation or {}
        sent = seen.get("bytes_sent")
        how = came_back(self.last).word
        return [f"{sent:,} bytes were sent"] if sent else [f"It was dispatched: {how[:1].lower()}{how[1:]}"]

    def _bounds(self) -> str:
        rule = self.tool.reconcile
        if rule is None or rule.max_in_flight_seconds is None or rule.max_visibility_lag_seconds is None:
            return "No bound is declared: it may land at any time"
        flight, lag = words.lasting(rule.max_in_flight_seconds), words.lasting(rule.max_visibility_lag_seconds)
        return f"May land for {flight}, and be invisible for {lag} more"
