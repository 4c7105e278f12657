"""Granting a call, or saying why not, with everything in view: the run is locked by the caller."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F
from steadyhand.contract import Permit

from recovery import (
    answers,
    circuits,
    crashpoints,
    escalation,
    gate,
    leases,
    parts,
    proposal,
    refusals,
    settle,
    sla,
    view,
)
from recovery import case as cases
from recovery.circuits import Entry
from recovery.proposal import Prepared, Refusal
from recovery.rules import messages
from recovery.rules.decide import Action as Answer
from recovery.tasks import ring
from recovery.view import View
from recovery.work import orders
from runs import budgets, record, vault
from runs.models import Action, Run, Stop
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import RUN_OPEN
from runs.together import read_together


def another_version(run: Run, step: str, actor: Actor) -> Permit:
    """The agent was written for another version of the workflow than its run is pinned to: a person's (F022)."""
    if run.state in RUN_OPEN and run.goal == "forward":
        settle.escalate_run(run, "definition_changed", actor, failed_step=step)
    return answers.stop(run, step)


def under_lock(run: Run, prepared: Prepared, actor: Actor, seen: View) -> Permit:
    """Answer a proposal with everything in view. The run is locked; a lease that ran out is settled first."""
    if seen.has_expired:
        leases.expire_of_run(run)
        run.refresh_from_db()
        seen = view.of(prepared, read_together(*view.questions(prepared)))
    existing, asked_as = seen.existing(), prepared.action_id
    prepared = gate.under_its_own_name(existing, prepared)
    if existing is not None and existing.state in ("succeeded", "compensated"):
        return answers.replay(prepared, existing.sealed_result)
    if run.state not in RUN_OPEN or run.goal != "forward":
        return answers.stop(run, prepared.step)
    if existing is not None and existing.state in gate.REFUSED:
        return refusals.refused_before(run, existing, prepared, actor, renamed=asked_as != existing.action_id)
    stop = seen.stop(run)
    if stop is not None:
        return _stopped(run, stop, prepared, actor)
    if existing is None and run.state not in gate.CLOSED_TO_CALLS and seen.runs_in_circles():
        return refusals.escalate(run, "no_progress_loop", prepared, actor)
    refusal = prepared.refusal or (seen.drift() if existing is None else None)
    if refusal is not None:
        return refusals.refuse(run, existing, prepared, refusal, actor)
    permit = _in_turn(run, existing, prepared, actor, seen)
    if permit.answer == "wait" and existing is not None and existing.attempts > 0 and not hosted(prepared):
        refusals.note_retry(run, existing, prepared, actor)
    return permit


def _in_turn(run: Run, existing: Action | None, prepared: Prepared, actor: Actor, seen: View) -> Permit:
    """Nothing speaks against the call itself: it waits for what comes before it, or goes ahead."""
    waits_for = seen.blocking(run, existing)
    if waits_for is not None:
        sentence = f"{waits_for.tool} has to be settled first; this call has not been looked at."
        due_at = waits_for.due_at or seen.lease_end(waits_for)
        return answers.wait(
            prepared, due_at, reason=waits_for.reason_code or "async_pending", sentence=sentence, now=seen.now
        )
    if run.state in gate.CLOSED_TO_CALLS:
        return answers.wait(prepared, None, reason=run.reason_code, now=seen.now)
    batch = parts.of_proposal(run, prepared)
    if batch is not None and batch.is_open:
        return answers.wait(prepared, None, reason="external_outcome_unknown")
    if batch is not None and batch.is_done:
        return answers.replay_result(prepared, batch.recorded())
    if existing is not None:
        return _again(run, existing, prepared, actor, seen)
    return _first(run, prepared, actor, seen)


def _first(run: Run, prepared: Prepared, actor: Actor, seen: View) -> Permit:
    """A new call: the ceilings first, then what it rests on, then a person's agreement where one is needed."""
    fired = budgets.fired(run, read_clock(), unit="call")
    if fired:
        return refusals.escalate(run, fired[0], prepared, actor, fired=fired)
    if gate.is_taken(run, prepared):
        return refusals.refuse(run, None, prepared, refusals.taken(prepared.tool), actor)
    refusal = gate.unmet(run, None, prepared)
    if refusal is not None:
        return refusals.hold_back(run, None, prepared, refusal, actor)
    if gate.needs_care(prepared):
        return _await_approval(run, proposal.write_action(run, prepared, "proposed"), prepared, actor)
    if _is_troubled(prepared, seen):
        return _ask_table(run, proposal.write_action(run, prepared, "proposed"), prepared, actor, seen)
    return _begin(run, None, prepared, actor, seen)


