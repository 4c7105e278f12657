"""Granting a call, or saying why not: in one statement where nothing stands in the way, else under the run's lock."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q
from steadyhand.contract import OUTCOME_OF, Permit

from recovery import case as cases
from recovery import escalation, leases, settle
from recovery.answers import NotFound, seconds_between
from recovery.clients import Credentials, NotAuthenticated
from recovery.proposal import Prepared, Refusal, prepare
from recovery.rules import messages
from recovery.rules.decide import Action as Answer
from runs import hot, record, vault
from runs.ids import new_id
from runs.models import Action, Attempt, Run
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import RUN_OPEN

__all__ = ["needs_care", "prepare", "quickly", "under_lock"]

DISPATCH_WITHIN_SECONDS = 5.0
ASK_AGAIN_SECONDS = 1.0
OUTCOME_NOT_OPEN = ("proposed", "awaiting_approval", "approved", "permitted", "refused_transient", "absent_final")
CLOSED_TO_CALLS = ("escalated", "compensating", "cancelling")


def needs_care(prepared: Prepared) -> bool:
    """Whether a person must agree first: such a call never takes the quick way."""
    over = cases.over_threshold(prepared.facts.definition, prepared.tool, prepared.value_minor)
    return prepared.tool.effect == "write" and (prepared.tool.requires_approval or over)


def quickly(who: Credentials, prepared: Prepared, *, request_id: str) -> Permit | None:
    """Grant a first attempt, or replay a proven one, in one statement; None where the case has to be read.

    Raises NotAuthenticated, NotFound, and IntegrityError when a twin was granted at the same moment.
    """
    action_pk, attempt_pk = new_id(), new_id()
    row = hot.permit(
        **_identity(who, prepared),
        action=action_pk,
        attempt=attempt_pk,
        event=new_id(),
        layer=prepared.layer,
        key=prepared.key(),
        lease=prepared.lease_seconds,
        after=list(prepared.tool.after) if prepared.tool.after is not None else None,
        request=request_id,
    )
    if row["client"] is None:
        raise NotAuthenticated
    if row["run_state"] is None:
        raise NotFound
    if row["granted"]:
        return _execute(prepared, attempt_pk, number=1, fence=1, key=prepared.key())
    if row["action_state"] == "succeeded":
        return _replay(prepared, row["sealed_result"])
    return None


def under_lock(run: Run, prepared: Prepared, actor: Actor) -> Permit:
    """Answer a proposal with everything in view. The run is locked; a lease that ran out is settled first."""
    if leases.expire_of_run(run):
        run.refresh_from_db()
    existing = _existing(run, prepared)
    if existing is not None:
        # Under whatever step it is asked for, this is the first one's action: its id and step stand on every answer,
        # for the id that is sent is the id that a look-up will ask for (I9).
        prepared = replace(prepared, action_id=existing.action_id, step=existing.step)
    if existing is not None and existing.state in ("succeeded", "compensated"):
        return _replay(prepared, existing.sealed_result)
    if run.state not in RUN_OPEN or run.goal != "forward":
        return _stop(run, prepared)
    if existing is not None and existing.state in ("rejected", "refused_permanent", "void"):
        return _deny(prepared, Refusal(existing.reason_code or "not_applied", existing.error_field))
    if prepared.refusal is not None:
        return _reject(run, prepared, actor) if existing is None else _withdraw(run, existing, prepared, actor)
    waits_for = _blocking(run, prepared)
    if waits_for is not None:
        return _wait(prepared, waits_for.due_at or _lease_end(waits_for), reason=waits_for.reason_code)
    if run.state in CLOSED_TO_CALLS:
        return _wait(prepared, None, reason=run.reason_code)
    if existing is not None:
        return _again(run, existing, prepared, actor)
    return _first(run, prepared, actor)


def _first(run: Run, prepared: Prepared, actor: Actor) -> Permit:
    """A new call: the ceilings first, then a person's agreement where one is needed, then the permit."""
    spent = _ceiling(run, read_clock())
    if spent is not None:
        settle.escalate_run(run, spent, actor, failed_step=prepared.step)
        return _stop(run, prepared)
    action = _write_action(run, prepared, "proposed")
    if needs_care(prepared):
        return _await_approval(run, action, prepared, actor)
    Run.objects.filter(pk=run.pk).update(tool_calls=F("tool_calls") + 1)
    return _grant(run, action, prepared, actor)


