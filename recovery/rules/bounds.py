"""How long what a contract promises holds: a key's life, when a look is final, what is proof at all. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import cast

from steadyhand.manifest import Tool

from recovery.rules.evidence import Key, Proof, Verdict
from recovery.rules.known import Known

SKEW_SECONDS = 5.0
UNBOUNDED_RECOUNT_SECONDS = 600.0
LOOKED_UP = ("http", "webhook", "python")
JOB_FAILED = "job_failed"
"""What a poll or a callback says of an accepted job that did not do its work: a refusal for good, told late."""


def looked_up(known: Known) -> bool:
    """Whether somebody can be asked what happened; a person is asked otherwise."""
    return known.tool.reconcile is not None and known.connector_kind in LOOKED_UP


def proof_of(known: Known) -> Proof:
    """What the contract asks for; above the value threshold a reply is not enough where a look can be had."""
    promised = known.tool.proof
    return "look" if promised == "reply" and known.over_threshold and looked_up(known) else promised


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


def uncertain_since(known: Known) -> datetime | None:
    """The report or the lease's end of the last dispatch: the moment from which the bounds run (DECISIONS 2)."""
    return known.tries[-1].ended_at if known.tries else None


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


def may_check_again(tool: Tool, looks_made: int) -> bool:
    """Whether a person may have a settled effect counted once more that nobody could confirm: as many look-ups as the
    contract allows by themselves are theirs after those."""
    return tool.reconcile is not None and looks_made <= 2 * tool.reconcile.max_looks


def finalize(verdict: str, *, started_at: datetime, final_at: datetime | None) -> Verdict:
    """Turn what a look-up says into what it proves: final only if it started after the bound."""
    if verdict == "failed":
        return cast(Verdict, JOB_FAILED)
    final = final_at is not None and started_at >= final_at
    if final and verdict in ("present", "absent", "partial"):
        return cast(Verdict, f"{verdict}_final")
    return cast(Verdict, verdict)
