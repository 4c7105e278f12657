"""Taking in what happened elsewhere: records doubled, out of order or half broken become the facts that they tell.

Run by run, each in one transaction under the run's lock; within it each record by itself, so that a bad one is named
and the others land. Nothing is ever sent for such a run: what its records leave open is looked up or asked (F004).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from django.db import IntegrityError, transaction
from steadyhand.contract import Fault, Ingested, Record
from steadyhand.identity import BadInput

from recovery import leases, retelling
from recovery.clients import Credentials, authenticate
from recovery.models import IngestRecord
from recovery.rules.elsewhere import Numbered, by_run
from recovery.story import ORIGIN, Bad, Opener, Story
from runs import record, wall
from runs.models import AgentClient, Run
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import IllegalMove

_TELL: dict[str, Callable[[Story, Any], bool]] = {
    "run": retelling.tell_run,
    "turn": retelling.tell_turn,
    "call": retelling.tell_call,
    "dispatch": retelling.tell_dispatch,
    "observation": retelling.tell_observation,
    "cancel": retelling.tell_cancel,
    "finish": retelling.tell_finish,
}


class Tally:
    """What the sender hears in the end."""

    def __init__(self) -> None:
        self.accepted = self.duplicates = 0
        self.runs: list[str] = []
        self.errors: list[Fault] = []

    def answer(self) -> Ingested:
        errors = sorted(self.errors, key=lambda fault: fault.item)
        return Ingested(accepted=self.accepted, duplicates=self.duplicates, runs=self.runs, errors=errors)


def take(who: Credentials, records: Sequence[Numbered], *, opener: Opener, request_id: str) -> Ingested:
    """Take in a batch of (place in the batch, record). `opener` opens a run, or finds it. Raises NotAuthenticated."""
    tally = Tally()
    for ref, ours in by_run(records).items():
        with wall.within(who.tenant_id, by="agent"):
            client = authenticate(who)
            actor = Actor("agent", client.name, request_id)
            _tell(Story(client, actor, opener, read_clock(), _find(client, ref)), ours, tally)
    return tally.answer()


def _find(client: AgentClient, ref: str) -> Run | None:
    found = Run.objects.filter(client=client, client_ref=ref).first()
    return record.lock_family(found.pk)[-1] if found is not None else None


def _tell(story: Story, records: list[Numbered], tally: Tally) -> None:
    """One run's records in order; then the table is asked, and a try whose time is over unanswered is unknown."""
    ids = [one.id for _, one in records]
    before = IngestRecord.objects.filter(client=story.client, record_id__in=ids)
    known = set(before.values_list("record_id", flat=True))
    for number, one in records:
        if one.id in known:
            tally.duplicates += 1
        elif _tell_one(story, number, one, tally):
            known.add(one.id)
    if story.run is None or story.run.origin != ORIGIN:
        return
    retelling.ask_the_table(story)
    leases.expire_of_run(story.run)
    tally.runs.append(str(story.run.pk))


def _tell_one(story: Story, number: int, one: Record, tally: Tally) -> bool:
    """Whether the record was taken in, all of it or nothing. One that was not may be sent again under its id."""
    try:
        with transaction.atomic():
            news = _TELL[one.kind](story, one)
            IngestRecord.objects.create(
                tenant_id=story.client.tenant_id, client=story.client, record_id=one.id, run=cast(Run, story.run)
            )
    except (Bad, BadInput) as bad:
        return _refuse(story, tally, Fault(item=number, record_id=one.id, field=bad.field, remedy=bad.remedy))
    except (IllegalMove, IntegrityError):
        if _was_faster(story, one, tally):
            return True
        remedy = "this does not fit what is recorded of the run: read it, and tell what is missing between"
        return _refuse(story, tally, Fault(item=number, record_id=one.id, field=one.kind, remedy=remedy))
    tally.accepted += news
    tally.duplicates += not news
    return True


def _was_faster(story: Story, one: Record, tally: Tally) -> bool:
    """Whether the same record came in on another connection, before this one had the run's lock."""
    known = IngestRecord.objects.filter(client=story.client, record_id=one.id).exists()
    if known:
        tally.duplicates += 1
        story.run = _find(story.client, one.run)
    return known


def _refuse(story: Story, tally: Tally, fault: Fault) -> bool:
    """Nothing of the record stands, nor does a lock that was taken for it: the run is read and locked again."""
    tally.errors.append(fault)
    if story.run is not None:
        story.run = _find(story.client, story.run.client_ref)
    return False
