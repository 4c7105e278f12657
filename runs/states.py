"""The state machines as data, and the one way to move a row along them.

The same data fills the table `state_move`, against which a trigger holds every UPDATE (DECISIONS 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import F, Model

from runs.querysets import database_now

if TYPE_CHECKING:
    from runs.models import Action, Run

Moves = dict[str, tuple[str, ...]]

RUN: Moves = {
    # planning goes straight to waiting_for_tool: the first intent and its permit are one statement (I3).
    "planning": (
        "executing",
        "waiting_for_tool",
        "recovering",
        "failed",
        "escalated",
        "completed",
        "cancelling",
    ),
    "executing": (
        "waiting_for_tool",
        "recovering",
        "verifying",
        "compensating",
        "failed",
        "escalated",
        "completed",
        "cancelling",
    ),
    "waiting_for_tool": (
        "executing",
        "verifying",
        "recovering",
        "compensating",
        "failed",
        "escalated",
        "cancelling",
    ),
    "verifying": (
        "executing",
        "waiting_for_tool",
        "recovering",
        "compensating",
        "escalated",
        "failed",
        "cancelling",
    ),
    "recovering": (
        "waiting_for_tool",
        "executing",
        "verifying",
        "compensating",
        "escalated",
        "failed",
        "cancelling",
    ),
    "compensating": ("failed", "cancelled", "escalated", "cancelling"),
    "escalated": (
        "waiting_for_tool",
        "verifying",
        "recovering",
        "compensating",
        "executing",
        "completed",
        "failed",
        "cancelling",
    ),
    "cancelling": ("cancelled", "compensating"),
    "completed": (),
    "failed": (),
    "cancelled": (),
}

ACTION: Moves = {
    "proposed": ("rejected", "awaiting_approval", "permitted", "held", "void"),
    "awaiting_approval": ("approved", "rejected", "void"),
    "approved": ("permitted", "rejected", "held", "void"),
    "permitted": (
        "succeeded",
        "refused_transient",
        "refused_permanent",
        "unknown",
        "processing",
        "partial",
        "partial_final",
        "conflict",
        "held",
        "void",
    ),
    "refused_transient": ("permitted", "refused_permanent", "held", "void", "unknown"),
    "unknown": (
        "probing",
        "absent",
        "probe_failed",
        "processing",
        "permitted",
        "held",
        "succeeded",
        "void",
        "partial",
        "conflict",
        "refused_permanent",
        "refused_transient",
    ),
    "probing": (
        "succeeded",
        "partial",
        "partial_final",
        "conflict",
        "absent",
        "absent_final",
        "processing",
        "probe_failed",
        "unknown",
        "held",
        "void",
        "refused_permanent",
    ),
    "absent": ("probing", "permitted", "held", "succeeded", "conflict", "void", "absent_final"),
    "absent_final": ("permitted", "probing", "void", "held", "succeeded", "conflict", "refused_permanent"),
    "probe_failed": ("probing", "permitted", "held", "succeeded", "void"),
    "processing": ("probing", "refused_permanent", "held", "succeeded", "void"),
    "partial": ("probing", "held", "succeeded", "void"),
    "partial_final": ("compensating", "held", "succeeded"),
    "conflict": ("held",),
    "held": ("probing", "permitted", "refused_transient", "unknown", "succeeded", "void", "conflict", "absent_final"),
    "succeeded": ("compensating", "conflict"),
    "compensating": ("compensated", "compensation_held"),
    "compensation_held": ("compensating", "compensated"),
    "compensated": (),
    "rejected": (),
    "refused_permanent": (),
    "void": ("conflict",),
}

TASK: Moves = {
    "open": ("claimed", "resolved"),
    "claimed": ("open", "awaiting_approval", "executing", "resolved"),
    "awaiting_approval": ("claimed", "executing", "resolved"),
    "executing": ("claimed", "open", "resolved"),
    "resolved": ("reopened",),
    "reopened": ("claimed", "resolved"),
}

DEAD_LETTER: Moves = {
    "recorded": ("in_review", "replay_requested", "discarded", "recovered"),
    "in_review": ("replay_requested", "discarded", "recovered"),
    "replay_requested": ("replaying", "recorded"),
    "replaying": ("recovered", "recorded"),
    "recovered": (),
    "discarded": (),
}

DECISION: Moves = {
    "requested": ("running", "done", "refused"),
    "running": ("done", "failed", "refused", "requested"),
    "done": (),
    "failed": (),
    "refused": (),
}

MACHINES: dict[str, Moves] = {
    "run": RUN,
    "action": ACTION,
    "task": TASK,
    "decision": DECISION,
    "dead_letter": DEAD_LETTER,
}

RUN_OPEN = tuple(state for state in RUN if state not in ("completed", "failed", "cancelled"))
ACTION_SETTLED = (
    "succeeded",
    "rejected",
    "refused_permanent",
    "void",
    "compensated",
    "compensation_held",
    "compensating",
)
"""States in which nothing more has to be found out about a call before later steps may go on."""
TASK_OPEN = ("open", "claimed", "awaiting_approval", "executing", "reopened")


class StaleState(Exception):
    """Somebody was faster: the row is no longer in the state that this move began from."""


class IllegalMove(Exception):
    """The state machine has no such move."""


def may_move(machine: str, old: str, new: str) -> bool:
    return new in MACHINES[machine].get(old, ())


def advance(row: Model, *, machine: str, to: str, **changes: Any) -> None:
    """Move a row by one guarded UPDATE on (id, state, version); `changes` land with it or not at all.

    Raises IllegalMove for a move that the machine lacks and StaleState when another writer was faster.
    """
    old: str = row.state  # type: ignore[attr-defined]
    if old != to and not may_move(machine, old, to):
        raise IllegalMove(f"{machine} {row.pk}: {old} → {to}")
    guarded = type(row)._default_manager.filter(pk=row.pk, state=old, version=row.version)  # type: ignore[attr-defined]
    if not guarded.update(state=to, version=F("version") + 1, **changes):
        raise StaleState(f"{machine} {row.pk} is no longer {old}")
    _follow(row, {"state": to, "version": row.version + 1, **changes})  # type: ignore[attr-defined]


def _follow(row: Model, changes: dict[str, Any]) -> None:
    """Bring the row in memory to what was written; only what the database computed has to be read back."""
    computed = [name for name, value in changes.items() if hasattr(value, "resolve_expression")]
    for name, value in changes.items():
        if name not in computed:
            setattr(row, name, value)
    if computed:
        row.refresh_from_db(fields=computed)


def advance_run(run: Run, to: str, **changes: Any) -> None:
    """Move a run; a terminal state also stamps `ended_at`."""
    if to not in RUN_OPEN:
        changes.setdefault("ended_at", database_now())
    advance(run, machine="run", to=to, **changes)


def advance_action(action: Action, to: str, **changes: Any) -> None:
    """Move an action; a settled state stamps `settled_at` once and clears the due time."""
    if to in ACTION_SETTLED:
        changes.setdefault("due_at", None)
        if action.settled_at is None:
            changes.setdefault("settled_at", database_now())
    else:
        changes.setdefault("settled_at", None)
    advance(action, machine="action", to=to, **changes)
