"""What is left to do: calls that are not settled, then required effects that were never called."""

from __future__ import annotations

from datetime import datetime

from console import looks
from console.builders import words
from console.builders.ledger import effect_words, look_of
from console.builders.record import Record, answer_of
from console.pages.plan import PlanCard
from console.pages.task import RemainingRow
from runs.models import Action
from runs.states import RUN_OPEN


def rows(record: Record, now: datetime) -> list[RemainingRow]:
    """Empty once the run has ended and every write is settled."""
    opens = [(action.step, _look(action), _words(action, now)) for action in record.unsettled]
    planned = []
    if record.run.state in RUN_OPEN and record.run.goal == "forward":
        waits = f"; waits for `{record.unsettled[0].step}`" if record.unsettled else ""
        planned = [(tool.name, looks.PLANNED, f"{effect_words(tool, tool.effect)}{waits}") for tool in record.planned]
    return [RemainingRow(place, *one) for place, one in enumerate([*opens, *planned], start=1)]


def none(undoing: PlanCard | None) -> str:
    """What stands there when no row does: undos that are not begun yet have no call, but they are work."""
    if undoing is not None and undoing.remaining:
        return "No call is open. What is left of the undoing stands in its plan."
    return "None. Every step is settled."


def note(record: Record) -> str:
    required = record.definition.manifest.required_effects
    return "Required effects: " + ", ".join(f"`{name}`" for name in required) if required else ""


def _look(action: Action) -> looks.Look:
    return looks.EFFECT["settle_first"] if answer_of(action) == "unknown" else look_of(action)


def _words(action: Action, now: datetime) -> str:
    if answer_of(action) == "unknown":
        return "Prove it once, or prove that it did not happen"
    if answer_of(action) == "conflict":
        return "Decide which record is true"
    if action.state == "awaiting_approval":
        return "Waits for an approval; nothing was sent"
    if action.reason_code == "user_input_required":
        field = f"`{action.error_field}`" if action.error_field else "what was asked for"
        return f"The requester changes {field}; nothing happened so far"
    if action.due_at is not None and action.state in ("refused_transient", "absent_final"):
        return f"The same call again from {words.moment(action.due_at, now)}"
    return "A person decides how it goes on"
