"""Telling a worker that a row waits. The row is the work: a lost message costs one sweep period (C05, F055)."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from django.db import transaction

log = logging.getLogger(__name__)
Ring = Callable[[uuid.UUID], None]
A_MESSAGE = 50
"""Decisions named in one message: few enough that several workers share what a sweep has found."""


@runtime_checkable
class Peal(Protocol):
    """A ring that can name several decisions in one message."""

    def __call__(self, decision_id: uuid.UUID) -> None: ...
    def many(self, decision_ids: Sequence[uuid.UUID]) -> None: ...


def after_commit(decision_id: uuid.UUID, ring: Ring) -> None:
    """Ring once the row is committed; a broker that is down is logged, and the sweep rings again."""
    transaction.on_commit(lambda: now(decision_id, ring))


def now(decision_id: uuid.UUID, ring: Ring) -> None:
    try:
        ring(decision_id)
    except Exception:
        log.warning("the broker did not take decision %s; the sweep will", decision_id, exc_info=True)


def each(decision_ids: Sequence[uuid.UUID], ring: Ring | Peal) -> None:
    """Ring for committed rows, with as few messages as the ring can do with.

    A broker that does not take one message is not kept busy with the others: the sweep rings again.
    """
    if not isinstance(ring, Peal):
        for decision_id in decision_ids:
            now(decision_id, ring)
        return
    for first in range(0, len(decision_ids), A_MESSAGE):
        try:
            ring.many(decision_ids[first : first + A_MESSAGE])
        except Exception:
            log.warning("the broker did not take decisions; the sweep will", exc_info=True)
            return
