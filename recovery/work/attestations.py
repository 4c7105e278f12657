"""A person vouches for what happened, with the provider's reference (F130, ruling 14).

Above the value threshold, and from somebody who may not approve, a second person's word makes it count.

What was confirmed is evidence like any other, and the weakest: a later look may still contradict it (F131).
"""

from __future__ import annotations

from datetime import timedelta

from recovery import settle
from recovery.models import HumanTask
from recovery.panel import Panel
from recovery.rules.authority import counts_alone
from recovery.statements import VERDICTS, WORDS
from recovery.work.wishes import CLAIM_MINUTES, Done, Order, Unusable
from runs import record, redact
from runs.models import Action
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import advance

STRENGTH = 2
LONGEST_REFERENCE = 200


def attest(seen: Panel, order: Order, actor: Actor) -> Done:
    """Let the statement count, or keep it and ask for a second person: until then nothing changes or is sent."""
    reference = redact.clean_text(order.reference.strip(), LONGEST_REFERENCE)
    if order.outcome not in VERDICTS:
        raise Unusable("outcome", "Say whether it happened or not.")
    if not reference:
        raise Unusable("reference", "A word without the provider's reference proves nothing.")
    if counts_alone(seen.situation):
        _count(seen, order.outcome, reference, str(order.by), f"{order.by} attests: {WORDS[order.outcome]}.", actor)
        return Done(f"Recorded: {WORDS[order.outcome]}.")
    if seen.task.state != "claimed":
        advance(seen.task, machine="task", to="claimed", claimed_by=order.by, claimed_until=None)
    advance(seen.task, machine="task", to="awaiting_approval", claimed_by=order.by, claimed_until=None)
    kept: dict[str, object] = {"attested": {"outcome": order.outcome, "reference": reference}}
    return Done("Recorded. It counts once a second person has confirmed it.", kept)


def confirm(seen: Panel, order: Order, actor: Actor) -> Done:
    """The second word: the statement becomes evidence, and the table says what follows from it."""
    said = seen.statement
    assert said is not None  # noqa: S101  (policy: a statement waits)
    _give_back(seen.task)
    _count(seen, said.outcome, said.reference, str(said.by), f"{said}; {order.by} confirms it.", actor)
    return Done(f"Confirmed: {WORDS[said.outcome]}.")


def _count(seen: Panel, outcome: str, reference: str, source: str, fact: str, actor: Actor) -> None:
    """The statement becomes evidence, and the table says what follows from it."""
    action, verdict = seen.call, VERDICTS[outcome]
    record.add_evidence(
        action, run=seen.run, kind="person", verdict=verdict, source=source, strength=STRENGTH, fact=fact,
        external_id=reference if verdict == "present" else "", started_at=read_clock(),
    )  # fmt: skip
    Action.objects.filter(pk=action.pk).update(verdict=verdict)
    action.refresh_from_db()
    settle.settle(seen.run, action, actor)


def decline(seen: Panel, order: Order, actor: Actor) -> Done:
    """The second person does not confirm it: the task goes back to whoever attested, and nothing counts."""
    _give_back(seen.task)
    return Done("Not confirmed; the statement counts for nothing.")


def _give_back(task: HumanTask) -> None:
    """To the one who attested, as a claim that decays like any other."""
    advance(task, machine="task", to="claimed", claimed_until=read_clock() + timedelta(minutes=CLAIM_MINUTES))
