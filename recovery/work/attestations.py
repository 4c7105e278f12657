"""A person vouches for what happened, with the provider's reference (F130, ruling 14).

Above the value threshold, and from somebody who may not approve, a second person's word makes it count.

What was confirmed is evidence like any other, and the weakest: a later look may still contradict it (F131).
"""

from __future__ import annotations

from recovery import escalation, settle
from recovery.panel import Panel
from recovery.rules.authority import counts_alone
from recovery.statements import VERDICTS, WORDS
from recovery.work import second
from recovery.work.wishes import Done, Order, Unusable
from runs import record, redact
from runs.models import Action
from runs.querysets import read_clock
from runs.record import Actor

STRENGTH = 2
LONGEST_REFERENCE = 200


def attest(seen: Panel, order: Order, actor: Actor) -> Done:
    """Let the statement count, or keep it and ask for a second person: until then nothing changes or is sent."""
    reference = redact.clean_text(order.reference.strip(), LONGEST_REFERENCE)
    if order.outcome not in VERDICTS:
        raise Unusable("outcome", "Say whether it happened or not.")
    if not reference:
        raise Unusable("reference", "A word without the provider's reference proves nothing.")
    if order.outcome == "absent" and seen.situation.bound_broke:
        raise Unusable("outcome", "An effect of it was found already; state that it happened, or leave it open.")
    if counts_alone(seen.situation):
        _count(seen, order.outcome, reference, str(order.by), f"{order.by} attests: {WORDS[order.outcome]}.", actor)
        return Done(f"Recorded: {WORDS[order.outcome]}.")
    second.wait(seen.task, order)
    kept: dict[str, object] = {"attested": {"outcome": order.outcome, "reference": reference}}
    return Done("Recorded. It counts once a second person has confirmed it.", kept)


def confirm(seen: Panel, order: Order, actor: Actor) -> Done:
    """The second word: the statement becomes evidence, and the table says what follows from it."""
    said = seen.statement
    assert said is not None  # noqa: S101  (policy: a statement waits)
    second.give_back(seen.task)
    _count(seen, said.outcome, said.reference, str(said.by), f"{said}; {order.by} confirms it.", actor)
    return Done(f"Confirmed: {WORDS[said.outcome]}.")


def _count(seen: Panel, outcome: str, reference: str, source: str, fact: str, actor: Actor) -> None:
    """The statement becomes evidence, and the table says what follows from it; over an ended run, a correction."""
    action, verdict = seen.call, VERDICTS[outcome]
    record.add_evidence(
        action, run=seen.run, kind="person", verdict=verdict, source=source, strength=STRENGTH, fact=fact,
        external_id=reference if verdict == "present" else "", started_at=read_clock(),
    )  # fmt: skip
    if seen.situation.settled:
        return _correct(seen, action, WORDS[outcome], fact, actor)
    Action.objects.filter(pk=action.pk).update(verdict=verdict)
    action.refresh_from_db()
    settle.settle(seen.run, action, actor)
    return None


def _correct(seen: Panel, action: Action, words: str, fact: str, actor: Actor) -> None:
    """What was recorded stays as it was recorded; this says beside it that it was wrong (F131)."""
    data = {"task": str(seen.task.pk), "recorded": action.state, "outcome": seen.run.outcome}
    record.write_event(seen.run, "record_corrected", actor, action=action, reason=fact, data=data)
    escalation.close(seen.task, actor=actor, resolution=f"Corrected: {words}. {fact}")
    settle.refresh_run(seen.run, actor)
