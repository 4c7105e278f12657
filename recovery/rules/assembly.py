"""From the rows about one action to the evidence that the table reads (DECISIONS 2). Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from recovery.rules import backoff
from recovery.rules.bounds import final_from, live_key, looked_up, proof_of, uncertain_since
from recovery.rules.evidence import Evidence, Looks
from recovery.rules.known import Known
from recovery.rules.testimony import observation_of, undone_outside, verdict_of

MAX_POLLS = 50


def assemble(known: Known, now: datetime) -> Evidence:
    """The evidence at `now`, as if every circuit were closed: the answer says which one matters (DECISIONS 2)."""
    key = live_key(known, now)
    return Evidence(
        effect=known.tool.effect,
        observation=observation_of(known),
        key=key,
        reconcilable=reconcilable(known),
        verdict=verdict_of(known),
        looks=looks_of(known, now),
        proof=proof_of(known),
        compensable=known.tool.compensate is not None and known.undo_in_time,
        undo="done" if known.goal == "rollback" and undone_outside(known) else known.undo,
        goal=known.goal,
        attempts_left=not known.never_again and len(known.tries) < known.max_attempts,
        budget_left=known.budget_left,
        past_deadline=known.deadline_at is not None and (known.next_due_at or now) > known.deadline_at,
        circuit="closed",
        gate="open" if known.gate_open else "shut",
    )


def reconcilable(known: Known) -> bool:
    """Whether something will tell by itself: a look-up, a poll, or the callback that ends an accepted call."""
    return askable(known) or (accepted(known) and _told_by_callback(known))


def askable(known: Known) -> bool:
    """Whether somebody can be asked what happened: by a look-up, or by the poll of an accepted job."""
    return looked_up(known) or polled(known)


def looks_of(known: Known, now: datetime) -> Looks:
    if awaited(known, now):
        return "later"
    if polled(known):
        return _polls_of(known, now)
    kept_for = final_look_kept_for(known)
    if not looked_up(known) or (early_looks_spent(known) and kept_for is None):
        return "spent"
    if early_looks_spent(known) and kept_for is not None and now < kept_for:
        return "later"
    return _due(known, now)


def accepted(known: Known) -> bool:
    """Whether the last dispatch was accepted and its end is still open."""
    return verdict_of(known) == "processing"


def polled(known: Known) -> bool:
    """Whether the end of an accepted job can be asked for by the tool's own poll."""
    return known.tool.poll is not None and accepted(known)


def awaited(known: Known, now: datetime) -> bool:
    """Whether a callback is what ends this call, and may still come: nobody looks meanwhile (DECISIONS 2)."""
    return known.tool.poll is None and _told_by_callback(known) and accepted(known) and not _over(known, now)


def _told_by_callback(known: Known) -> bool:
    return known.tool.callback is not None or known.tool.completes_by == "callback" or not looked_up(known)


def _polls_of(known: Known, now: datetime) -> Looks:
    """Polls have a ceiling; past the run's end only a person asks for another one."""
    ceiling = known.tool.reconcile.max_looks if known.tool.reconcile else MAX_POLLS
    if known.looks_made >= ceiling:
        return "spent"
    return "later" if _over(known, now) else _due(known, now)


def _due(known: Known, now: datetime) -> Looks:
    return "due" if known.due_at is not None and known.due_at <= now else "later"


def _over(known: Known, now: datetime) -> bool:
    return known.ends_at is not None and known.ends_at <= now


def early_looks_spent(known: Known) -> bool:
    return known.tool.reconcile is not None and known.looks_made >= known.tool.reconcile.max_looks


def last_look_kept(known: Known) -> bool:
    """Whether only that one is left which is kept until it proves something; of polls none is."""
    return early_looks_spent(known) and not polled(known)


def final_look_kept_for(known: Known) -> datetime | None:
    """One look beyond the ceiling is kept for the moment from which it proves something; None once it was made.

    It is counted before it is made, like every look, so one that kills its worker does not come again (F020).
    """
    rule, final_at = known.tool.reconcile, final_from(known.tool, uncertain_since(known))
    if rule is None or final_at is None or known.looks_made > rule.max_looks:
        return None
    made = any(fact.kind == "probe" and fact.started_at >= final_at for fact in known.facts)
    return None if made else final_at


def next_look_at(known: Known, now: datetime) -> datetime | None:
    """When to look next by itself; None once the run has ended over an accepted job: a person asks then."""
    if awaited(known, now):
        return known.ends_at
    if polled(known) and known.tool.poll is not None:
        return _next_poll_at(known, now, known.tool.poll.every_seconds)
    rule, since = known.tool.reconcile, uncertain_since(known)
    final_at = final_from(known.tool, since)
    due_at = backoff.next_look_at(
        now=now, looks=known.looks_made, first_look_seconds=rule.first_look_seconds if rule else 0,
        final_from=final_at, uncertain_since=since or now,
    )  # fmt: skip
    return max(due_at, final_at) if final_at is not None and early_looks_spent(known) else due_at


def _next_poll_at(known: Known, now: datetime, every_seconds: float) -> datetime | None:
    """Evenly spaced, the last one at the run's end at the latest."""
    if known.ends_at is None:
        return now + timedelta(seconds=every_seconds)
    return min(now + timedelta(seconds=every_seconds), known.ends_at) if now < known.ends_at else None
