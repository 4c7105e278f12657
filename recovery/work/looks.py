"""Many looks of one message: taken together, asked side by side, concluded together (DESIGN 2).

The steps are those of recovery/work/worker.py. Each look is asked for once, outside of any transaction; whatever is
not taken or concluded with the others, for its run was busy, goes the way of a single one.
"""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from django.db.models import QuerySet

from recovery import crashpoints
from recovery.connectors.base import Finding
from recovery.models import Decision
from recovery.work import together, worker
from recovery.work.orders import WAITS
from recovery.work.worker import Ticket
from runs import gathering, wall
from runs.models import Action, Run
from runs.querysets import read_clock

AT_ONCE = 8
"""Looks under way at the same moment in one process: a provider is not to be run over by its own clients (F108)."""

log = logging.getLogger(__name__)


def execute_many(decision_ids: Sequence[uuid.UUID]) -> None:
    """Carry out those that still wait; what is no look is carried out one by one."""
    for tenant_id, ids in wall.tenants_of_decisions(decision_ids).items():
        looks, others = _sorted(tenant_id, ids)
        _look(tenant_id, looks)
        for decision_id in others:
            _safely(worker.execute, decision_id)


def _sorted(tenant_id: uuid.UUID, ids: Sequence[uuid.UUID]) -> tuple[list[Decision], list[uuid.UUID]]:
    with wall.within(tenant_id):
        waiting = list(Decision.objects.filter(worker.is_waiting(), pk__in=ids).order_by("id"))
    looks = [one for one in waiting if one.verb == "reconcile" and one.action_id is not None]
    return looks, [one.pk for one in waiting if one not in looks]


def _look(tenant_id: uuid.UUID, waiting: Sequence[Decision]) -> None:
    crashpoints.point("C19")
    tickets = take(tenant_id, waiting)
    crashpoints.point("C20")
    findings = _ask(tickets)
    crashpoints.point("C21")
    conclude(tenant_id, list(zip(tickets, findings, strict=True)))
    crashpoints.point("C25")
    taken = {ticket.decision_id for ticket in tickets}
    for decision in waiting:
        if decision.pk not in taken:
            _safely(worker.execute, decision.pk)


def take(tenant_id: uuid.UUID, waiting: Sequence[Decision]) -> list[Ticket]:
    """A lease on each that can be taken now, long enough for its turn among the others."""
    by_run: dict[uuid.UUID, list[Decision]] = defaultdict(list)
    for decision in waiting:
        by_run[decision.run_id].append(decision)
    rounds = -(-len(waiting) // AT_ONCE)

    def take_of(run: Run) -> Iterable[Ticket]:
        for decision, action in _own(run, [one.pk for one in by_run[run.pk]]):
            job = worker.start(decision, run, action, rounds=rounds) if _is_free(decision) else None
            if isinstance(job, Ticket):
                yield job

    calls = [one.action_id for one in waiting if one.action_id is not None]
    return together.in_batches(tenant_id, by_run, take_of, by="worker", calls=calls)


def conclude(tenant_id: uuid.UUID, answered: Sequence[tuple[Ticket, Finding]]) -> None:
    """Record what was found, and what follows from it, under each one's own fence."""
    by_id = {ticket.decision_id: (ticket, finding) for ticket, finding in answered}
    by_run: dict[uuid.UUID, list[uuid.UUID]] = defaultdict(list)
    for ticket, _ in answered:
        by_run[ticket.run_id].append(ticket.decision_id)

    def conclude_of(run: Run) -> Iterable[uuid.UUID]:
        for decision, action in _own(run, by_run[run.pk]):
            worker.record_finding(decision, run, action, *by_id[decision.pk])
            yield decision.pk

    calls = [ticket.action_row for ticket, _ in answered]
    done = together.in_batches(tenant_id, by_run, conclude_of, by="worker", calls=calls)
    for decision_id in by_id.keys() - set(done):
        _safely(worker.conclude, *by_id[decision_id])


def _own(run: Run, ids: Iterable[uuid.UUID]) -> list[tuple[Decision, Action]]:
    """These decisions of a run that still wait or are under way, with their calls, as they stand under its lock."""
    wanted = set(ids)
    found = gathering.rows(Decision, "run_id", run.pk, _with_what_they_name)
    return [(one, one.action) for one in found if one.pk in wanted and one.state in WAITS and one.action is not None]


def _with_what_they_name(found: QuerySet[Decision]) -> QuerySet[Decision]:
    return found.filter(state__in=WAITS).select_related("by", "action", "run")


def _is_free(decision: Decision) -> bool:
    """Nobody works on it: it is new, or its worker's lease ran out."""
    return decision.state == "requested" or (
        decision.lease_until is not None and decision.lease_until <= read_clock()
    )


def _ask(tickets: Sequence[Ticket]) -> list[Finding]:
    """One request each. What asks our own database as well is asked from this thread, with its connection."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        far = {
            place: pool.submit(worker.ask, ticket.question)
            for place, ticket in enumerate(tickets)
            if ticket.question.polling is None and ticket.question.connector.kind in ("http", "webhook")
        }
        return [
            far[place].result() if place in far else worker.ask(ticket.question)
            for place, ticket in enumerate(tickets)
        ]


def _safely(do: Callable[..., None], *about: object) -> None:
    """One decision that cannot be carried out keeps none of the others; its lease runs out, and the sweep rings."""
    try:
        do(*about)
    except Exception:
        log.exception("a decision could not be carried out")
