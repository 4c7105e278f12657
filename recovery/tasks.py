"""Celery's entry points: an id and a call. Late, lost and doubled messages are harmless, for the row is the work.

The work is imported when a message comes: a report rings this bell, and the worker reports what it sends.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from celery import shared_task


@shared_task(name="recovery.tasks.execute", ignore_result=True)  # type: ignore[untyped-decorator]
def execute(decision_id: str) -> None:
    """Carry out one decision."""
    from recovery.work import worker

    worker.execute(uuid.UUID(decision_id))


@shared_task(name="recovery.tasks.execute_many", ignore_result=True)  # type: ignore[untyped-decorator]
def execute_many(decision_ids: list[str]) -> None:
    """Carry out several decisions that the sweep found together."""
    from recovery.work import looks

    looks.execute_many([uuid.UUID(one) for one in decision_ids])


@shared_task(name="recovery.tasks.sweep", ignore_result=True)  # type: ignore[untyped-decorator]
def sweep() -> None:
    """Find what is due and what was lost."""
    from recovery.work import sweep as sweeping

    sweeping.sweep(ring=Bell())


def ring(decision_id: uuid.UUID) -> None:
    """Send the message; raises if the broker does not take it."""
    execute.apply_async(args=[str(decision_id)], retry=False)


class Bell:
    """The same ring, which can also name several in one message."""

    def __call__(self, decision_id: uuid.UUID) -> None:
        ring(decision_id)

    def many(self, decision_ids: Sequence[uuid.UUID]) -> None:
        if len(decision_ids) == 1:
            ring(decision_ids[0])
        else:
            execute_many.apply_async(args=[[str(one) for one in decision_ids]], retry=False)
