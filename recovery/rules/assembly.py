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

from recovery.rules.evidence import Evidence, Goal, Key, Looks, Observation, Verdict

SKEW_SECONDS = 5.0
UNBOUNDED_RECOUNT_SECONDS = 600.0
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
    """Everything recorded about one action that bears on what may happen next."""

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
        if known.over_threshold and known.tool.proof == "reply" and reconcilable(known)
        else known.tool.proof,
        compensable=known.tool.compensate is not None,
        undo="none",
        goal=known.goal,
        attempts_left=not known.never_again and len(known.tries) < known.max_attempts,
        budget_left=known.budget_left,
        past_deadline=known.deadline_at is not None and (known.next_due_at or now) > known.deadline_at,
        circuit="closed",
        gate="open" if known.gate_open else "shut",
    )


def observation_of(known: Known, key: Key) -> Observation:
    """What the attempts say together: an unsettled one outweighs whatever a later one said.

    A read changes nothing, so there the latest one speaks.
    """
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
    since = [fact.verdict for fact in known.facts if fact.after_attempt >= len(known.tries)]
    told = [verdict for verdict in since if verdict not in ("none", "probe_failed")]
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


def reconcilable(known: Known) -> bool:
    return known.tool.reconcile is not None and known.connector_kind in LOOKED_UP


def looks_of(known: Known, now: datetime) -> Looks:
    kept_for = final_look_kept_for(known)
    if known.tool.reconcile is None or (early_looks_spent(known) and kept_for is None):
        return "spent"
    if early_looks_spent(known) and kept_for is not None and now < kept_for:
        return "later"
    return "due" if known.due_at is not None and known.due_at <= now else "later"


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
    if promise.kind == "natural":
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
        "gate_open": known.gate_open,
        "never_again": known.never_again,
    }


def hash_of(known: Known) -> str:
    """The evidence hash that a button carries: it changes when a fact does, not when time passes (F119)."""
    text = json.dumps(snapshot(known), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
