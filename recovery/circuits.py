"""Circuits as rows: what stands in a call's way, counting faults, taking a trial's slot, and what a trial brought.

The untroubled call never comes here: rows are read where a case is read anyway, and written by faults and trials only
(PERFORMANCE 5). Who changes a circuit has locked its row, and before that the run's.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, cast

from django.db.models import F, Q
from steadyhand.contract import Observation
from steadyhand.manifest import Circuit as Terms
from steadyhand.manifest import Tool

from recovery import traffic
from recovery.rules import circuit as rules
from recovery.rules.circuit import Standing
from recovery.rules.classified import Classified
from runs import record
from runs.definitions import Definition
from runs.ids import new_id
from runs.models import Attempt, Circuit, CircuitSlot
from runs.querysets import TenantQuerySet, database_now, read_clock
from runs.record import RULE, Actor
from runs.states import advance
from runs.together import Statement, read_together

Purpose = Literal["call", "look", "trial"]
TRAFFIC_SECONDS = 10
MOST_CLEARED = 500


@dataclass(frozen=True)
class Entry:
    """Whether a call may leave now. `slot`: it is a trial. `again_at`: it may not, and when to ask again."""

    slot: CircuitSlot | None = None
    again_at: datetime | None = None


FREE = Entry()


def troubled(tenant_id: uuid.UUID) -> TenantQuerySet[Circuit]:
    """The tenant's circuits that are not closed, or closed so lately that what waited is let go bit by bit."""
    lately = database_now() - timedelta(seconds=rules.RELEASE_FOR_SECONDS)
    return Circuit.objects.for_tenant(tenant_id).filter(~Q(state="closed") | Q(closed_at__gt=lately))


def find(found: Iterable[Circuit], name: str | None) -> Circuit | None:
    return next((circuit for circuit in found if circuit.name == name), None)


def standing(circuit: Circuit, now: datetime) -> Standing:
    """Where it stands, with its trials counted; nothing is asked of one that is closed or held."""
    state = cast(rules.State, circuit.state)
    if state in ("closed", "held_open"):
        return Standing(state, circuit.until)
    slots = CircuitSlot.objects.filter(circuit=circuit)
    live = slots.filter(ended_at__isnull=True, lease_until__gt=now).count()
    return Standing(state, circuit.until, live, slots.filter(trip=circuit.trips, went_well=True).count())


def ask_again_at(circuit: Circuit, now: datetime, terms: Terms) -> datetime:
    """When something that waits for this circuit asks again, by itself and not with all the others (F108)."""
    spread = random.random()  # noqa: S311  (jitter, not a secret)
    return rules.ask_again_at(Standing(cast(rules.State, circuit.state), circuit.until), now, terms, spread)


# --- going through ------------------------------------------------------------------------------------------


def enter(
    seen: Iterable[Circuit],
    name: str | None,
    definition: Definition,
    *,
    purpose: Purpose,
    lease_until: datetime,
    waited: bool,
) -> Entry:
    """Let a call or a look go through its circuit, as a trial where it is not closed; the caller's run is locked.

    `seen` is what `troubled` gave under that lock. `waited`: it is a repetition or was held back, and after an outage
    it takes its turn with the others.
    """
    found = find(seen, name)
    if found is None:
        return FREE
    circuit, now = Circuit.objects.select_for_update().get(pk=found.pk), read_clock()
    terms = rules.terms_of(circuit.name, definition.manifest.connectors)
    if circuit.state == "closed":
        return _let_go(circuit, now, terms) if waited else FREE
    if rules.trials_free(standing(circuit, now), now, terms) <= 0:
        return Entry(again_at=ask_again_at(circuit, now, terms))
    if circuit.state == "open":
        _move(circuit, "half_open", "circuit_half_open", "The pause is over: a trial is made.", until=None)
    slot = CircuitSlot.objects.create(
        tenant_id=circuit.tenant_id, circuit=circuit, trip=circuit.trips, purpose=purpose, lease_until=lease_until
    )
    return Entry(slot=slot)


def leave(entry: Entry) -> None:
    """Give back the slot of a call that was not made after all."""
    if entry.slot is not None:
        CircuitSlot.objects.filter(pk=entry.slot.pk, ended_at__isnull=True).update(ended_at=database_now())


