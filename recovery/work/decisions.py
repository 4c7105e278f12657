"""What people decide, one function a verb. Each is checked again under the run's lock and recorded as a Decision.

A form carries the evidence's hash, the task's version and a one-time key: a second click gets the first result, a
form that has been overtaken changes nothing and is told who did what (F116 to F119).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from django.db import IntegrityError

from recovery import crashpoints, panel
from recovery.models import Decision, HumanTask
from recovery.panel import Panel
from recovery.rules import policy
from recovery.rules.decide import TABLE_VERSION
from recovery.work import (
    approvals,
    attestations,
    ceilings,
    desk,
    handing,
    inputs,
    nudges,
    offering,
    snoozing,
    steering,
    waivers,
)
from recovery.work.wishes import Done, NoSuchTask, Order, Overtaken, ReasonMissing, Refused, Unusable
from runs import gathering, record, redact, wall
from runs.models import Run
from runs.querysets import read_clock
from runs.record import Actor

__all__ = ["NEEDS_REASON", "NoSuchTask", "Order", "Overtaken", "ReasonMissing", "Refused", "Unusable"]

NEEDS_REASON = policy.WITH_REASON
Do = Callable[[Panel, Order, Actor], Done]


def claim(order: Order) -> Decision:
    """Take a task for 30 minutes; claiming one's own extends it."""
    return _decide("claim", order)


def release(order: Order) -> Decision:
    """Give a task back to the queue."""
    return _decide("release", order)


def reconcile(order: Order, *, ring: nudges.Ring) -> Decision:
    """Ask what happened: the worker looks, this only orders it."""
    return _decide("reconcile", order, ring=ring)


def approve(order: Order) -> Decision:
    """Agree to exactly this call, or be the second person behind a statement (F124 to F126, F130)."""
    return _decide("approve", order)


def reject(order: Order) -> Decision:
    """Refuse a call that waits for an approval, or do not confirm a statement. Raises Unusable for a foreign code."""
    return _decide("reject", order)


def retry(order: Order) -> Decision:
    """Open the gate for exactly this call; the agent's next proposal of it is permitted (DECISIONS 2, gate)."""
    return _decide("retry", order)


def replay(order: Order) -> Decision:
    """Permit one more try of a call that had used all of its own."""
    return _decide("replay", order)


def discard(order: Order) -> Decision:
    """Give a dead letter up for good."""
    return _decide("discard", order)


def top_up(order: Order) -> Decision:
    """Raise the ceiling that stopped the run, once. Raises Unusable for an amount out of bounds."""
    return _decide("top_up", order)


def resume(order: Order) -> Decision:
    """Let the run go on from the last proven state."""
    return _decide("resume", order)


def attest(order: Order) -> Decision:
    """Vouch for what happened; a second person confirms it with `approve`. Raises Unusable without a reference."""
    return _decide("attest", order)


def compensate(order: Order) -> Decision:
    """Undo what the run did, in reverse order."""
    return _decide("compensate", order)


def waive(order: Order) -> Decision:
    """Accept what stays of an effect that was to be undone; too much for one, it waits for a second person."""
    return _decide("waive", order)


def cancel(order: Order) -> Decision:
    """Cancel the run; a write that is still unknown keeps its task."""
    return _decide("cancel", order)


def request_input(order: Order) -> Decision:
    """Make a link by which the requester answers; `questions.hand_out` gives it out, once."""
    return _decide("request_input", order)


def provide_input(order: Order) -> Decision:
    """Say what the requester told a colleague. Raises Unusable for what does not fit."""
    return _decide("provide_input", order)


def assign(order: Order) -> Decision:
    """Offer a task to a colleague, or give it to the team. Raises Unusable for somebody who may not work on it."""
    return _decide("assign", order)


def accept(order: Order) -> Decision:
    """Take over a task that a colleague offers."""
    return _decide("accept", order)


def decline(order: Order) -> Decision:
    """Leave an offered task where it is, with a reason."""
    return _decide("decline", order)


def withdraw(order: Order) -> Decision:
    """Take back the offer of a task."""
    return _decide("withdraw", order)


def snooze(order: Order) -> Decision:
    """Put a task off until a time. Raises Unusable for one that is past or too far."""
    return _decide("snooze", order)


def reopen(order: Order) -> Decision:
    """Ask a resolved question again."""
    return _decide("reopen", order)


def comment(order: Order) -> Decision:
    """Leave a note; it proves nothing and moves nothing."""
    return _decide("comment", order)


DOES: dict[str, Do] = {
    "claim": desk.claim,
    "release": desk.release,
    "reconcile": desk.extend,
    "approve": approvals.approve,
    "reject": approvals.reject,
    "retry": steering.retry,
    "replay": steering.replay,
    "discard": steering.discard,
    "top_up": ceilings.top_up,
    "resume": steering.resume,
    "attest": attestations.attest,
    "compensate": steering.compensate,
    "waive": waivers.waive,
    "cancel": steering.cancel,
    "request_input": inputs.ask,
    "provide_input": inputs.provide,
    "assign": handing.assign,
    "accept": offering.accept,
    "decline": offering.decline,
    "withdraw": offering.withdraw,
    "snooze": snoozing.snooze,
    "reopen": snoozing.reopen,
    "comment": desk.comment,
}
"""What each verb does once it is found allowed, under the run's lock."""


