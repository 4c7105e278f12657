"""From the rows about one action to the evidence that the table reads (DECISIONS 2).

Pure. The least certain attempt speaks for the action; each dispatch clears the verdict; only a look-up that started
after every declared bound has passed is final.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import cast

from steadyhand.manifest import Tool

from recovery.rules.evidence import Evidence, Goal, Key, Looks, Observation, Undo, Verdict

SKEW_SECONDS = 5.0
UNBOUNDED_RECOUNT_SECONDS = 600.0
MAX_POLLS = 50
JOB_FAILED = "job_failed"
"""What a poll or a callback says of an accepted job that did not do its work: a refusal for good, told late."""
UNSETTLED = ("unknown", "ok_invalid")
LOOKED_UP = ("http", "webhook", "python")


@dataclass(frozen=True)
class Try:
    """One attempt: how it ended (`observed` None while it is under way), and when it was over for us."""

    number: int
    observed: str | None
    ended_at: datetime | None


@dataclass(frozen=True)
class Fact:
    """One piece of evidence: what it says, and after which attempt."""

    kind: str
    verdict: str
    after_attempt: int
    started_at: datetime


@dataclass(frozen=True)
class Known:
    """Everything recorded about one action that bears on what may happen next.

    `ends_at`: when the run's time is over; a job that was accepted is waited for until then. `undo`: how far the undo
    of this effect has come. `undo_in_time`: whether the window for undoing it is still open.
    """

    tool: Tool
    connector_kind: str | None
    tries: tuple[Try, ...]
    facts: tuple[Fact, ...]
    goal: Goal
    looks_made: int
    due_at: datetime | None
    first_dispatched_at: datetime | None
    max_attempts: int
    budget_left: bool
    deadline_at: datetime | None
    next_due_at: datetime | None
    over_threshold: bool
    gate_open: bool
    never_again: bool
    ends_at: datetime | None = None
    undo: Undo = "none"
    undo_in_time: bool = True


def assemble(known: Known, now: datetime) -> Evidence:
    """The evidence at `now`."""
    key = live_key(known, now)
    return Evidence(
        effect=known.tool.effect,
        observation=observation_of(known, key),
        key=key,
        reconcilable=reconcilable(known),
        verdict=verdict_of(known),
        looks=looks_of(known, now),
        proof="look"
        if known.over_threshold and known.tool.proof == "reply" and _looked_up(known)
        else known.tool.proof,
        compensable=known.tool.compensate is not None and known.undo_in_time,
        undo=known.undo,
        goal=known.goal,
        attempts_left=not known.never_again and len(known.tries) < known.max_attempts,
        budget_left=known.budget_left,
        past_deadline=known.deadline_at is not None and (known.next_due_at or now) > known.deadline_at,
        circuit="closed",
        gate="open" if known.gate_open else "shut",
    )


def observation_of(known: Known, key: Key) -> Observation:
    """What the attempts say together: an unsettled one outweighs whatever a later one said.

    A read changes nothing, so there the latest one speaks. An accepted job that failed is refused for good.
    """
    if job_failed(known):
        return "permanent_reject"
    if known.tool.effect == "read":
        return cast(Observation, known.tries[-1].observed or "unknown") if known.tries else "not_sent"
    settled = max((fact.after_attempt for fact in known.facts if fact.verdict == "absent_final"), default=0)
    counting = [one for one in known.tries if one.number > settled] or list(known.tries[-1:])
    said = [one.observed or "unknown" for one in counting]
    if not said:
        return "not_sent"
    if key == "live" and "ok_valid" in said:
        return "ok_valid"
    for unsettled in ("ok_invalid", "unknown"):
        if unsettled in said:
            return cast(Observation, unsettled)
    return cast(Observation, said[-1])


def verdict_of(known: Known) -> Verdict:
    """What was learned since the last dispatch; sources that contradict each other are a conflict (F043)."""
    if overturned(known.facts):
        return "conflict"
    since = _since_last_dispatch(known)
    told = [verdict for verdict in since if verdict not in ("none", "probe_failed")]
    if JOB_FAILED in told:
        found = {"present", "present_final", "partial", "partial_final"} & set(told)
        return "conflict" if found or (known.tries and known.tries[-1].observed == "ok_valid") else "none"
    if "conflict" in told or ("absent_final" in told and {"present", "partial", "partial_final"} & set(told)):
        return "conflict"
    for strongest in ("present_final", "present", "absent_final", "partial_final"):
        if strongest in told:
            return cast(Verdict, strongest)
    if told:
        return cast(Verdict, told[-1])
    return "probe_failed" if since and since[-1] == "probe_failed" else "none"


def overturned(facts: tuple[Fact, ...]) -> bool:
    """Whether an effect turned up of a try that had been proven to have had none: the bound was not kept (F028)."""
    disproven = max((fact.after_attempt for fact in facts if fact.verdict == "absent_final"), default=0)
    return any(fact.verdict in ("present", "present_final") and fact.after_attempt <= disproven for fact in facts)


def job_failed(known: Known) -> bool:
    """Whether a poll or a callback said that the job which the last dispatch started has failed (DECISIONS 2)."""
    return JOB_FAILED in _since_last_dispatch(known)


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
    return known.tool.callback is not None or known.tool.completes_by == "callback" or not _looked_up(known)


def reconcilable(known: Known) -> bool:
    """Whether something will tell by itself: a look-up, a poll, or the callback that ends an accepted call."""
    return _looked_up(known) or (accepted(known) and (known.tool.poll is not None or _told_by_callback(known)))


def looks_of(known: Known, now: datetime) -> Looks:
    if awaited(known, now):
        return "later"
    if polled(known):
        return _polls_of(known, now)
    kept_for = final_look_kept_for(known)
    if not _looked_up(known) or (early_looks_spent(known) and kept_for is None):
        return "spent"
    if early_looks_spent(known) and kept_for is not None and now < kept_for:
        return "later"
    return _due(known, now)


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


def _looked_up(known: Known) -> bool:
    return known.tool.reconcile is not None and known.connector_kind in LOOKED_UP


def _since_last_dispatch(known: Known) -> list[str]:
    return [fact.verdict for fact in known.facts if fact.after_attempt >= len(known.tries)]


def early_looks_spent(known: Known) -> bool:
    return known.tool.reconcile is not None and known.looks_made >= known.tool.reconcile.max_looks


def final_look_kept_for(known: Known) -> datetime | None:
    """One look beyond the ceiling is kept for the moment from which it proves something; None once it was made.

    It is counted before it is made, like every look, so one that kills its worker does not come again (F020).
    """
    rule, final_at = known.tool.reconcile, final_from(known.tool, uncertain_since(known))
    if rule is None or final_at is None or known.looks_made > rule.max_looks:
        return None
    made = any(fact.kind == "probe" and fact.started_at >= final_at for fact in known.facts)
    return None if made else final_at


def live_key(known: Known, now: datetime) -> Key:
    """Whether the remote would recognise a repeat for as long as any copy may still land (F027, F046)."""
    promise = known.tool.idempotency
    if promise.kind == "natural" or known.tool.absent_is_success:
        return "live"
    if promise.kind == "none" or not promise.compares_arguments or promise.retention_seconds is None:
        return "none"
    if promise.retention_seconds == "unlimited" or known.first_dispatched_at is None:
        return "live"
    in_flight = known.tool.reconcile.max_in_flight_seconds if known.tool.reconcile else None
    if in_flight is None:
        return "none"
    needed = timedelta(seconds=known.tool.timeout_seconds + in_flight + SKEW_SECONDS)
    ends = known.first_dispatched_at + timedelta(seconds=promise.retention_seconds)
    return "live" if now + needed < ends else "expired"


def final_from(tool: Tool, uncertain_since: datetime | None) -> datetime | None:
    """From when a look-up counts as final; None while nothing is uncertain or a bound is not declared."""
    rule = tool.reconcile
    if rule is None or uncertain_since is None:
        return None
    if rule.max_in_flight_seconds is None or rule.max_visibility_lag_seconds is None:
        return None
    return uncertain_since + timedelta(seconds=rule.max_in_flight_seconds + rule.max_visibility_lag_seconds)


def recount_after(tool: Tool, connector_kind: str | None) -> float | None:
    """Seconds after which a write that was believed on less than a final look is counted once more (F029).

    None for a read, and where nobody can be asked. Without declared bounds the count comes late rather than never.
    """
    rule = tool.reconcile
    if tool.effect == "read" or rule is None or not rule.counts or connector_kind not in LOOKED_UP:
        return None
    if rule.max_in_flight_seconds is None or rule.max_visibility_lag_seconds is None:
        return UNBOUNDED_RECOUNT_SECONDS
    return rule.max_in_flight_seconds + rule.max_visibility_lag_seconds


def uncertain_since(known: Known) -> datetime | None:
    """The report or the lease's end of the last dispatch: the moment from which the bounds run (DECISIONS 2)."""
    return known.tries[-1].ended_at if known.tries else None


def finalize(verdict: str, *, started_at: datetime, final_at: datetime | None) -> Verdict:
    """Turn what a look-up says into what it proves: final only if it started after the bound."""
    if verdict == "failed":
        return cast(Verdict, JOB_FAILED)
    final = final_at is not None and started_at >= final_at
    if final and verdict in ("present", "absent", "partial"):
        return cast(Verdict, f"{verdict}_final")
    return cast(Verdict, verdict)


def snapshot(known: Known) -> dict[str, object]:
    """The facts as plain values, to be stored with a decision and hashed for a form."""
    return {
        "tool": known.tool.name,
        "tries": [asdict(one) for one in known.tries],
        "facts": [asdict(fact) for fact in known.facts],
        "goal": known.goal,
        "undo": known.undo,
        "gate_open": known.gate_open,
        "never_again": known.never_again,
    }


def hash_of(known: Known) -> str:
    """The evidence hash that a button carries: it changes when a fact does, not when time passes (F119)."""
    text = json.dumps(snapshot(known), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
