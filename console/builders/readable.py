"""The rows of a list, of which one that cannot be read must not take the others with it (U15)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from django.db.models import Model

log = logging.getLogger(__name__)
M = TypeVar("M", bound=Model)
R = TypeVar("R")


def rows(records: Iterable[M], draw: Callable[[M], R]) -> tuple[list[R], list[str]]:
    """What could be drawn, and the ids of what could not: the page marks those, the log says why."""
    drawn: list[R] = []
    unreadable: list[str] = []
    for record in records:
        try:
            drawn.append(draw(record))
        except Exception:
            log.exception("%s %s cannot be shown", record._meta.verbose_name, record.pk)
            unreadable.append(str(record.pk))
    return drawn, unreadable