def _decide(verb: str, order: Order, *, ring: nudges.Ring | None = None) -> Decision:
    """`ring`: the verb orders work that a worker does, and this tells it. Raises what `wishes` names."""
    if verb in NEEDS_REASON and not order.reason.strip():
        raise ReasonMissing
    tenant_id = panel.tenant_of(order.task_id, order.by)
    if tenant_id is None:
        raise NoSuchTask
    try:
        decision, refusal = _under_lock(verb, order, tenant_id, ring)
    except IntegrityError:
        return _by_key(verb, tenant_id, order)  # the other click of the same button was faster
    if refusal is not None:
        raise refusal
    assert decision is not None  # noqa: S101  (either a decision or a refusal)
    return decision


def _under_lock(
    verb: str, order: Order, tenant_id: uuid.UUID, ring: nudges.Ring | None
) -> tuple[Decision | None, Exception | None]:
    with wall.within(tenant_id, by="person"):
        task = HumanTask.objects.get(pk=order.task_id)
        run = next(iter(record.lock_family(task.run_id)[-1:]), None)
        assert run is not None  # noqa: S101  (a task cannot outlive its run: composite foreign key)
        return locked(verb, order, run, ring=ring)


def locked(
    verb: str, order: Order, run: Run, *, task: HumanTask | None = None, ring: nudges.Ring | None = None
) -> tuple[Decision | None, Exception | None]:
    """The same click again, an overtaken form, a verb not allowed, or the decision: in the caller's transaction.

    The wall is open to the one tenant, for a person, and the run is locked. `task`: as the caller read it under that
    lock, with its run and its action. A refusal is written down and given back, for raising it would undo that.
    """
    actor = Actor("person", str(order.by), order.request_id)
    before = Decision.objects.filter(key=order.key).first()
    if before is not None:
        return _same_click(verb, order, before), None
    if task is None:
        task = HumanTask.objects.select_related("run", "action", "claimed_by").get(pk=order.task_id)
    seen = panel.read(task, order.by)
    refusal = _refusal(verb, order, seen)
    if refusal is not None:
        data = {"task": str(task.pk), "verb": verb}
        words = refusal.recorded if isinstance(refusal, Overtaken) else str(refusal)
        record.write_event(run, "refused", actor, action=task.action, reason=words, data=data)
        return None, refusal
    done = DOES[verb](seen, order, actor)
    decision = _write(verb, order, seen, "done" if ring is None else "requested", done)
    record.write_event(
        seen.run, f"verb_{verb}", actor, action=task.action, reason=order.reason,
        data={"task": str(task.pk), "decision": str(decision.pk), "rule": decision.rule},
    )  # fmt: skip
    crashpoints.point("C18")
    if ring is not None:
        nudges.after_commit(decision.pk, ring)
    return decision, None


def _same_click(verb: str, order: Order, before: Decision) -> Decision:
    """A key answers for the form that it was made for, and for nobody and nothing else. Raises Overtaken."""
    if (before.verb, before.task_id, before.by_id) == (verb, order.task_id, order.by.pk):
        return before
    raise Overtaken("This form was sent already, for something else. Open it again. Nothing was sent.")


def _refusal(verb: str, order: Order, seen: Panel) -> Exception | None:
    answer = seen.verb(verb)
    if answer.rule == "decided":
        return Overtaken(_late(f"This was {answer.sentence.removeprefix('Blocked: ')}", ""))
    moved = (verb != "comment" or order.listed) and (
        order.version != seen.task.version or order.evidence_hash != seen.evidence_hash
    )
    if moved and (verb not in ("claim", "release") or order.listed):
        return _overtaken(seen, order)
    if answer.allowed:
        return None
    if moved or answer.rule == "look":
        return _overtaken(seen, order, answer.sentence)
    return Refused(answer.sentence, answer.rule)


def _overtaken(seen: Panel, order: Order, also: str = "") -> Overtaken:
    """Who did what since the form was drawn or the list was frozen, said to the one whose it is."""
    since = "the list was frozen" if order.listed else "this page was drawn"
    latest = Decision.objects.filter(run=seen.run).select_related("by").order_by("-id").first()
    if latest is None:
        return Overtaken(_late(f"The facts have changed since {since}.", also))
    name = str(latest.by) if latest.by else "The clock"
    what = f"chose “{policy.LABELS[latest.verb]}” at {latest.requested_at:%H:%M:%S} UTC, after {since}."
    recorded = _late(f"{name} {what}", also)
    return Overtaken(_late(f"You {what}", also) if latest.by_id == order.by.pk else recorded, recorded)


def _late(happened: str, also: str) -> str:
    return f"{happened} Your click changed and sent nothing. {also}".rstrip()


def _by_key(verb: str, tenant_id: uuid.UUID, order: Order) -> Decision:
    with wall.within(tenant_id):
        before = Decision.objects.filter(key=order.key).first()
    if before is None:
        raise Overtaken("Somebody else asked for the same at the same moment. Nothing was sent twice.")
    return _same_click(verb, order, before)


def _write(verb: str, order: Order, seen: Panel, state: str, done: Done) -> Decision:
    answer = seen.verb(verb)
    decision = Decision(
        tenant_id=seen.run.tenant_id,
        run=seen.run,
        action=seen.task.action,
        task=seen.task,
        verb=verb,
        key=order.key,
        by=order.by,
        actor_kind="person",
        reason=redact.clean_text(order.reason),
        rule=answer.rule,
        table_version=TABLE_VERSION,
        evidence_hash=seen.facts_hash,
        snapshot={**_facts(seen), **done.kept},
        state=state,
        result=done.words,
        ended_at=read_clock() if state == "done" else None,
    )
    gathering.insert(decision)
    return decision


def _facts(seen: Panel) -> dict[str, object]:
    """What the decision rests on: the evidence, and the plan of what would be undone."""
    facts: dict[str, object] = seen.case.snapshot() if seen.case else {"run_state": seen.run.state}
    return {**facts, "plan": seen.plan_hash} if seen.plan.lines else facts
