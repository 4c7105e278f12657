"""When calls to a dependency are given a rest, and when they begin again (DECISIONS 1.5, FAULTS F108 to F115). Pure.

A circuit belongs to a connector under an account, or to a tool that has no connector. Only what the dependency itself
did wrong counts: what a tenant asked for and was refused says nothing about it (F113).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from steadyhand.contract import Observation
from steadyhand.manifest import Circuit as Terms
from steadyhand.manifest import Connector, Tool

from recovery.rules.classified import Classified
from recovery.rules.evidence import Circuit

State = Literal["closed", "open", "half_open", "held_open"]

MOST_FAULTS = 100
"""So many faults are kept at most; where there are more, only the calls since the oldest kept one are counted."""
HELD_LOOK_AGAIN_SECONDS = 60.0
"""How often what waits asks whether a circuit that a person holds open is still held."""
LONGEST_SPREAD_SECONDS = 60.0
RELEASE_FOR_SECONDS = 600.0
"""So long after it closed, calls that waited or are repeated are let go under the retry budget only."""
FAULTY_NAMES = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL"})
DEFAULT_TERMS = Terms()


@dataclass(frozen=True)
class Standing:
    """Where a circuit stands: `live` trials are under way in it, `good` ones went well since it was last opened."""

    state: State
    until: datetime | None
    live: int = 0
    good: int = 0


# --- which circuit ------------------------------------------------------------------------------------------


def of_call(tool: Tool) -> str:
    """The circuit that a call of this tool goes through."""
    named = tool.send or tool.reconcile
    return _of_connector(named.connector, tool) if named is not None else f"tool:{tool.name}"


def of_look(tool: Tool) -> str | None:
    """The circuit that a look-up after a call of this tool goes through; None where there is no look-up."""
    return _of_connector(tool.reconcile.connector, tool) if tool.reconcile is not None else None


def _of_connector(name: str, tool: Tool) -> str:
    return f"connector:{name}/{tool.connection}" if tool.connection else f"connector:{name}"


def connector_in(circuit: str) -> str | None:
    """The connector in a circuit's name; None for the circuit of a tool."""
    kind, _, name = circuit.partition(":")
    return name.partition("/")[0] if kind == "connector" else None


def terms_of(circuit: str, connectors: Mapping[str, Connector]) -> Terms:
    """What the manifest says of this circuit."""
    connector = connectors.get(connector_in(circuit) or "")
    return connector.circuit if connector is not None else DEFAULT_TERMS


def can_be_tried(circuit: str, tools: Sequence[Tool], connectors: Mapping[str, Connector]) -> bool:
    """Whether anything harmless could show that the dependency is back: a read, a keyed write, a look-up, a health
    read. Without one a circuit would never close again, so it never opens (F114)."""
    connector = connectors.get(connector_in(circuit) or "")
    if connector is not None and connector.health is not None:
        return True
    calls = (tool.effect == "read" or _may_be_repeated(tool) for tool in tools if of_call(tool) == circuit)
    looks = connector is not None and connector.kind != "manual" and any(of_look(tool) == circuit for tool in tools)
    return looks or any(calls)


def _may_be_repeated(tool: Tool) -> bool:
    return tool.idempotency.kind != "none" or tool.absent_is_success


# --- what counts --------------------------------------------------------------------------------------------


def is_fault(observation: Observation, found: Classified) -> bool:
    """Whether this is the dependency's own fault: no answer, no connection, or an answer that it is broken.

    Refusals, limits and answers that the contract reads as a refusal are none, whatever their status; nor is what
    never left for a reason of ours, or an exception that says nothing about the other side.
    """
    if found.observed in ("permanent_reject", "ok_valid") or found.reason in NOT_ITS_FAULT:
        return False
    if observation.kind in ("timeout", "connection_lost"):
        return True
    if observation.kind == "not_sent":
        return observation.declared is None
    return (observation.status or 0) // 100 == 5 or observation.code in FAULTY_NAMES


NOT_ITS_FAULT = ("provider_rate_limited", "credential_refresh")


# --- opening and closing ------------------------------------------------------------------------------------


def may_open(faults: int, terms: Terms) -> bool:
    """Whether so many faults could open it at all: until then nobody counts the calls beside them."""
    return faults >= terms.min_calls * terms.fault_ratio


def counted_from(faults: Sequence[datetime], now: datetime, terms: Terms) -> datetime:
    """From when the calls are counted beside these faults."""
    if len(faults) >= MOST_FAULTS:
        return faults[0]
    return now - timedelta(seconds=terms.window_seconds)


def enough_calls(faults: int, terms: Terms) -> int:
    """With so many calls beside the faults, no more need to be counted: it stays closed."""
    return max(terms.min_calls, int(faults / terms.fault_ratio) + 1)


def opens(faults: int, calls: int, terms: Terms) -> bool:
    """Whether these faults among these calls open it (a fault is a call)."""
    calls = max(calls, faults)
    return calls >= terms.min_calls and faults / calls >= terms.fault_ratio


def cooldown(before: float, quiet_seconds: float | None, terms: Terms) -> float:
    """Seconds until a trial may be made: twice as long as the time before, up to the cap (F112).

    `quiet_seconds`: how long it had been closed; None where it had not. One that was well for as long as the longest
    pause begins anew.
    """
    if before <= 0 or (quiet_seconds is not None and quiet_seconds >= terms.max_cooldown_seconds):
        return terms.cooldown_seconds
    return min(terms.max_cooldown_seconds, max(before, terms.cooldown_seconds) * 2)


def trials_free(at: Standing, now: datetime, terms: Terms) -> int:
    """How many trials may begin now: never more at a time than there are slots, nor more than are still needed."""
    if at.state == "open" and at.until is not None and at.until <= now:
        return terms.slots - at.live
    if at.state == "half_open":
        return min(terms.slots, terms.successes - at.good) - at.live
    return 0


def closes(good: int, terms: Terms) -> bool:
    return good >= terms.successes


def as_evidence(at: Standing, now: datetime, terms: Terms) -> Circuit:
    """The circuit as the table reads it (DECISIONS 2)."""
    if at.state == "closed":
        return "closed"
    return "half_slot" if trials_free(at, now, terms) > 0 else "shut"


# --- waiting and being let go -------------------------------------------------------------------------------


def ask_again_at(at: Standing, now: datetime, terms: Terms, spread: float) -> datetime:
    """When a call that waits for the circuit asks again: after the pause, each at a time of its own (F108).

    `spread` is a number from 0 to 1, drawn by the caller.
    """
    if at.state == "held_open":
        return now + timedelta(seconds=HELD_LOOK_AGAIN_SECONDS * (0.5 + spread / 2))
    room = min(LONGEST_SPREAD_SECONDS, max(terms.cooldown_seconds, 1.0))
    return max(now, at.until or now) + timedelta(seconds=max(0.5, room * spread))


def is_releasing(state: State, closed_at: datetime | None, now: datetime) -> bool:
    """Whether it closed so lately that what waited must not all go at once."""
    return state == "closed" and closed_at is not None and (now - closed_at).total_seconds() < RELEASE_FOR_SECONDS


def retries_allowed(calls_per_second: float, terms: Terms) -> int:
    """How many repeated or held back calls may leave in one second: a share of the traffic, with a floor (F108)."""
    return max(terms.retries_per_second, int(calls_per_second * terms.retry_share))
