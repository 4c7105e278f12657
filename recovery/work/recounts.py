"""The later count of what was believed on less than a final look: what it comes to, and what is left where nobody can
answer it (F029, F042).

The call stays settled and its run's outcome stays what it was; what is wrong, or cannot be confirmed, becomes a task
(ruling 5).
"""

from __future__ import annotations

from datetime import timedelta

from recovery import case as cases
from recovery import escalation, settle
from recovery.rules import backoff
from runs import definitions, gathering, record
from runs.models import Action, Run
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import RUN_OPEN

CONFIRMED = ("present", "present_final")
PROVES_NOTHING = ("probe_failed", "processing", "absent", "partial")


def conclude(run: Run, action: Action, *, verdict: str, fact: str, actor: Actor) -> None:
    """What a later count found: the effect stands, it is contradicted and a person is asked, or nothing is proven."""
    record.write_event(run, "recounted", actor, action=action, reason=fact, data={"verdict": verdict})
    settle.ask_if_contradicted(run, action, actor)
    if verdict in PROVES_NOTHING:
        return unanswered(run, action, actor)
    if verdict in CONFIRMED:
        _confirm(run, action, actor)
    if run.goal == "rollback":
        return settle.refresh_run(run, actor)
    return _ask(run, action, "partial_effect", actor) if verdict == "partial_final" else None


def unanswered(run: Run, action: Action, actor: Actor) -> None:
    """Nothing was proven: count again later, up to the ceiling of look-ups; then a person is asked.

    A rollback counts by itself what it takes back, and asks on its own where nobody answers (rule 6b).
    """
    if run.goal == "rollback" and run.state in RUN_OPEN and action.role != "undo":
        return settle.refresh_run(run, actor)
    rule = definitions.of_run(run).tools[action.tool].reconcile
    if rule is None or action.looks > rule.max_looks:
        return _leave(run, action, actor)
    gathering.change(action, {}, {"due_at": read_clock() + timedelta(seconds=backoff.CAP_SECONDS)})
    return None


def _confirm(run: Run, action: Action, actor: Actor) -> None:
    asked = escalation.unconfirmed(run, action)
    if asked is not None:
        escalation.close(asked, actor=actor, resolution="A later count found exactly this effect.")


def _leave(run: Run, action: Action, actor: Actor) -> None:
    """A count that nobody could answer is no clean one: the effect rests on the word for it, and a person is told."""
    said = (
        f"{action.tool} counts as done, and {action.looks} look-ups could not confirm it. Nothing is sent; "
        "check once more what happened."
    )
    record.write_event(run, "recount_given_up", actor, action=action, reason=said)
    _ask(run, action, escalation.UNCONFIRMED, actor)


def _ask(run: Run, action: Action, reason: str, actor: Actor) -> None:
    """Unless a person has a question about this call already: that one is not lost over a weaker one."""
    if escalation.open_about(run, action) is None:
        page = cases.read(run, action).page(reason)
        escalation.open_task(run, reason, action=action, actor=actor, page=page)