def _is_troubled(prepared: Prepared, seen: View) -> bool:
    """Whether the circuit of this call is not closed: then the table says whether the call may be a trial."""
    found = circuits.find(seen.troubled, prepared.circuit)
    return found is not None and found.state != "closed"


def hosted(prepared: Prepared) -> bool:
    """Whether the worker sends this call: who asks for it only waits, and repeats nothing by asking again."""
    return prepared.tool.dispatch == "host"


def _again(run: Run, action: Action, prepared: Prepared, actor: Actor, seen: View) -> Permit:
    """The same call once more: the table says whether it may be sent (I17: one owner of retries)."""
    if action.state == "permitted":
        since = orders.under_way_since(action) if hosted(prepared) else None
        lease_end = seen.lease_end(action)
        return answers.soon(prepared, None, since) if since else answers.wait(prepared, lease_end, reason=None)
    if action.state == "awaiting_approval":
        return answers.wait(prepared, None, reason="approval_required", now=seen.now)
    if action.state == "refused_transient" and action.due_at is not None and action.due_at > seen.now:
        return answers.wait(prepared, action.due_at, reason=action.reason_code, now=seen.now)
    if cases.waits_for_credential(action):
        return answers.wait(prepared, None, reason=action.reason_code)
    since = orders.under_way_since(action)
    if since is not None:
        return answers.soon(prepared, action.reason_code, since)
    return _ask_table(run, action, prepared, actor, seen)


def _ask_table(run: Run, action: Action, prepared: Prepared, actor: Actor, seen: View) -> Permit:
    case = cases.read(run, action)
    if action.due_at is not None and action.due_at > case.now:
        return _waits(action, prepared)
    if case.answer.action is Answer.RETRY:
        return _retry(run, action, prepared, actor, seen, expired=case.evidence.key == "expired")
    asks_already = action.due_at is not None or action.state not in gate.NOT_SENT_OR_FREE
    if case.answer.action in (Answer.PROBE, Answer.WAIT) and not case.waits_for_circuit and asks_already:
        return _waits(action, prepared)  # waiting moves no due time (I16)
    return _settled(run, action, prepared, actor)


def _settled(run: Run, action: Action, prepared: Prepared, actor: Actor) -> Permit:
    """What the table makes of a call that may not be sent now."""
    settle.settle(run, action, actor)
    action.refresh_from_db()
    run.refresh_from_db()
    if action.settled_at is None:
        return _waits(action, prepared)
    if run.state not in RUN_OPEN:
        return answers.stop(run, prepared.step)
    return answers.deny(prepared, Refusal(action.reason_code or "not_applied"))


def _waits(action: Action, prepared: Prepared) -> Permit:
    rest = f"{prepared.tool.name} is given a rest, for what it calls does not answer as it should."
    sentence = rest if action.reason_code == "circuit_open" else ""
    return answers.wait(prepared, action.due_at, reason=action.reason_code, sentence=sentence)


def _retry(run: Run, action: Action, prepared: Prepared, actor: Actor, seen: View, *, expired: bool) -> Permit:
    """What may be sent once more is sent once more, unless what it rests on has changed while it was held back."""
    refusal = gate.unmet(run, action, prepared) if action.state in gate.NOT_SENT_OR_FREE else None
    if refusal is not None:
        return refusals.hold_back(run, action, prepared, refusal, actor)
    if action.attempts == 0 and not orders.was_ordered(action):
        return _begin(run, action, prepared, actor, seen)
    entry = _enter(prepared, seen, waited=True)
    if entry.again_at is not None:
        return _held_back(run, action, prepared, actor, entry.again_at)
    generation = action.key_generation + (1 if expired else 0)
    return _grant(run, action, prepared, actor, entry, generation=generation)


