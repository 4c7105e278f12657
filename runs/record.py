"""The write API for facts: open a run, write an event, an attempt, evidence, an effect. It decides nothing.

Except for the two statements of runs/hot.py, everything here runs in the caller's transaction, inside the tenant
wall, with the run's row locked first, so that whoever changes a run does so one after the other.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import F
from steadyhand.contract import OpenRun
from steadyhand.identity import BadInput
from steadyhand.manifest import Manifest

from runs import gathering, redact, states
from runs.models import Action, AgentClient, Attempt, Effect, Event, Evidence, Run, Workflow
from runs.querysets import read_clock
from runs.together import Statement, read_together


@dataclass(frozen=True)
class Actor:
    """Who acts: kind is person, agent, rule, timer or connector."""

    kind: str
    name: str
    request_id: str = ""


RULE = Actor("rule", "steadyhand")
TIMER = Actor("timer", "sweep")


def lock_run(run_id: uuid.UUID) -> Run | None:
    """The run with its row locked; None if it does not exist behind the open wall.

    A run's key never changes, so every lock on one leaves its key free: whoever has a sub-agent's row has its foreign
    key checked, and would else wait for whoever has the row above and comes down for this one.
    """
    return Run.objects.select_for_update(no_key=True).filter(pk=run_id).first()


def lock_name(name: str) -> None:
    """Until this transaction ends nobody else gets past this line with the same name; for what has no row to lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


_FAMILY = """
WITH RECURSIVE family AS (
  SELECT r.id, r.parent_id, 0 AS up FROM runs_run r WHERE r.id = %s AND (%s::uuid IS NULL OR EXISTS (
    SELECT FROM runs_agentclient c WHERE c.id = r.client_id AND c.id = %s AND c.secret_hash = %s
      AND c.revoked_at IS NULL AND c.expires_at > app_now()))
  UNION ALL SELECT p.id, p.parent_id, family.up + 1 FROM family JOIN runs_run p ON p.id = family.parent_id
)
SELECT r.* FROM runs_run r JOIN family ON family.id = r.id ORDER BY family.up DESC FOR NO KEY UPDATE OF r
"""


def lock_family(run_id: uuid.UUID) -> list[Run]:
    """The run, last, and before it every run that it works for, the root first: all locked, in this order.

    Whoever charges work to a run uses this and not `lock_run`: two children that reach for their parent's last unit
    take the parent's lock before their own, so that neither can wait for the other for ever.
    """
    return read_together(family(run_id))[0]


def family(run_id: uuid.UUID, *, client: uuid.UUID | None = None, secret_hash: bytes | None = None) -> Statement:
    """The statement of `lock_family`; with a client, for a run of theirs only, and only if the secret is right."""
    return Statement(_FAMILY, [run_id, client, client, secret_hash], Run)


def ancestors(run: Run) -> list[Run]:
    """The runs that this one works for as they stand now, the root first; `lock_family` has locked them."""
    found: list[Run] = []
    above = run.parent_id
    while above is not None:
        found.append(Run.objects.get(pk=above))
        above = found[-1].parent_id
    return found[::-1]


def open_run(
    request: OpenRun, *, client: AgentClient, workflow: Workflow, manifest: Manifest, parent: Run | None = None
) -> Run:
    """A new run with its ceilings and its end set from the manifest; the caller has looked for an earlier one.

    Raises BadInput for a reference or a scope that looks like a secret: both are compared, so neither can be masked.
    """
    _refuse_secrets(request)
    now, budgets = read_clock(), manifest.budgets
    deadline = request.deadline_at
    if deadline is None and manifest.deadline_seconds is not None:
        deadline = now + timedelta(seconds=manifest.deadline_seconds)
    run = Run.objects.create(
        tenant_id=client.tenant_id,
        workflow=workflow,
        client=client,
        parent=parent,
        client_ref=request.client_ref,
        intent=redact.clean_text(request.intent),
        scope=request.scope.model_dump(mode="json"),
        requester=redact.clean_text(request.requester or "", 200),
        customer_ref=redact.clean_text(request.customer_ref or "", 200),
        trace_id=redact.clean_text(request.trace_id or "", 200),
        model=redact.clean_text(request.model or "", 200),
        prompt_version=redact.clean_text(request.prompt_version or "", 200),
        max_turns=budgets.max_turns,
        max_tool_calls=budgets.max_tool_calls,
        max_attempts=budgets.max_attempts_per_step,
        max_input_tokens=budgets.max_input_tokens,
        max_output_tokens=budgets.max_output_tokens,
        max_cost_minor=budgets.max_estimated_cost_minor_units,
        elapses_at=now + timedelta(seconds=budgets.max_elapsed_seconds),
        deadline_at=deadline,
    )
    write_event(run, "opened", Actor("agent", client.name), to_state="planning")
    return run


def _refuse_secrets(request: OpenRun) -> None:
    named = [(f"scope.ids.{field}", text) for field, ids in request.scope.ids.items() for text in (field, *ids)]
    for field, text in [("client_ref", request.client_ref), *named]:
        remedy = redact.fault(text)
        if remedy is not None:
            raise BadInput(redact.clean_text(field, 200), remedy)


