"""Whether a statement of the manifest holds of a document: one meaning for replies and for look-ups. Pure."""

from __future__ import annotations

from typing import Any

from steadyhand.manifest import Condition
from steadyhand.paths import MISSING, dig


def holds(condition: Condition, document: Any) -> bool:
    """A null is not present and equals only a null; 1 equals 1.0 but not true; false, 0 and blank text are empty."""
    value = dig(document, condition.path)
    if condition.present is not None:
        return (value is not MISSING and value is not None) == condition.present
    if condition.nonempty is not None:
        return _has_content(value) == condition.nonempty
    if condition.one_of is not None:
        return value is not MISSING and value in condition.one_of
    same_kind = isinstance(value, bool) == isinstance(condition.equals, bool)
    return value is not MISSING and same_kind and bool(value == condition.equals)


def _has_content(value: Any) -> bool:
    return value is not MISSING and bool(value.strip() if isinstance(value, str) else value)