def _again(run: Run, action: Action, prepared: Prepared, actor: Actor) -> Permit:
    """The same call once more: the table says whether it may be sent (I17: one owner of retries)."""
    if action.state == "permitted":
        return _wait(prepared, _lease_end(action), reason=None)
    case = cases.read(run, action)
    if action.state == "probing":
        return _wait(prepared, case.now, reason=action.reason_code)
    if action.due_at is not None and action.due_at > case.now:
        return _wait(prepared, action.due_at, reason=action.reason_code)
    if case.answer.action is Answer.RETRY:
        generation = action.key_generation + (1 if case.evidence.key == "expired" else 0)
        return _grant(run, action, prepared, actor, generation=generation)
    if case.answer.action in (Answer.PROBE, Answer.WAIT):
        return _wait(prepared, action.due_at, reason=action.reason_code)  # a waiting agent moves no due time (I16)
    settle.settle(run, action, actor)
    action.refresh_from_db()
    run.refresh_from_db()
    if action.settled_at is None:
        return _wait(prepared, action.due_at, reason=action.reason_code)
    return _stop(run, prepared) if run.state not in RUN_OPEN else _deny(prepared, Refusal(action.reason_code or ""))


def _grant(run: Run, action: Action, prepared: Prepared, actor: Actor, *, generation: int = 1) -> Permit:
    key = vault.remote_key(prepared.facts.definition.keys, action.action_id, generation)
    if generation != action.key_generation:
        Action.objects.filter(pk=action.pk).update(key_generation=generation, first_dispatched_at=None)
        action.refresh_from_db()
    attempt = record.grant_attempt(
        action, run=run, layer=prepared.layer, lease_seconds=prepared.lease_seconds, key=key, actor=actor
    )
    Run.objects.filter(pk=run.pk).update(in_flight=F("in_flight") + 1, version=F("version") + 1)
    settle.refresh_run(run, actor)
    return _execute(prepared, attempt.pk, number=attempt.number, fence=attempt.fence, key=key)


def _reject(run: Run, prepared: Prepared, actor: Actor) -> Permit:
    """Write the refusal down: the action is over, the agent may propose something else (ruling 18)."""
    refusal = prepared.refusal or Refusal("policy_denied")
    action = _write_action(
        run,
        prepared,
        "rejected",
        reason_code=refusal.reason,
        error_field=refusal.field[:300],
        settled_at=read_clock(),
    )
    record.write_event(
        run, "rejected", actor, action=action, to_state="rejected", reason=refusal.sentence,
        data={"step": action.step, "tool": action.tool, "reason_code": refusal.reason, "field": refusal.field},
    )  # fmt: skip
    return _deny(prepared, refusal)


def _withdraw(run: Run, action: Action, prepared: Prepared, actor: Actor) -> Permit:
    """A call whose authorization ended between two tries: over if nothing happened, else only its outcome matters."""
    refusal = prepared.refusal or Refusal("policy_denied")
    if action.state not in ("refused_transient", "absent_final"):
        return _wait(prepared, action.due_at or _lease_end(action), reason=action.reason_code)
    record.move_action(
        action,
        "refused_permanent",
        actor,
        run=run,
        kind="refused",
        reason=refusal.sentence,
        reason_code=refusal.reason,
        error_field=refusal.field[:300],
    )
    settle.refresh_run(run, actor)
    return _deny(prepared, refusal)


def _await_approval(run: Run, action: Action, prepared: Prepared, actor: Actor) -> Permit:
    record.move_action(
        action, "awaiting_approval", actor, run=run, kind="approval_required", reason_code="approval_required"
    )
    escalation.open_task(run, "approval_required", action=action, actor=actor)
    settle.refresh_run(run, actor)
    return _wait(prepared, None, reason="approval_required")


def _write_action(run: Run, prepared: Prepared, state: str, **more: Any) -> Action:
    return Action.objects.create(
        pk=new_id(),
        tenant_id=run.tenant_id,
        run=run,
        action_id=prepared.action_id,
        step=prepared.step,
        tool=prepared.tool.name,
        tool_version=prepared.tool.version,
        effect=prepared.tool.effect,
        turn=run.turns,
        arguments_hash=prepared.arguments_hash,
        arguments=prepared.redacted,
        sealed_arguments=prepared.sealed,
        value_minor=prepared.value_minor,
        currency=prepared.currency,
        idempotency_key=prepared.key(),
        state=state,
        **more,
    )


