"""Where a scenario is plugged in: the product's worker asks and sends through the scripted world, nothing else."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db.models import F, Q

from recovery.connectors.base import Finding, Question
from recovery.models import Decision, HumanTask
from recovery.scenarios.world import World
from recovery.work import sending, worker
from recovery.work.sweep import AGENTS_TURN
from runs import wall
from runs.models import Action, Attempt, Run

MAX_LOOKS = 6
"""The look-ups that a manifest allows by default."""


@contextmanager
def scripted(world: World, tenant_id: uuid.UUID) -> Iterator[None]:
    """Put the scripted world in the place of the network for one play."""
    asked, sent = worker.ask, sending.transmit

    def ask(question: Question) -> Finding:
        if question.polling is not None:
            return asked(question)
        return _look(world, tenant_id, question)

    worker.ask, sending.transmit = ask, world.transmit
    try:
        yield
    finally:
        worker.ask, sending.transmit = asked, sent


class Lines(logging.Handler):
    """Every log line of a play, as text; `faults` are the errors among them, which somebody caught."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.faults: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        broke = f" {record.exc_info[1]!r}" if record.exc_info else ""
        self.texts.append(f"{record.getMessage()}{broke}")
        if record.levelno >= logging.ERROR:
            self.faults.append(self.texts[-1])


@contextmanager
def heard() -> Iterator[Lines]:
    """Keep the log lines of one play to itself."""
    root, lines = logging.getLogger(), Lines()
    before, root.handlers = root.handlers, [lines]
    try:
        yield lines
    finally:
        root.handlers = before


def _look(world: World, tenant_id: uuid.UUID, question: Question) -> Finding:
    with wall.within(tenant_id):
        action = Action.objects.get(action_id=question.action_id)
        running = Decision.objects.filter(action=action, state="running").order_by("-id").first()
    by_person = running is not None and running.by_id is not None
    step = world.steps.get(action.action_id, action.step)
    return world.ask(step, action.tool, question.arguments, last=action.looks >= MAX_LOOKS, by_person=by_person)


def waiting(tenant_id: uuid.UUID) -> list[uuid.UUID]:
    """The work that the product has ordered and nobody has taken."""
    with wall.within(tenant_id):
        return list(Decision.objects.filter(state="requested").order_by("id").values_list("pk", flat=True))


def work(decision_id: uuid.UUID) -> None:
    worker.execute(decision_id)


def due_times(tenant_id: uuid.UUID, *, people_answer: bool, asked: Collection[str]) -> list[datetime]:
    """When the sweep would find something next, of each kind.

    `people_answer`: the file names no deadline, so what it leaves open for somebody to say, a person or a provider's
    message, is still open at its end.
    `asked`: the steps that the file still holds look-ups for. What the file does not say of a settled effect is not
    counted later, so the clock is not moved for it.
    """
    asks = Q(state="awaiting_approval") | Q(state="held", reason_code="user_input_required")
    awaited = Q(state="processing", due_at__gte=F("run__elapses_at"))
    unanswered = asks | awaited if people_answer else Q(pk=None)
    recount = Q(state="succeeded", run__goal="forward") & ~Q(step__in=asked)
    theirs = Run.objects.filter(ended_at__isnull=True, state__in=AGENTS_TURN)
    found = [
        Action.objects.exclude(unanswered).exclude(recount).values_list("due_at"),
        Attempt.objects.filter(ended_at__isnull=True).values_list("lease_until"),
        HumanTask.objects.filter(state="claimed").values_list("claimed_until"),
        theirs.values_list("elapses_at"),
        theirs.values_list("deadline_at"),
    ]
    with wall.within(tenant_id):
        return [at for (at,) in found[0].union(*found[1:], all=True) if at is not None]
