"""What a provider's message says about a call, by the contract of its tool (FAULTS D). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from steadyhand.manifest import Callback
from steadyhand.paths import dig, word

Meaning = Literal["present", "job_failed", "processing", "overtaken", "unheard"]


def word_at(payload: Any, path: str | None) -> str:
    """An id or a state at a path, as text; empty where there is none."""
    return _word(dig(payload, path)) if path else ""


def meaning(callback: Callback, state: str, earlier: Iterable[str]) -> Meaning:
    """What a state comes to, after those that were `earlier` told about the same call.

    overtaken: it stands before one of them in the contract's order, so it was only late; it is kept and moves
    nothing. unheard: the contract does not know it.
    """
    place = _place(callback, state)
    if any(_place(callback, told) > place for told in earlier):
        return "overtaken"
    if state in map(_word, callback.succeeded):
        return "present"
    if state in map(_word, callback.failed):
        return "job_failed"
    return "processing" if place >= 0 else "unheard"


def _place(callback: Callback, state: str) -> int:
    """Where a state stands in the order, -1 for nowhere. Every end comes last, named there or not.

    One entry may name states that exclude each other: `succeeded|failed`.
    """
    if state in map(_word, [*callback.succeeded, *callback.failed]):
        return len(callback.order)
    named = (index for index, names in enumerate(callback.order) if state in names.split("|"))
    return next(named, -1)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return word(value)
