"""Telling a worker that a row waits. The row is the work: a lost message costs one sweep period (C05, F055)."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable

from django.db import transaction

log = logging.getLogger(__name__)
Ring = Callable[[uuid.UUID], None]


def after_commit(decision_id: uuid.UUID, ring: Ring) -> None:
    """Ring once the row is committed; a broker that is down is logged, and the sweep rings again."""
    transaction.on_commit(lambda: now(decision_id, ring))


def now(decision_id: uuid.UUID, ring: Ring) -> None:
    try:
        ring(decision_id)
    except Exception:
        log.warning("the broker did not take decision %s; the sweep will", decision_id, exc_info=True)
