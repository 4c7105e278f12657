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
from runs import record, redact, wall
from runs.models import Person
from runs.querysets import read_clock
from runs.record import Actor

__all__ = ["NEEDS_REASON", "NoSuchTask", "Order", "Overtaken", "ReasonMissing", "Refused", "Unusable"]

NEEDS_REASON = policy.WITH_REASON
Do = Callable[[Panel, Order, Actor], Done]


def claim(order: Order) -> Decision:
    """Take a task for 30 minutes; claiming one's own extends it."""
    return _decide("claim", order, desk.claim)


def release(order: Order) -> Decision:
    """Give a task back to the queue."""
    return _decide("release", order, desk.release)


def reconcile(order: Order, *, ring: nudges.Ring) -> Decision:
    """Ask what happened: the worker looks, this only orders it."""
    return _decide("reconcile", order, desk.extend, ring=ring)


def approve(order: Order) -> Decision:
    """Agree to exactly this call, or be the second person behind a statement (F124 to F126, F130)."""
    return _decide("approve", order, approvals.approve)


def reject(order: Order) -> Decision:
    """Refuse a call that waits for an approval, or do not confirm a statement. Raises Unusable for a foreign code."""
    return _decide("reject", order, approvals.reject)


def retry(order: Order) -> Decision:
    """Open the gate for exactly this call; the agent's next proposal of it is permitted (DECISIONS 2, gate)."""
    return _decide("retry", order, steering.retry)


def replay(order: Order) -> Decision:
    """Permit one more try of a call that had used all of its own."""
    return _decide("replay", order, steering.replay)


def discard(order: Order) -> Decision:
    """Give a dead letter up for good."""
    return _decide("discard", order, steering.discard)


def top_up(order: Order) -> Decision:
    """Raise the ceiling that stopped the run, once. Raises Unusable for an amount out of bounds."""
    return _decide("top_up", order, ceilings.top_up)


def resume(order: Order) -> Decision:
    """Let the run go on from the last proven state."""
    return _decide("resume", order, steering.resume)


def attest(order: Order) -> Decision:
    """Vouch for what happened; a second person confirms it with `approve`. Raises Unusable without a reference."""
    return _decide("attest", order, attestations.attest)


def compensate(order: Order) -> Decision:
    """Undo what the run did, in reverse order."""
    return _decide("compensate", order, steering.compensate)


def waive(order: Order) -> Decision:
    """Accept what stays of an effect that was to be undone; too much for one, it waits for a second person."""
    return _decide("waive", order, waivers.waive)


def cancel(order: Order) -> Decision:
    """Cancel the run; a write that is still unknown keeps its task."""
    return _decide("cancel", order, steering.cancel)


def request_input(order: Order) -> Decision:
    """Make a link by which the requester answers; `questions.hand_out` gives it out, once."""
    return _decide("request_input", order, inputs.ask)


def provide_input(order: Order) -> Decision:
    """Say what the requester told a colleague. Raises Unusable for what does not fit."""
    return _decide("provide_input", order, inputs.provide)


def assign(order: Order) -> Decision:
    """Offer a task to a colleague, or give it to the team. Raises Unusable for somebody who may not work on it."""
    return _decide("assign", order, handing.assign)


def accept(order: Order) -> Decision:
    """Take over a task that a colleague offers."""
    return _decide("accept", order, offering.accept)


def decline(order: Order) -> Decision:
    """Leave an offered task where it is, with a reason."""
    return _decide("decline", order, offering.decline)


def withdraw(order: Order) -> Decision:
    """Take back the offer of a task."""
    return _decide("withdraw", order, offering.withdraw)


def snooze(order: Order) -> Decision:
    """Put a task off until a time. Raises Unusable for one that is past or too far."""
    return _decide("snooze", order, snoozing.snooze)


def reopen(order: Order) -> Decision:
    """Ask a resolved question again."""
    return _decide("reopen", order, snoozing.reopen)


def comment(order: Order) -> Decision:
    """Leave a note; it proves nothing and moves nothing."""
    return _decide("comment", order, desk.comment)


def _decide(verb: str, order: Order, do: Do, *, ring: nudges.Ring | None = None) -> Decision:
    """`ring`: the verb orders work that a worker does, and this tells it. Raises what `wishes` names."""
    if verb in NEEDS_REASON and not order.reason.strip():
        raise ReasonMissing
    tenant_id = panel.tenant_of(order.task_id, order.by)
    if tenant_id is None:
        raise NoSuchTask
    try:
        decision, refusal = _under_lock(verb, order, tenant_id, do, ring)
    except IntegrityError:
        return _by_key(verb, tenant_id, order)  # the other click of the same button was faster
    if refusal is not None:
        raise refusal
    assert decision is not None  # noqa: S101  (either a decision or a refusal)
    return decision


def _under_lock(
    verb: str, order: Order, tenant_id: uuid.UUID, do: Do, ring: nudges.Ring | None
) -> tuple[Decision | None, Exception | None]:
    """One transaction: the same click again, an overtaken form, a verb not allowed, or the decision."""
    actor = Actor("person", str(order.by), order.request_id)
    with wall.within(tenant_id, by="person"):
        task = HumanTask.objects.get(pk=order.task_id)
        run = next(iter(record.lock_family(task.run_id)[-1:]), None)
        before = Decision.objects.filter(key=order.key).first()
        if before is not None:
            return _same_click(verb, order, before), None
        task = HumanTask.objects.select_related("run", "action", "claimed_by").get(pk=order.task_id)
        assert run is not None  # noqa: S101  (a task cannot outlive its run: composite foreign key)
        seen = panel.read(task, order.by)
        refusal = _refusal(verb, order, seen)
        if refusal is not None:
            data = {"task": str(task.pk), "verb": verb}
            words = refusal.recorded if isinstance(refusal, Overtaken) else str(refusal)
            record.write_event(run, "refused", actor, action=task.action, reason=words, data=data)
            return None, refusal
        done = do(seen, order, actor)
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
    moved = verb != "comment" and (order.version != seen.task.version or order.evidence_hash != seen.evidence_hash)
    if moved and verb not in ("claim", "release"):
        return _overtaken(seen, order.by)
    if answer.allowed:
        return None
    if moved or answer.rule == "look":
        return _overtaken(seen, order.by, answer.sentence)
    return Refused(answer.sentence, answer.rule)


def _overtaken(seen: Panel, reader: Person, also: str = "") -> Overtaken:
    """Who did what since the form was drawn, said to the one whose form it is."""
    latest = Decision.objects.filter(run=seen.run).select_related("by").order_by("-id").first()
    if latest is None:
        return Overtaken(_late("The facts have changed since this page was drawn.", also))
    name = str(latest.by) if latest.by else "The clock"
    what = f"chose “{policy.LABELS[latest.verb]}” at {latest.requested_at:%H:%M:%S} UTC, after this page was drawn."
    recorded = _late(f"{name} {what}", also)
    return Overtaken(_late(f"You {what}", also) if latest.by_id == reader.pk else recorded, recorded)


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
    return Decision.objects.create(
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


def _facts(seen: Panel) -> dict[str, object]:
    """What the decision rests on: the evidence, and the plan of what would be undone."""
    facts: dict[str, object] = seen.case.snapshot() if seen.case else {"run_state": seen.run.state}
    return {**facts, "plan": seen.plan_hash} if seen.plan.lines else facts