def belongs_to(entry: Entry, attempt: Attempt) -> None:
    """Write on the slot whose it is, so that its report ends it."""
    if entry.slot is not None:
        CircuitSlot.objects.filter(pk=entry.slot.pk).update(attempt=attempt)


def prolong(attempt: Attempt, lease_until: datetime) -> None:
    """A trial that goes on keeps its slot."""
    if attempt.trial:
        CircuitSlot.objects.filter(attempt=attempt, ended_at__isnull=True).update(lease_until=lease_until)


def _let_go(circuit: Circuit, now: datetime, terms: Terms) -> Entry:
    """One of this second's allowance after an outage: a share of the traffic, with a floor (F108)."""
    if not rules.is_releasing("closed", circuit.closed_at, now):
        return FREE
    second = int(now.timestamp())
    if circuit.released_second != second:
        since = now - timedelta(seconds=TRAFFIC_SECONDS)
        circuit.released_second, circuit.released = second, 0
        circuit.allowance = rules.retries_allowed(traffic.calls(circuit, since, now) / TRAFFIC_SECONDS, terms)
    if circuit.released >= circuit.allowance:
        spread = random.random()  # noqa: S311  (jitter, not a secret)
        return Entry(again_at=now + timedelta(seconds=1 + rules.LONGEST_SPREAD_SECONDS * spread))
    circuit.released += 1
    circuit.save(update_fields=["released_second", "released", "allowance"])
    return FREE


# --- what came back -----------------------------------------------------------------------------------------


def heard(attempt: Attempt, tool: Tool, definition: Definition, observation: Observation, found: Classified) -> None:
    """Take in what came back of a call in time: a trial's end, or one more fault. Anything else costs nothing."""
    fault = rules.is_fault(observation, found)
    if attempt.trial:
        slot = CircuitSlot.objects.filter(attempt=attempt, ended_at__isnull=True).first()
        _trial_ended(slot, definition, well=not fault)
    elif fault and attempt.circuit:
        _count_fault(attempt.circuit, definition, attempt.tenant_id, _why(observation, tool))


def heard_look(
    name: str | None,
    slot_id: uuid.UUID | None,
    definition: Definition,
    tenant_id: uuid.UUID,
    *,
    fault: bool,
    fact: str,
) -> None:
    """The same for a look-up or a health read through that circuit."""
    if slot_id is not None:
        slot = CircuitSlot.objects.filter(pk=slot_id, ended_at__isnull=True).first()
        _trial_ended(slot, definition, well=not fault)
    elif fault and name is not None:
        _count_fault(name, definition, tenant_id, fact)


def _trial_ended(slot: CircuitSlot | None, definition: Definition, *, well: bool) -> None:
    """One failure opens it again, enough successes close it; a slot whose lease ran out, or of an earlier trip,
    decides nothing more."""
    now = read_clock()
    if slot is None or slot.lease_until <= now:
        return
    circuit = Circuit.objects.select_for_update().get(pk=slot.circuit_id)
    CircuitSlot.objects.filter(pk=slot.pk).update(ended_at=now, went_well=well)
    if circuit.state != "half_open" or circuit.trips != slot.trip:
        return
    terms = rules.terms_of(circuit.name, definition.manifest.connectors)
    if not well:
        _open(circuit, now, terms, quiet_seconds=None, why="A trial met the same trouble.", faults=1, calls=1)
    elif rules.closes(standing(circuit, now).good, terms):
        _move(circuit, "closed", "circuit_closed", "Trials went well.", until=None, closed_at=now, faults=[], by=None)


_ADD_FAULT = """
INSERT INTO runs_circuit AS c (id, tenant_id, name, faults) VALUES (%s, %s, %s, ARRAY[app_now()])
ON CONFLICT (tenant_id, name) DO UPDATE SET faults = (
    SELECT array_agg(at ORDER BY at) FROM (
      SELECT at FROM unnest(c.faults || app_now()) at WHERE at > app_now() - make_interval(secs => %s)
      ORDER BY at DESC LIMIT %s) kept)
  WHERE c.state = 'closed'
RETURNING c.*
"""


