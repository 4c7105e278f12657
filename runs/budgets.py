"""What a run may still use: ceilings beside counters, and the one order in which they are named (I8, F101)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from runs.models import Run

Unit = Literal["turn", "call"]

USAGE = ("cost_minor", "input_tokens", "output_tokens")
"""What a turn uses, in the order in which its ceilings are named."""
MAX_COUNTED = 2**61
"""No sum is larger: one that reaches it stays there, above any ceiling, and still fits its column."""
_NAME_OF = {
    "cost_minor": "cost_budget_exhausted",
    "input_tokens": "token_budget_exhausted",
    "output_tokens": "token_budget_exhausted",
}
_UNITS = {
    "turn": ("turns", "turn_budget_exhausted"),
    "call": ("tool_calls", "tool_call_budget_exhausted"),
}


def ends_at(run: Run) -> datetime:
    """When the run's time is over: its deadline or the end of its elapsed-time budget, whichever comes first."""
    return min(filter(None, (run.elapses_at, run.deadline_at)))


def fired(run: Run, now: datetime, *, unit: Unit | None = None, more: Mapping[str, int] | None = None) -> list[str]:
    """Every ceiling that keeps the run from its next unit of work, as reason codes; the first names the stop.

    `unit` asks for one more turn or call. `more` is what that turn may use at most: then what other turns have
    reserved counts as used, so that two cannot share what is left (F102).
    """
    names: list[str] = []
    if unit is not None:
        counter, name = _UNITS[unit]
        names += [name] if getattr(run, counter) >= getattr(run, f"max_{counter}") else []
    names += ["deadline_exceeded"] if run.deadline_at is not None and run.deadline_at <= now else []
    names += ["time_budget_exhausted"] if run.elapses_at <= now else []
    names += [_NAME_OF[kind] for kind in USAGE if _is_used_up(run, kind, more)]
    return list(dict.fromkeys(names))


def ceiling(run: Run, kind: str) -> int | None:
    """The ceiling on one kind of usage; None where there is none."""
    found: int | None = getattr(run, f"max_{kind}")
    return found


def is_limited(run: Run, kind: str) -> bool:
    """Whether this kind of usage has a ceiling, of the run itself or of one that it works for."""
    return ceiling(run, kind) is not None or (run.parent is not None and is_limited(run.parent, kind))


def remaining(run: Run, now: datetime) -> dict[str, int]:
    """What is left under each ceiling, never below zero; what a turn has reserved is not left."""
    left = {"turns": run.max_turns - run.turns, "tool_calls": run.max_tool_calls - run.tool_calls}
    left["elapsed_seconds"] = int((run.elapses_at - now).total_seconds())
    for kind in USAGE:
        limit = ceiling(run, kind)
        if limit is not None:
            left[kind] = limit - getattr(run, kind) - getattr(run, f"reserved_{kind}")
    return {name: max(0, number) for name, number in left.items()}


def _is_used_up(run: Run, kind: str, more: Mapping[str, int] | None) -> bool:
    limit = ceiling(run, kind)
    if limit is None:
        return False
    used: int = getattr(run, kind)
    if more is None:
        return used >= limit
    used += getattr(run, f"reserved_{kind}")
    return used >= limit or used + more.get(kind, 0) > limit
