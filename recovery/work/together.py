"""Handling the runs of a list in batches as large as go well, each in its own short transaction.

A run that somebody else has locked is passed by. A batch that fails is halved, down to the one run that cannot be
handled: it keeps nobody else. The log says of each batch that it failed, and which run it was.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from recovery import papers
from runs import gathering, wall
from runs.models import Run

T = TypeVar("T")
Handle = Callable[[Run], Iterable[T]]
BATCH = 500

log = logging.getLogger(__name__)


def in_batches(
    tenant_id: uuid.UUID,
    run_ids: Iterable[uuid.UUID],
    handle: Handle[T],
    *,
    by: wall.Acting,
    calls: Sequence[uuid.UUID] = (),
) -> list[T]:
    """What `handle` gave back for each run, of the transactions that were committed.

    `calls`: actions to be read ahead beside the unsettled ones. After a run that had to be written past the
    gathering, the next ones go alone first.
    """
    done: list[T] = []
    rest, size = list(dict.fromkeys(run_ids)), BATCH
    while rest:
        some = rest[:size]
        try:
            handled, left, spoiled = _batch(tenant_id, some, handle, by, calls)
        except Exception as wrong:
            if len(some) > 1:
                log.warning("a batch of %d runs failed and is halved: %s", len(some), type(wrong).__name__)
                size = len(some) // 2
                continue
            handled, left, spoiled = alone(tenant_id, some[0], handle, by), [], True
        done += handled
        rest = left + rest[len(some) :]
        size = 1 if spoiled else min(2 * size, BATCH)
    return done


def _batch(
    tenant_id: uuid.UUID, run_ids: Sequence[uuid.UUID], handle: Handle[T], by: wall.Acting, calls: Sequence[uuid.UUID]
) -> tuple[list[T], list[uuid.UUID], bool]:
    """What was handled, which runs are left, and whether one of them was written past the gathering."""
    done: list[T] = []
    with wall.within(tenant_id, by=by), gathering.gathered() as together:
        waiting = papers.lock(together, run_ids, calls)[::-1]
        while waiting and not together.is_spoiled:
            done += handle(waiting.pop())
    return done, [run.pk for run in reversed(waiting)], together.is_spoiled


def alone(tenant_id: uuid.UUID, run_id: uuid.UUID, handle: Handle[T], by: wall.Acting) -> list[T]:
    """One run, each statement at once."""
    try:
        with wall.within(tenant_id, by=by):
            run = Run.objects.select_for_update(skip_locked=True, no_key=True).filter(pk=run_id).first()
            return list(handle(run)) if run is not None else []
    except Exception:
        log.exception("run %s could not be handled", run_id)
        return []
