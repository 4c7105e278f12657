"""The rollback of a run: which effect is taken back next, and whether its undo may be sent (DECISIONS 1).

One after the other: the next undo begins once the one before is verified. What stands in its way is a person's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from steadyhand.contract import OUTCOME_OF

from recovery import case as cases
from recovery import escalation, planning, tasks, undos
from recovery.case import Case
from recovery.endings import uncorrected_refusal
from recovery.rules import assembly, testimony
from recovery.rules.decide import Action as Answer
from recovery.work import orders
from runs import definitions, record
from runs.models import Action, Run
from runs.querysets import read_clock
from runs.record import Actor


@dataclass(frozen=True)
class Place:
    """Where a rollback stands: the run's state, why, and because of which call."""

    state: str
    reason: str | None
    action: Action


def proceed(run: Run, actor: Actor) -> Place | None:
    """Start what may be started next, and say where that leaves the run; None once nothing is left to undo."""
    undos.take_agents_own(run, actor)
    for action in undos.remaining(run):
        place = _place(run, action, actor)
        if place is not None:
            return place
    contradicted = escalation.contradiction(run)
    if contradicted is not None and contradicted.action is not None:
        return Place("escalated", "conflicting_evidence", contradicted.action)
    return _rest(run, actor)


def _rest(run: Run, actor: Actor) -> Place | None:
    """What stays of an effect is accepted by a person before the run may end (F142)."""
    effect = undos.unsigned(run)
    if effect is None:
        return None
    escalation.open_task(run, "residual_unsigned", action=effect.action, actor=actor, kind="compensation")
    return Place("escalated", "residual_unsigned", effect.action)


def cause(run: Run) -> str:
    """Why the run failed: the refusal that nothing corrected, else only that it was taken back."""
    refused = uncorrected_refusal(run)
    reason = refused.reason_code if refused is not None else None
    return reason if reason and OUTCOME_OF[reason].value == "fatal" else "not_applied"


def _place(run: Run, action: Action, actor: Actor) -> Place | None:
    """None where this one is closed and the next is to be looked at."""
    if action.state in ("compensating", "compensation_held"):
        return _of_undo(run, action, actor)
    if action.state == "partial_final" and action.parts.filter(role="item").exists():
        _close_batch(run, action, actor)
        return None
    if action.settled_at is None and action.state != "partial_final":
        waits = action.state in ("held", "awaiting_approval")
        return Place("escalated" if waits else "compensating", _reason(action), action)
    return _begin(cases.read(run, action), actor)


def _of_undo(run: Run, original: Action, actor: Actor) -> Place | None:
    undo = undos.of(original)
    if undo is None or undo.state in undos.ENDED_BADLY:
        undos.hold(run, original, actor)
        return Place("escalated", "compensation_failed", undo or original)
    if undo.state == "succeeded":
        undos.close(run, original, undo, actor)
        return None
    if undo.state in orders.NEVER_SENT and not planning.is_free(run):
        return _ask_approval(run, undo, actor)
    waits = undo.state == "awaiting_approval"
    return Place("escalated" if waits else "compensating", _reason(undo), undo)


def _close_batch(run: Run, batch: Action, actor: Actor) -> None:
    """Its items come before it and are taken back one by one; of the batch itself nothing is left."""
    record.move_action(batch, "compensating", actor, run=run, kind="compensating")
    record.move_action(batch, "compensated", actor, run=run, kind="compensated")
    escalation.resolve_tasks(run, action=batch, actor=actor, resolution=undos.TAKEN_BACK)


def _begin(case: Case, actor: Actor) -> Place | None:
    """The table's answer about an effect that stands (rules 4 to 6)."""
    match case.answer.action:
        case Answer.COMPENSATE:
            return _undo(case, actor, approval=False)
        case Answer.ASK_APPROVAL:
            return _undo(case, actor, approval=True)
        case Answer.WAIT if case.waits_for_circuit and case.would.action is Answer.COMPENSATE:
            return _undo(case, actor, approval=False)  # drawn up now: its sending waits for the circuit by itself
        case Answer.CLOSE_NO_EFFECT if testimony.undone_outside(case.known):
            undos.close_outside(case.run, case.action, actor)
            return None
        case Answer.CLOSE_NO_EFFECT if case.evidence.undo == "done":
            return None
        case Answer.CLOSE_NO_EFFECT:
            return _ask(case, "conflicting_evidence", actor)
        case Answer.HUMAN:
            return _ask(case, case.answer.reason, actor)
    _plan_look(case)
    return Place("compensating", "proof_pending", case.action)


def _undo(case: Case, actor: Actor, *, approval: bool) -> Place | None:
    run, original, definition = case.run, case.action, case.definition
    try:
        undo = undos.draw_up(definition, original)
    except undos.Impossible as why:
        record.write_event(run, "undo_impossible", actor, action=original, reason=str(why))
        return _ask(case, "compensation_required", actor)
    twin = undos.open_twin(run, undo, definition)
    if twin is not None:
        return Place("compensating", _reason(twin), twin)
    action = undos.write(run, original, undo, definition, actor)
    if approval:
        return _ask_approval(run, action, actor)
    orders.send_now(run, action, actor=actor, ring=tasks.ring)
    return Place("compensating", None, action)


def _ask_approval(run: Run, undo: Action, actor: Actor) -> Place:
    """Approved is the plan, and in it this undo with its own hash: an approval of the call that it takes back says
    nothing of it, and one of a plan that has changed since is none (F143)."""
    seconds = definitions.of_run(run).manifest.approval_seconds
    due_at = read_clock() + timedelta(seconds=seconds) if seconds else None
    record.move_action(
        undo, "awaiting_approval", actor, run=run, kind="approval_required", reason_code="approval_required",
        due_at=due_at,
    )  # fmt: skip
    escalation.open_task(run, "approval_required", action=undo, actor=actor)
    return Place("escalated", "approval_required", undo)


def _ask(case: Case, reason: str, actor: Actor) -> Place:
    escalation.open_task(
        case.run, reason, action=case.action, actor=actor, kind="compensation", page=case.page(reason)
    )  # fmt: skip
    return Place("escalated", reason, case.action)


def _plan_look(case: Case) -> None:
    """An effect that is believed is counted before it is taken back (rule 6b): sooner than it would be otherwise."""
    if orders.under_way_since(case.action) is not None:
        return
    kept = assembly.final_look_kept_for(case.known)
    soon = max(case.now, kept) if kept else (case.now if case.action.looks == 0 else case.next_look_at())
    planned = [at for at in (case.action.due_at, soon) if at is not None]
    Action.objects.filter(pk=case.action.pk).update(due_at=min(planned, default=None))


def _reason(action: Action) -> str | None:
    """What there is to say about a call that is being taken back; that it goes as planned needs no reason."""
    code = action.reason_code
    return code if code and OUTCOME_OF[code].value in ("needs_human", "needs_input", "retryable") else None
