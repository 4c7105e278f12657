"""Celery's entry points: an id and a call. Late, lost and doubled messages are harmless, for the row is the work.

The work is imported when a message comes: a report rings this bell, and the worker reports what it sends.
"""

from __future__ import annotations

import uuid

from celery import shared_task


@shared_task(name="recovery.tasks.execute", ignore_result=True)  # type: ignore[untyped-decorator]
def execute(decision_id: str) -> None:
    """Carry out one decision."""
    from recovery.work import worker

    worker.execute(uuid.UUID(decision_id))


@shared_task(name="recovery.tasks.sweep", ignore_result=True)  # type: ignore[untyped-decorator]
def sweep() -> None:
    """Find what is due and what was lost."""
    from recovery.work import sweep as sweeping

    sweeping.sweep(ring=ring)


def ring(decision_id: uuid.UUID) -> None:
    """Send the message; raises if the broker does not take it."""
    execute.apply_async(args=[str(decision_id)], retry=False)
