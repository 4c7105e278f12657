"""What a call comes to that may not be made: recorded, counted, and never passed under another name.

The run is locked by the caller. Also what both ways of a proposal share: counting a call, stopping the run for it.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import F
from steadyhand.contract import Permit
from steadyhand.manifest import Tool

from recovery import answers, escalation, family, gate, proposal, settle, sightings
from recovery.proposal import Prepared, Refusal
from runs import budgets, record
from runs.models import Action, Attempt, Run
from runs.querysets import read_clock
from runs.record import Actor


def taken(tool: Tool) -> Refusal:
    """Another call was made, or is being made, for the same thing: the contract allows one."""
    fields = " and ".join(tool.once_per)
    sentence = f"{tool.name} was called already for this {fields}; it is made once."
    return Refusal("policy_denied", field=tool.once_per[0], sentence=sentence)


def escalate(run: Run, reason: str, prepared: Prepared, actor: Actor, *, fired: list[str] | None = None) -> Permit:
    settle.escalate_run(run, reason, actor, failed_step=prepared.step, fired=fired or ())
    return answers.stop(run, prepared.step)


def count_call(run: Run, actor: Actor) -> str | None:
    """One call of the run's budget and of every run above; names the ceiling above that has no more."""
    above = family.charge(run, actor, tool_calls=1)
    if above is None:
        Run.objects.filter(pk=run.pk).update(tool_calls=F("tool_calls") + 1)
    return above


def refused_before(run: Run, action: Action, prepared: Prepared, actor: Actor, *, renamed: bool) -> Permit:
    """The recorded refusal. Asked for under another step it counts as one more call, so that the loop ends (F094)."""
    sentence = sightings.said_of(action)
    refusal = Refusal(action.reason_code or "not_applied", action.error_field, sentence)
    if not renamed or run.state in gate.CLOSED_TO_CALLS:
        return answers.deny(prepared, refusal)
    if gate.times_refused(action) >= prepared.facts.definition.manifest.budgets.max_same_answers:
        return escalate(run, "no_progress_loop", prepared, actor)
    spent = _spend_call(run, prepared, actor)
    if spent is not None:
        return spent
    record.write_event(
        run, gate.REPEATED, actor, action=action, from_state=action.state, to_state=action.state,
        data={"step": action.step, "tool": action.tool, "reason_code": refusal.reason},
    )  # fmt: skip
    return answers.deny(prepared, refusal)


def note_retry(run: Run, action: Action, prepared: Prepared, actor: Actor) -> None:
    """Name the layer that wants the same call again before it is free: once for each layer and try (F106, I17)."""
    tried = {"layer": prepared.layer, "tried": action.attempts}
    known = run.events.filter(kind="retry_refused", action=action, data__contains=tried)
    if not known.exists():
        record.write_event(
            run, "retry_refused", actor, action=action, from_state=action.state, to_state=action.state,
            reason=f"The layer {prepared.layer} asked for it again before it was free.",
            data={"step": action.step, "tool": action.tool, **tried},
        )  # fmt: skip


def refuse(run: Run, existing: Action | None, prepared: Prepared, refusal: Refusal, actor: Actor) -> Permit:
    """The call is not permitted: over at once, unless an earlier try of it may have done something."""
    if existing is not None:
        return _withdraw(run, existing, prepared, refusal, actor)
    if run.state in gate.CLOSED_TO_CALLS and budgets.fired(run, read_clock(), unit="call"):
        return answers.wait(prepared, None, reason=run.reason_code)
    return _spend_call(run, prepared, actor) or _reject(run, prepared, refusal, actor)


def _spend_call(run: Run, prepared: Prepared, actor: Actor) -> Permit | None:
    """Count a call that is refused; the answer where a ceiling stands against even that."""
    fired = budgets.fired(run, read_clock(), unit="call")
    if fired:
        return escalate(run, fired[0], prepared, actor, fired=fired)
    above = count_call(run, actor)
    return escalate(run, above, prepared, actor) if above is not None else None


def _reject(run: Run, prepared: Prepared, refusal: Refusal, actor: Actor) -> Permit:
    """Write the refusal down: the action is over, the agent may propose something else (ruling 18)."""
    action = proposal.write_action(
        run,
        prepared,
        "rejected",
        reason_code=refusal.reason,
        error_field=refusal.field[:300],
        settled_at=read_clock(),
    )
    record.write_event(
        run, "rejected", actor, action=action, to_state="rejected", reason=refusal.sentence,
        data={"step": prepared.step, "tool": prepared.tool.name, "reason_code": refusal.reason},
    )  # fmt: skip
    return answers.deny(prepared, refusal)


def _withdraw(run: Run, action: Action, prepared: Prepared, refusal: Refusal, actor: Actor) -> Permit:
    """A call whose authorization ended between two tries: over if nothing happened, else only its outcome matters."""
    if action.state not in gate.NOT_SENT_OR_FREE:
        return answers.wait(prepared, action.due_at or lease_end(action), reason=action.reason_code)
    over = "refused_permanent" if action.attempts else "rejected"
    record.move_action(
        action, over, actor, run=run, kind="refused", reason=refusal.sentence,
        reason_code=refusal.reason, error_field=refusal.field[:300],
    )  # fmt: skip
    escalation.resolve_tasks(run, action=action, actor=actor, resolution="The call is no longer permitted.")
    settle.refresh_run(run, actor)
    return answers.deny(prepared, refusal)


def hold_back(run: Run, action: Action | None, prepared: Prepared, refusal: Refusal, actor: Actor) -> Permit:
    """What the call rests on must be read again, or has changed: then the call is over."""
    if refusal.suggested:
        return answers.deny(prepared, refusal)
    return refuse(run, action, prepared, refusal, actor)


def lease_end(action: Action) -> datetime | None:
    return Attempt.objects.filter(action=action, ended_at__isnull=True).values_list("lease_until", flat=True).first()