def _existing(run: Run, prepared: Prepared) -> Action | None:
    """The same identity; else, for a write, an unsettled one that means the same under another step."""
    same = Action.objects.filter(action_id=prepared.action_id).first()
    if same is not None or prepared.tool.effect == "read":
        return same
    return run.actions.filter(
        tool=prepared.tool.name, arguments_hash=prepared.arguments_hash, effect="write", settled_at__isnull=True
    ).first()


def _blocking(run: Run, prepared: Prepared) -> Action | None:
    """The unsettled write that this call has to wait for: an earlier turn's, one of this turn whose outcome is open,
    or its own step's with other arguments."""
    earlier = Q(turn__lt=run.turns) | ~Q(state__in=OUTCOME_NOT_OPEN)
    if prepared.tool.after is not None:
        earlier &= Q(tool__in=prepared.tool.after)
    waiting = run.actions.filter(earlier | Q(step=prepared.step), effect="write", settled_at__isnull=True)
    others = waiting.exclude(action_id=prepared.action_id).exclude(
        tool=prepared.tool.name, arguments_hash=prepared.arguments_hash
    )
    return others.order_by("id").first()


def _ceiling(run: Run, now: datetime) -> str | None:
    if run.tool_calls >= run.max_tool_calls:
        return "tool_call_budget_exhausted"
    if run.deadline_at is not None and run.deadline_at <= now:
        return "deadline_exceeded"
    return cases.spent_budget(run, now)


def _lease_end(action: Action) -> datetime | None:
    return Attempt.objects.filter(action=action, ended_at__isnull=True).values_list("lease_until", flat=True).first()


def _identity(who: Credentials, prepared: Prepared) -> dict[str, Any]:
    return {
        "tenant": who.tenant_id,
        "client": who.client_id,
        "secret": who.secret_hash,
        "run": prepared.run_id,
        "workflow": prepared.facts.definition.id,
        "action_id": prepared.action_id,
        "step": prepared.step,
        "tool": prepared.tool.name,
        "tool_version": prepared.tool.version,
        "effect": prepared.tool.effect,
        "arguments_hash": prepared.arguments_hash,
        "arguments": json.dumps(prepared.redacted),
        "sealed": prepared.sealed,
        "value": prepared.value_minor,
        "currency": prepared.currency,
    }


# --- the answers --------------------------------------------------------------------------------------------


def _execute(prepared: Prepared, attempt: uuid.UUID, *, number: int, fence: int, key: str) -> Permit:
    return Permit(
        answer="execute",
        run_id=str(prepared.run_id),
        step=prepared.step,
        action_id=prepared.action_id,
        attempt_id=str(attempt),
        attempt=number,
        fence=fence,
        idempotency_key=key if prepared.tool.idempotency.kind == "key" else None,
        timeout_seconds=prepared.tool.timeout_seconds,
        dispatch_within_seconds=DISPATCH_WITHIN_SECONDS,
    )


def _replay(prepared: Prepared, sealed: bytes | memoryview | None) -> Permit:
    result = vault.unseal(prepared.facts.definition.keys, sealed) if sealed else None
    return Permit(
        answer="replay", run_id=str(prepared.run_id), step=prepared.step, action_id=prepared.action_id, result=result
    )


def _wait(prepared: Prepared, due_at: datetime | None, *, reason: str | None) -> Permit:
    """Wait: until a time that is known, or, without one, until a person or a look-up has settled it."""
    now = read_clock()
    ready = due_at is not None and due_at <= now
    shown = now + timedelta(seconds=ASK_AGAIN_SECONDS) if ready else due_at
    error = messages.error_for_model(reason) if reason and OUTCOME_OF[reason].value != "retryable" else None
    return Permit(
        answer="wait",
        run_id=str(prepared.run_id),
        step=prepared.step,
        action_id=prepared.action_id,
        due_at=shown,
        wait_seconds=seconds_between(now, shown) if shown else None,
        error=error,
    )


def _deny(prepared: Prepared, refusal: Refusal) -> Permit:
    error = messages.error_for_model(refusal.reason, field=refusal.field, detail=refusal.sentence)
    return Permit(
        answer="deny", run_id=str(prepared.run_id), step=prepared.step, action_id=prepared.action_id, error=error
    )


def _stop(run: Run, prepared: Prepared) -> Permit:
    error = messages.error_for_model(run.reason_code or "stopped_by_operator")
    return Permit(answer="stop", run_id=str(run.pk), step=prepared.step, error=error)
