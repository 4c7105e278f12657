"""What a list of records says about one call: count what is ours, and compare all its fields (F044, F045). Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from steadyhand.conditions import holds
from steadyhand.connector import Answer
from steadyhand.manifest import Look
from steadyhand.paths import MISSING, dig, word
from steadyhand.templates import Slots, fill

MAX_ITEMS = 500
# Where the usual ways of paging say that there is more; each is asked for beside the list and at the top.
_MORE = ("has_more", "hasMore", "next", "next_page", "next_cursor", "next_page_token", "nextPageToken", "links.next",
         "paging.next", "pagination.next", "_links.next")  # fmt: skip


@dataclass(frozen=True)
class Seen(Answer):
    """An answer with what it was read from, for people."""

    raw: Any = None


def judge(document: Any, slots: Slots, look: Look, *, more: bool = False, name: Callable[[Any], str] = str) -> Seen:
    """What a declared look-up's answer says. `name` makes an identity fit to be shown.

    `more`: the answer's headers name a next page. A list that goes on may hold ours further down: to find nothing in
    it proves nothing, and what is found is at least so many.
    """
    records = _records(document, look)
    if records is None:
        return failed("The look-up's answer holds no list of records where one was declared.", raw=document)
    if len(records) > MAX_ITEMS:
        return failed(f"The look-up returned more than {MAX_ITEMS} records, too many to count.")
    if any(fill(value, slots) in (None, "") for value in look.ours.values()):
        return failed("The reference to look for is empty, so that nothing could be recognised as ours.")
    ours = [record for record in records if _all_equal(record, look.ours, slots)]
    if not ours and look.items is None and not isinstance(document, list):
        return failed("The look-up answered with one record, and it is not ours.", raw=document)
    partial = goes_on(document, look.items, look.complete, more=more)
    if not ours and partial:
        return failed("The list is not complete.", raw=records[:3])
    if not ours:
        return Seen("absent", fact=f"{len(records)} records listed, none of them is ours.", count=0, raw=records[:3])
    if len(ours) > 1:
        return Seen("conflict", fact=f"{len(ours)} records carry our reference.", count=len(ours), raw=ours[:10])
    found = _judge_one(ours[0], slots, look, name)
    return replace(found, fact=f"{found.fact} The list went on.", count=None) if partial else found


def failed(fact: str, raw: Any = None) -> Seen:
    return Seen("failed", fact=fact, raw=raw)


def compared(record: Any, wanted: dict[str, Any], slots: Slots) -> tuple[list[str], list[str]]:
    """The fields of a record that are not as they should be, and those among them that it lacks."""
    differing = [path for path, value in wanted.items() if not same(dig(record, path), fill(value, slots))]
    return differing, [path for path in differing if dig(record, path) in (MISSING, None, "")]


def fields_of(found: Seen, wanted: dict[str, Any], slots: Slots) -> Seen:
    """A presence whose record lacks fields is partial; with other values in them it is a look-alike, a conflict."""
    differing, lacking = compared(found.record, wanted, slots)
    if differing and lacking == differing:
        return replace(found, verdict="partial", fact=f"{found.external_id} is ours and lacks {', '.join(lacking)}.")
    if differing:
        fact = f"{found.external_id} carries our reference with other values: {', '.join(differing)}."
        return replace(found, verdict="conflict", fact=fact)
    return found


def goes_on(document: Any, items: str | None, complete: Any, *, more: bool) -> bool:
    """Whether a list has a next page, by the contract's word for it or else by the usual signs."""
    if complete is not None:
        return not holds(complete, document)
    if items is None:
        return more
    beside = dig(document, items.rpartition(".")[0])
    return more or any(_says_more(dig(place, path)) for place in (document, beside) for path in _MORE)


def same(found: Any, wanted: Any) -> bool:
    """Equal in meaning: 1 and 1.0 are, 1 and true are not, an empty value never matches."""
    if found is MISSING or found in (None, "") or isinstance(found, bool) != isinstance(wanted, bool):
        return False
    return bool(found == wanted)


def _records(document: Any, look: Look) -> list[Any] | None:
    """What was listed; None for an answer that is no list: to find nothing in an error page proves nothing."""
    items = document if look.items is None else dig(document, look.items)
    if isinstance(items, list):
        return items if all(isinstance(item, dict) for item in items) else None
    return [items] if isinstance(items, dict) and look.items is None else None


def _says_more(value: Any) -> bool:
    return value is not MISSING and bool(value)


def _judge_one(record: Any, slots: Slots, look: Look, name: Callable[[Any], str]) -> Seen:
    shown = name(word(dig(record, look.external_id)))
    if look.processing is not None and holds(look.processing, record):
        fact = f"{shown or 'A record'} is still being processed."
        return Seen("processing", 1, shown, record, fact, record)
    if not shown:
        return Seen("conflict", fact="A record carries our reference but has no identity.", count=1, raw=record)
    found = fields_of(Seen("present", 1, shown, record, f"One record is ours: {shown}.", record), look.match, slots)
    if found.verdict != "present":
        return found
    if look.undone is not None and holds(look.undone, record):
        return replace(found, verdict="undone", fact=f"{shown} is ours, and was taken back there.")
    result = record if look.result is None else dig(record, look.result)
    return replace(found, record=None if result is MISSING else result)


def _all_equal(record: Any, wanted: dict[str, Any], slots: Slots) -> bool:
    return all(same(dig(record, path), fill(value, slots)) for path, value in wanted.items())