def _begin(run: Run, action: Action | None, prepared: Prepared, actor: Actor, seen: View) -> Permit:
    """The first dispatch of a call: it takes a call of the budgets, here and above, and of the tool's window."""
    now = read_clock()
    fired = budgets.fired(run, now, unit="call")
    if fired:
        return refusals.escalate(run, fired[0], prepared, actor, fired=fired)
    next_window = gate.reserve_rate(run, prepared, now)
    if next_window is not None:
        sentence = f"{prepared.tool.name} was called as often as its window allows."
        return answers.wait(prepared, next_window, reason="call_rate_limited", sentence=sentence)
    entry = _enter(prepared, seen, waited=action is not None)
    if entry.again_at is not None:
        action = action or proposal.write_action(run, prepared, "proposed")
        return _held_back(run, action, prepared, actor, entry.again_at)
    above = refusals.count_call(run, actor)
    if above is not None:
        circuits.leave(entry)
        return refusals.escalate(run, above, prepared, actor)
    crashpoints.point("C03")
    return _grant(run, action or proposal.write_action(run, prepared, "proposed"), prepared, actor, entry)


def _enter(prepared: Prepared, seen: View, *, waited: bool) -> Entry:
    """Through the circuit; what the worker sends goes through it when the worker sends it."""
    if hosted(prepared):
        return circuits.FREE
    lease_until = seen.now + timedelta(seconds=prepared.lease_seconds)
    return circuits.enter(
        seen.troubled, prepared.circuit, prepared.facts.definition, purpose="call", lease_until=lease_until,
        waited=waited,
    )  # fmt: skip


def _held_back(run: Run, action: Action, prepared: Prepared, actor: Actor, again_at: datetime) -> Permit:
    """Somebody else has the trial, or this second's share of what may go again is used up: its turn comes (F108)."""
    if action.reason_code == "circuit_open":
        Action.objects.filter(pk=action.pk).update(due_at=again_at)
    else:
        record.move_action(
            action, action.state, actor, run=run, kind="waiting", reason_code="circuit_open", due_at=again_at
        )  # fmt: skip
    settle.refresh_run(run, actor)
    action.refresh_from_db()
    return _waits(action, prepared)


def _grant(
    run: Run, action: Action, prepared: Prepared, actor: Actor, entry: Entry, *, generation: int = 1
) -> Permit:
    if hosted(prepared):
        orders.order_send(action, actor=actor, ring=ring)
        return answers.soon(prepared, None)
    batch = parts.of_proposal(run, prepared)
    key = vault.remote_key(prepared.facts.definition.keys, action.action_id, generation)
    refresh = action.reason_code == "credential_refresh" and action.attempts > 0
    if generation != action.key_generation:
        Action.objects.filter(pk=action.pk).update(key_generation=generation, first_dispatched_at=None)
        action.refresh_from_db()
    attempt = record.grant_attempt(
        action, run=run, layer=prepared.layer, lease_seconds=prepared.lease_seconds, key=key, actor=actor,
        circuit=prepared.circuit, trial=entry.slot is not None,
    )  # fmt: skip
    circuits.belongs_to(entry, attempt)
    counted = {"in_flight": F("in_flight") + 1, "version": F("version") + 1}
    Run.objects.filter(pk=run.pk).update(finished_at=None, **counted)
    settle.refresh_run(run, actor)
    return answers.execute(
        prepared, attempt.pk, number=attempt.number, fence=attempt.fence, key=key,
        arguments=batch.arguments() if batch else None, refresh_credential=refresh or None,
    )  # fmt: skip


# --- what else a proposal may come to -----------------------------------------------------------------------


def _stopped(run: Run, stop: Stop, prepared: Prepared, actor: Actor) -> Permit:
    """Nothing leaves while the switch stands. Quarantine hands the run to a person; else it goes on afterwards."""
    if stop.mode == "quarantine":
        return refusals.escalate(run, "stopped_by_operator", prepared, actor)
    switch = f"A {stop.mode} of {stop.scope if stop.scope == 'everything' else f'the {stop.scope}'} stands."
    after = f"{switch} Once it is lifted, the run is resumed by its id."
    return answers.stopped(run.pk, prepared.step, messages.error_for_model("stopped_by_operator", detail=after))


def _await_approval(run: Run, action: Action, prepared: Prepared, actor: Actor) -> Permit:
    record.move_action(
        action, "awaiting_approval", actor, run=run, kind="approval_required", reason_code="approval_required",
        due_at=sla.answer_by(run, read_clock()),
    )  # fmt: skip
    escalation.open_task(run, "approval_required", action=action, actor=actor)
    settle.refresh_run(run, actor)
    return answers.wait(prepared, None, reason="approval_required")
