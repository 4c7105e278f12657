"""The state machines as data, and the one way to move a row along them.

The same data fills the table `state_move`, against which a trigger holds every UPDATE (DECISIONS 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Model

from runs import gathering, wall
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
        "compensating",
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
    # An undo goes back to be approved again where the plan that it was approved in has changed.
    "approved": ("permitted", "awaiting_approval", "rejected", "held", "void"),
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
        "absent_final",
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
    "absent": (
        "probing",
        "permitted",
        "held",
        "succeeded",
        "conflict",
        "void",
        "absent_final",
        "refused_permanent",
    ),
    "absent_final": ("permitted", "probing", "void", "held", "succeeded", "conflict", "refused_permanent"),
    "probe_failed": ("probing", "permitted", "held", "succeeded", "void", "absent_final", "refused_permanent"),
    "processing": ("probing", "refused_permanent", "held", "succeeded", "void"),
    "partial": ("probing", "held", "succeeded", "void", "refused_permanent"),
    "partial_final": ("compensating", "held", "succeeded"),
    "conflict": ("held",),
    # A callback may say of a call that a person looks after that its job has failed.
    "held": (
        "probing",
        "permitted",
        "refused_transient",
        "unknown",
        "succeeded",
        "void",
        "conflict",
        "partial_final",
        "absent_final",
        "refused_permanent",
    ),
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
    "awaiting_approval": ("claimed", "open", "executing", "resolved"),
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

# Nobody forces it closed: only trials that went well do that (DECISIONS 1.5).
CIRCUIT: Moves = {
    "closed": ("open", "held_open"),
    "open": ("half_open", "held_open"),
    "half_open": ("closed", "open", "held_open"),
    "held_open": ("half_open",),
}

# While it is offered a task stays with whoever has it; the receiver's yes is what hands it over.
HANDOVER: Moves = {
    "offered": ("accepted", "declined", "withdrawn", "expired"),
    "accepted": (),
    "declined": (),
    "withdrawn": (),
    "expired": (),
}

BULK: Moves = {
    "created": ("running", "cancelled"),
    "running": ("suspended", "done", "partly_done", "cancelled"),
    # What was under way when it was suspended may turn out to have been the last of it.
    "suspended": ("running", "done", "partly_done", "cancelled"),
    "done": (),
    "partly_done": (),
    "cancelled": (),
}

BULK_ITEM: Moves = {"pending": ("done", "skipped", "failed"), "done": (), "skipped": (), "failed": ()}

Actors = tuple[wall.Acting, ...]
Movers = dict[tuple[str, str], Actors]
AGENT_OR_WORKER: Actors = ("agent", "worker")
PERSON: Actors = ("person",)
WORKER: Actors = ("worker",)
PERSON_OR_WORKER: Actors = ("person", "worker")


def _into(moves: Moves, to: str, actors: Actors) -> Movers:
    return {(old, to): actors for old, targets in moves.items() if to in targets}


ONLY: dict[str, Movers] = {
    "run": _into(RUN, "cancelling", ("agent", "person")),
    "action": {
        **_into(ACTION, "permitted", AGENT_OR_WORKER),
        **_into(ACTION, "probing", WORKER),
        **_into(ACTION, "approved", PERSON),
        ("awaiting_approval", "rejected"): PERSON,
        ("proposed", "rejected"): AGENT_OR_WORKER,
        ("approved", "rejected"): AGENT_OR_WORKER,
    },
    "task": {**_into(TASK, "claimed", PERSON), **_into(TASK, "open", ("person", "timer"))},
    "decision": {
        ("requested", "running"): WORKER,
        ("running", "done"): WORKER,
        ("running", "failed"): WORKER,
        ("running", "refused"): WORKER,
    },
    "dead_letter": {
        **_into(DEAD_LETTER, "in_review", PERSON),
        **_into(DEAD_LETTER, "replay_requested", PERSON),
        **_into(DEAD_LETTER, "discarded", PERSON),
    },
    "handover": {
        ("offered", "accepted"): PERSON,
        ("offered", "declined"): PERSON,
        ("offered", "withdrawn"): PERSON,
        ("offered", "expired"): ("timer",),
    },
    "circuit": {
        **_into(CIRCUIT, "open", AGENT_OR_WORKER),
        **_into(CIRCUIT, "closed", AGENT_OR_WORKER),
        **_into(CIRCUIT, "held_open", PERSON),
        ("open", "half_open"): AGENT_OR_WORKER,
        ("held_open", "half_open"): PERSON,
    },
    "bulk": {
        **_into(BULK, "running", PERSON),
        **_into(BULK, "cancelled", PERSON),
        **_into(BULK, "suspended", PERSON_OR_WORKER),
        **_into(BULK, "done", WORKER),
        **_into(BULK, "partly_done", WORKER),
    },
    "bulk_item": {("pending", to): PERSON_OR_WORKER for to in BULK_ITEM["pending"]},
}
"""Moves that only these actors may make; every other one follows from what is known, whoever brought it to light."""

MACHINES: dict[str, Moves] = {
    "run": RUN,
    "action": ACTION,
    "task": TASK,
    "decision": DECISION,
    "dead_letter": DEAD_LETTER,
    "circuit": CIRCUIT,
    "handover": HANDOVER,
    "bulk": BULK,
    "bulk_item": BULK_ITEM,
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
    """The state machine has no such move, or not for this actor."""


def may_move(machine: str, old: str, new: str, by: wall.Acting | None = None) -> bool:
    """Whether the machine has this move; with `by`, whether that actor may make it."""
    if new not in MACHINES[machine].get(old, ()):
        return False
    return by is None or by in ONLY[machine].get((old, new), (by,))


def advance(row: Model, *, machine: str, to: str, **changes: Any) -> None:
    """Move a row by one guarded UPDATE on (id, state, version); `changes` land with it or not at all.

    Raises IllegalMove for a move that the machine lacks and StaleState when another writer was faster.
    """
    old: str = row.state  # type: ignore[attr-defined]
    if old != to and not may_move(machine, old, to, wall.acting()):
        raise IllegalMove(f"{machine} {row.pk}: {old} → {to} by {wall.acting() or 'nobody'}")
    version: int = row.version  # type: ignore[attr-defined]
    if not gathering.change(
        row, {"state": old, "version": version}, {"state": to, "version": version + 1, **changes}
    ):
        raise StaleState(f"{machine} {row.pk} is no longer {old}")


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
