"""Dead letters as rows: what is written when a call has used all its tries, and how its replay ends (DECISIONS 1).

One letter for one call. It is complete and owned from the first moment; a replay that fails again is a new generation
of the same letter, with the older tries still in its history (F105).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from recovery.models import DeadLetter
from runs import definitions, gathering, record
from runs.models import Action, Run
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import advance

REPLAYED = ("replay_requested", "replaying")
ENDED = ("recovered", "discarded")
NEXT = "Replay this call once more under its own identity when its cause is gone, or discard it with a reason."
NEXT_UNKNOWN = (
    "Find out whether it took effect. A replay is made only under a key that its provider knows; "
    "discarding it takes a second person."
)


def of(action: Action) -> DeadLetter | None:
    return next(iter(gathering.rows(DeadLetter, "action_id", action.pk)), None)


def bound_to(letter: DeadLetter) -> dict[str, Any]:
    """What a wish about a letter is made about: this letter, in this generation, with exactly this content."""
    told = [letter.request, letter.identity, letter.completed_effects, letter.failure_class, letter.attempts]
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    return {"letter": str(letter.pk), "generation": letter.generation, "hash": digest}


def extra_attempts(letter: DeadLetter | None) -> int:
    """Tries beyond the ceiling that people granted, one for each replay."""
    if letter is None:
        return 0
    return letter.generation - 1 + (letter.state in REPLAYED)


def is_replayed(letter: DeadLetter | None) -> bool:
    """Whether a replay is under way: whoever ordered it has opened the gate for this one try."""
    return letter is not None and letter.state in REPLAYED


def write(run: Run, action: Action, actor: Actor, *, nothing_happened: bool) -> DeadLetter:
    """The letter of a call whose ceiling of attempts fired; written in the transaction of the outcome.

    `nothing_happened`: it is certain that the call changed nothing, so that it may simply be given up.
    """
    letter, following = of(action), NEXT if nothing_happened else NEXT_UNKNOWN
    if letter is None:
        letter = _first(run, action, following)
    elif letter.state in REPLAYED:
        changes = {
            "generation": letter.generation + 1,
            "recorded_at": read_clock(),
            "next_action": following,
            **_story(run, action),
        }
        advance(letter, machine="dead_letter", to="recorded", **changes)
    else:
        return letter
    record.write_event(
        run, "dead_letter", actor, action=action, to_state="recorded",
        data={"letter": str(letter.pk), "generation": letter.generation, "attempts": len(letter.attempts)},
    )  # fmt: skip
    return letter


def close(run: Run, action: Action, actor: Actor, *, effect: bool) -> None:
    """The call came to an end after all: recovered where it took effect.

    Where it did not, its letter stays until a person discards it; a replay that ended so is its next generation.
    """
    letter = of(action)
    if letter is None or letter.state in ENDED:
        return
    if not effect:
        write(run, action, actor, nothing_happened=True)
        return
    if letter.state == "replay_requested":
        advance(letter, machine="dead_letter", to="replaying")
    before = letter.state
    advance(letter, machine="dead_letter", to="recovered", ended_at=read_clock(), attempts=history(action))
    data = {"letter": str(letter.pk)}
    record.write_event(
        run, "dead_letter_recovered", actor, action=action, from_state=before, to_state="recovered", data=data
    )


def history(action: Action) -> list[dict[str, Any]]:
    """Every try of a call, oldest first, as plain values."""
    return [
        {
            "number": one.number,
            "at": one.dispatched_at.isoformat(),
            "layer": one.layer,
            "observed": one.observed,
            "reason_code": one.reason_code,
            "status": (one.observation or {}).get("status"),
            "latency_ms": one.latency_ms,
        }
        for one in action.tries.order_by("number")
    ]


def _first(run: Run, action: Action, following: str) -> DeadLetter:
    return DeadLetter.objects.create(
        tenant_id=run.tenant_id,
        run=run,
        action=action,
        request={
            "tool": action.tool,
            "step": action.step,
            "arguments": action.arguments,
            "arguments_hash": action.arguments_hash,
        },
        identity=action.action_id,
        next_action=following,
        owner_team=definitions.of_run(run).manifest.owner_team,
        **_story(run, action),
    )


def _story(run: Run, action: Action) -> dict[str, Any]:
    tries = history(action)
    return {
        "completed_effects": list(run.effects.order_by("id").values_list("step", flat=True)),
        "failure_class": (tries[-1]["reason_code"] if tries else None) or "retry_exhausted",
        "attempts": tries,
    }