def write_event(
    run: Run | None,
    kind: str,
    actor: Actor,
    *,
    tenant_id: uuid.UUID | None = None,
    action: Action | None = None,
    from_state: str = "",
    to_state: str = "",
    reason: str = "",
    data: dict[str, Any] | None = None,
) -> Event:
    """Append to the history; the row is also the audit row (I11)."""
    event = Event(
        tenant_id=run.tenant_id if run else _given(tenant_id),
        run_id=run.pk if run else None,
        action_id=action.pk if action else None,
        kind=kind,
        actor=actor.name,
        actor_kind=actor.kind,
        from_state=from_state,
        to_state=to_state,
        reason=gathering.once(reason, lambda: redact.clean_text(reason)),
        request_id=actor.request_id,
        data=data or {},
    )
    gathering.insert(event)
    return event


def move_run(
    run: Run,
    to: str,
    actor: Actor,
    *,
    kind: str,
    reason: str = "",
    data: dict[str, Any] | None = None,
    **changes: Any,
) -> None:
    """Move a run and write the event, with `data` beside the changes; a run that stays where it is writes its changes
    and the event only."""
    before = run.state
    states.advance_run(run, to, **changes)
    write_event(run, kind, actor, from_state=before, to_state=to, reason=reason, data=_plain(changes) | (data or {}))


def move_action(
    action: Action, to: str, actor: Actor, *, run: Run, kind: str, reason: str = "", rule: str = "", **changes: Any
) -> None:
    """Move an action and write the event beside it. `rule`: the id of the row in the table that says so."""
    before = action.state
    states.advance_action(action, to, **changes)
    data = {"step": action.step, "tool": action.tool, **_plain(changes)} | ({"rule": rule} if rule else {})
    write_event(run, kind, actor, action=action, from_state=before, to_state=to, reason=reason, data=data)


def grant_attempt(
    action: Action,
    *,
    run: Run,
    layer: str,
    lease_seconds: float,
    key: str,
    actor: Actor,
    dispatched_at: datetime | None = None,
    circuit: str = "",
    trial: bool = False,
) -> Attempt:
    """Permit one more attempt: new number, new fence, verdict cleared (DECISIONS 2). The run's row is locked.

    `dispatched_at` is given only for what was sent elsewhere, before anybody told it here. `circuit` is the one that
    the call goes through; `trial` says that it holds a slot there.
    """
    now = dispatched_at or read_clock()
    move_action(
        action,
        "permitted",
        actor,
        run=run,
        kind="permitted",
        attempts=F("attempts") + 1,
        fence=F("fence") + 1,
        verdict="none",
        due_at=None,
        uncertain_since=None,
        gate_open=False,
        idempotency_key=key,
        first_dispatched_at=action.first_dispatched_at or now,
    )
    return Attempt.objects.create(
        tenant_id=run.tenant_id,
        run=run,
        action=action,
        number=action.attempts,
        fence=action.fence,
        layer=layer,
        idempotency_key=key,
        circuit=circuit,
        trial=trial,
        dispatched_at=now,
        lease_until=now + timedelta(seconds=lease_seconds),
    )


def end_attempt(attempt: Attempt, *, run: Run, fence: int, **observed: Any) -> bool:
    """Close an attempt if it is still open under this fence; False says that it was closed before (I6)."""
    if "ended_at" not in observed:
        observed["ended_at"] = read_clock()
    if not gathering.change(attempt, {"fence": fence, "ended_at": None}, observed):
        return False
    gathering.change(run, {}, {"in_flight": F("in_flight") - 1, "version": F("version") + 1})
    return True


def prove_effect(action: Action, *, run: Run, by: str, external_id: str) -> None:
    """Write down that the change exists; proving it twice changes nothing."""
    effect = Effect(
        tenant_id=run.tenant_id,
        action_id=action.pk,
        run_id=run.pk,
        step=action.step,
        external_id=external_id,
        amount_minor=action.value_minor,
        currency=action.currency,
        proven_by=by,
    )
    gathering.insert(effect, once=True)


def add_evidence(action: Action, *, run: Run, **fields: Any) -> Evidence:
    """Keep one thing that was learned; `after_attempt` says which dispatch it speaks about."""
    fields.setdefault("after_attempt", action.attempts)
    evidence = Evidence(tenant_id=run.tenant_id, run_id=run.pk, action_id=action.pk, **fields)
    gathering.insert(evidence)
    return evidence


def _given(tenant_id: uuid.UUID | None) -> uuid.UUID:
    if tenant_id is None:
        raise ValueError("an event without a run names its tenant")
    return tenant_id


def _plain(changes: dict[str, Any]) -> dict[str, Any]:
    """The part of a change that may stand in an event: short facts, no sealed bytes, no expressions."""
    return {name: value for name, value in changes.items() if isinstance(value, (str, int, bool)) and name != "claim"}
