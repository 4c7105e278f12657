"""The plan of a rollback: what is taken back, in which order, by which call, and what cannot be (DECISIONS 1, I15).

Pure. A plan is drawn from the manifest and the recorded results alone. Its hash covers everything that a person
agrees to, and nothing that merely happens while it is carried out: an approval is for one hash, and no other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from steadyhand.manifest import Compensate
from steadyhand.paths import MISSING, dig

from recovery.rules.scope import over

Obstacle = Literal["", "unknown", "irreversible", "not_compensable", "window_over", "impossible"]
WHY: dict[str, str] = {
    "unknown": "It may have happened. That is settled first; an effect that is proven is undone then.",
    "irreversible": "It cannot be undone: its contract says so.",
    "not_compensable": "No undo is declared for it.",
    "window_over": "The time in which its provider takes it back is over.",
}


@dataclass(frozen=True)
class Line:
    """One effect of a plan and the call that takes it back.

    original        identity of the call whose effect it is, with its step and tool
    undo            the tool that takes it back, empty where none is declared; arguments_hash is what it would be sent
    value_minor     what comes back at most; cost_minor is what the contract says that taking it back costs
    until           when its provider stops taking it back, None where no window is declared
    obstacle        why this line cannot be carried out as it stands, and the same in a sentence
    """

    original: str
    step: str
    tool: str
    undo: str = ""
    arguments_hash: str = ""
    value_minor: int | None = None
    currency: str = ""
    cost_minor: int = 0
    until: datetime | None = None
    needs_approval: bool = False
    obstacle: Obstacle = ""
    why: str = ""


@dataclass(frozen=True)
class Plan:
    """The lines in the order in which they are carried out, and the threshold that their sum is held against."""

    lines: tuple[Line, ...]
    threshold_minor: int | None = None

    @property
    def hash(self) -> str:
        """The same for the same lines in the same order, whoever asks and however far they are."""
        told = {"lines": [asdict(line) for line in self.lines], "threshold_minor": self.threshold_minor}
        text = json.dumps(told, sort_keys=True, separators=(",", ":"), default=_plain)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def sums(self) -> dict[str, int]:
        """What comes back at most, by currency; never added over currencies."""
        return _added((line.currency, line.value_minor or 0) for line in self.possible)

    @property
    def costs(self) -> dict[str, int]:
        return {name: cost for name, cost in _added((one.currency, one.cost_minor) for one in self.possible).items()
                if cost}  # fmt: skip

    @property
    def needs_approval(self) -> bool:
        """One line wants it, or together they are more than one person may decide."""
        return any(line.needs_approval for line in self.possible) or self._sum_over

    @property
    def in_words(self) -> str:
        """What has to be known of it before it is ordered, beside its lines; empty where there is nothing."""
        stuck = sum(bool(line.obstacle) for line in self.lines)
        many = "1 effect" if stuck == 1 else f"{stuck} effects"
        left = f"{many} cannot be undone as things stand." if stuck else ""
        first = "Its plan needs a second person before anything is sent." if self.needs_approval else ""
        return f"{left} {first}".strip()

    @property
    def stop_in_words(self) -> str:
        """Where it comes to a stand before it is through, in a sentence; empty where every line can be undone."""
        stuck = next((number for number, line in enumerate(self.lines) if line.obstacle), None)
        if stuck is None:
            return ""
        before = f"after {_undos(stuck)}" if stuck else "before anything is undone"
        after = sum(not line.obstacle for line in self.lines[stuck + 1 :])
        rest = f"; then {_undos(after)} more can be begun" if after else ""
        return f"It stops at {self.lines[stuck].step}, {before}: two people have to accept what stays first{rest}."

    @property
    def approval_reason(self) -> str:
        """Why a second person has to agree, in a sentence; empty where nobody has to."""
        wanting = [line.undo for line in self.possible if line.needs_approval]
        if wanting:
            return f"{wanting[0]} needs an approval, and it is given for the whole plan."
        return "Together the undos are above the threshold of this workflow." if self._sum_over else ""

    @property
    def possible(self) -> list[Line]:
        """The lines that nothing stands in the way of."""
        return [line for line in self.lines if not line.obstacle]

    @property
    def _sum_over(self) -> bool:
        return any(over(self.threshold_minor, total) for total in self.sums.values())


@dataclass(frozen=True)
class Residual:
    """What stays of an effect after its undo: its kind (runs.models.RESIDUALS) and how much, where that is known."""

    kind: str
    minor: int | None


def residual_of(promise: Compensate, amount_minor: int | None, result: Any) -> Residual | None:
    """What an undo that is proven leaves behind; None where all came back (F142).

    Where the contract names a path for it, the undo's own answer counts; one that does not say is a rest that nobody
    knows. Else it is the declared cost.
    """
    if promise.returned is None:
        return Residual("fee", promise.cost_minor) if promise.cost_minor else None
    came_back = dig(result, promise.returned) if result is not None else MISSING
    if not isinstance(came_back, int) or isinstance(came_back, bool) or amount_minor is None:
        return Residual("untold", None)
    if not 0 <= came_back <= amount_minor:  # no answer to what came back: it would leave more than there was
        return Residual("untold", None)
    return Residual("part", amount_minor - came_back) if came_back < amount_minor else None


def _undos(count: int) -> str:
    return "1 undo" if count == 1 else f"{count} undos"


def _added(amounts: Iterable[tuple[str, int]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for currency, minor in amounts:
        totals[currency] = totals.get(currency, 0) + minor
    return dict(sorted(totals.items()))


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
