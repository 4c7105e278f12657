"""Time-ordered ids, so that primary keys are appended to and rows sort by age."""

from __future__ import annotations

import uuid

import uuid_utils.compat


def new_id() -> uuid.UUID:
    """A UUIDv7."""
    return uuid_utils.compat.uuid7()


def parse_id(text: str) -> uuid.UUID | None:
    """The id that a text names, or None: a malformed id names nothing, like a foreign one."""
    try:
        return uuid.UUID(text)
    except (ValueError, AttributeError, TypeError):
        return None