def _count_fault(name: str, definition: Definition, tenant_id: uuid.UUID, why: str) -> None:
    """One more fault of a circuit that is closed, whose row is locked by this; its first one makes the row.

    Where there are enough of them, the calls beside them are counted.
    """
    terms = rules.terms_of(name, definition.manifest.connectors)
    added = [new_id(), tenant_id, name, terms.window_seconds, rules.MOST_FAULTS]
    [rows] = read_together(Statement(_ADD_FAULT, added, Circuit))
    circuit: Circuit | None = next(iter(rows), None)
    if circuit is None:
        return  # it is open already: what still comes back of calls that left before says nothing new
    now, faults = circuit.faults[-1], circuit.faults
    if not rules.may_open(len(faults), terms):
        return
    since, limit = rules.counted_from(faults, now, terms), rules.enough_calls(len(faults), terms)
    calls = traffic.calls(circuit, since, now, limit=limit)
    if not rules.opens(len(faults), calls, terms):
        return
    calls = max(calls, len(faults))
    quiet = (now - circuit.closed_at).total_seconds() if circuit.closed_at else None
    if rules.can_be_tried(name, definition.manifest.tools, definition.manifest.connectors):
        _open(circuit, now, terms, quiet_seconds=quiet, why=why, faults=len(faults), calls=calls)
    else:
        _only_tell(circuit, len(faults), calls, why)


def _only_tell(circuit: Circuit, faults: int, calls: int, why: str) -> None:
    """Nothing harmless goes this way, so it could never be tried: it stays closed, and the record says so."""
    Circuit.objects.filter(pk=circuit.pk).update(faults=[])
    reason = f"{why} It stays closed: nothing that could be repeated without harm goes through it."
    _write(circuit, "circuit_faulty", RULE, reason, {"faults": faults, "calls": calls})


def _open(
    circuit: Circuit, now: datetime, terms: Terms, *, quiet_seconds: float | None, why: str, faults: int, calls: int
) -> None:
    seconds = rules.cooldown(circuit.cooldown_seconds, quiet_seconds, terms)
    _move(
        circuit, "open", "circuit_opened", why, until=now + timedelta(seconds=seconds), cooldown_seconds=seconds,
        trips=F("trips") + 1, volume=calls, reason=why, by=None, data={"faults": faults, "calls": calls},
    )  # fmt: skip
    _clear_slots(circuit, now)


def _clear_slots(circuit: Circuit, now: datetime) -> None:
    """With a new trip the trials before it count for nothing: those that are over go, so that slots stay as few as
    one trip needs. Their ends stand in the history."""
    over = Q(ended_at__isnull=False) | Q(lease_until__lte=now)
    slots = CircuitSlot.objects.filter(over, circuit=circuit).order_by("id").values_list("pk", flat=True)
    CircuitSlot.objects.filter(pk__in=list(slots[:MOST_CLEARED])).delete()


def _move(
    circuit: Circuit, to: str, kind: str, why: str, *, data: dict[str, Any] | None = None, **changes: Any
) -> None:
    move(circuit, to, RULE, kind=kind, why=why, data=data, **changes)


def move(
    circuit: Circuit,
    to: str,
    actor: Actor,
    *,
    kind: str,
    why: str,
    data: dict[str, Any] | None = None,
    **changes: Any,
) -> None:
    """Move a circuit and write the event beside it; its row is locked."""
    before = circuit.state
    advance(circuit, machine="circuit", to=to, since=database_now(), **changes)
    _write(circuit, kind, actor, why, data or {}, before)


def _write(circuit: Circuit, kind: str, actor: Actor, why: str, data: dict[str, Any], before: str = "") -> None:
    told = {"circuit": circuit.name, "trips": circuit.trips, "cooldown_seconds": circuit.cooldown_seconds, **data}
    record.write_event(
        None, kind, actor, tenant_id=circuit.tenant_id, from_state=before or circuit.state, to_state=circuit.state,
        reason=why, data=told,
    )  # fmt: skip


def _why(observation: Observation, tool: Tool) -> str:
    if observation.kind == "reply":
        return f"{tool.name} was answered {observation.status or observation.code}."
    return f"{tool.name}: {observation.kind.replace('_', ' ')}."
