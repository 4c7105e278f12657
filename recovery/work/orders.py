"""Ordering what the worker does by itself: a look that is due, an undo, a call whose credential no agent holds."""

from __future__ import annotations

from datetime import datetime

from steadyhand.manifest import Tool

from recovery import case as cases
from recovery.case import Case
from recovery.models import Decision
from recovery.rules import circuit
from recovery.rules.decide import TABLE_VERSION
from recovery.rules.decide import Action as Answer
from recovery.work import nudges
from runs import definitions, gathering
from runs.ids import new_id
from runs.models import Action, Run
from runs.record import Actor

NEVER_SENT = ("proposed", "approved")
WAITS = ("requested", "running")
FREE = (*NEVER_SENT, "refused_transient", "absent_final", "unknown", "absent", "probe_failed")
"""States from which a call may go out; a held one is a person's, one in flight or looked at is not asked."""


def sent_by_worker(action: Action, tool: Tool) -> bool:
    return action.role == "undo" or tool.dispatch == "host"


def under_way_since(action: Action) -> datetime | None:
    """Since when the worker has been told to look or to send without having come back; None if it has not."""
    told = gathering.rows(Decision, "action_id", action.pk, lambda found: found.filter(state__in=WAITS))
    return next((one.requested_at for one in told if one.state in WAITS), None)


def send_now(run: Run, action: Action, *, actor: Actor, ring: nudges.Ring) -> Decision | None:
    """Order the sending of this call if the worker sends it and the table lets it go; None otherwise.

    The first try of an agent's call is ordered by its proposal, which counts it.
    """
    tool = definitions.of_run(run).tools[action.tool]
    first = action.role == "call" and action.attempts == 0 and not was_ordered(action)
    if not sent_by_worker(action, tool) or first or action.state not in FREE:
        return None
    if cases.read(run, action).answer.action is not Answer.RETRY:
        return None
    return order_send(action, actor=actor, ring=ring)


def order_send(action: Action, *, actor: Actor, ring: nudges.Ring) -> Decision | None:
    """The decision to send; None if one is under way."""
    reason = "The undo is next." if action.role == "undo" else "The worker makes this call."
    return _order("send", action, reason, actor=actor, ring=ring)


def was_ordered(action: Action) -> bool:
    """Whether the worker was told before to send this: then it is counted already."""
    return Decision.objects.filter(action=action, verb="send").exists()


def order_trial(case: Case, *, actor: Actor, ring: nudges.Ring) -> Decision | None:
    """The decision to try whether a dependency is back; None if one is under way, or nothing could be asked.

    The call that waits lends it its question, and keeps its own due time.
    """
    return gathering.once(("trial", case.way), lambda: _order_trial(case, actor, ring))


def _order_trial(case: Case, actor: Actor, ring: nudges.Ring) -> Decision | None:
    trials = Decision.objects.filter(tenant_id=case.run.tenant_id, verb="trial", state__in=WAITS)
    if trials.exists() or under_way_since(case.action) is not None or not can_be_tried(case):
        return None
    return _write("trial", case, "A trial of the circuit is due.", actor=actor, ring=ring)


def can_be_tried(case: Case) -> bool:
    """Whether the worker has something harmless to ask through this circuit: a health read, or this look-up."""
    connector = case.definition.manifest.connectors.get(circuit.connector_in(case.way or "") or "")
    return connector is not None and (connector.health is not None or circuit.of_look(case.tool) == case.way)


def order_look(action: Action, *, actor: Actor, ring: nudges.Ring) -> Decision | None:
    """The decision to look, because the clock asks for it; None if one is under way."""
    return _order("reconcile", action, "A look-up is due.", actor=actor, ring=ring)


def _order(verb: str, action: Action, reason: str, *, actor: Actor, ring: nudges.Ring) -> Decision | None:
    """Tell the worker, unless it has been told already: the row is the work. The run is locked."""
    if under_way_since(action) is not None:
        return None
    case = cases.read(action.run, action)
    gathering.change(action, {}, {"due_at": None})
    return _write(verb, case, reason, actor=actor, ring=ring)


def _write(verb: str, case: Case, reason: str, *, actor: Actor, ring: nudges.Ring) -> Decision:
    action = case.action
    decision = Decision(
        tenant_id=action.tenant_id,
        run=case.run,
        action=action,
        verb=verb,
        key=f"{verb}:{new_id()}",
        by=None,
        actor_kind=actor.kind,
        reason=reason,
        rule=case.answer.rule,
        table_version=TABLE_VERSION,
        evidence_hash=case.evidence_hash,
        snapshot=case.snapshot(),
    )
    gathering.insert(decision)
    nudges.after_commit(decision.pk, ring)
    return decision
