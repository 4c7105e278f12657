"""How values are put into words: money, times and ids the same on every page."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.utils import timezone

from console.pages.common import Money
from console.templatetags.look import duration
from console.templatetags.look import money as printed
from recovery.rules import situation

TITLE_MAX = 120


def money(minor: int | None, currency: str) -> Money | None:
    """An amount, if there is one and its currency is known."""
    return Money(minor, currency) if minor is not None and currency else None


def amount(minor: int | None, currency: str) -> str:
    """The amount as text; empty where there is none."""
    found = money(minor, currency)
    return printed(found) if found else ""


def sums(amounts: Iterable[tuple[int | None, str]]) -> list[Money]:
    """One sum per currency, never added over currencies."""
    totals: dict[str, int] = {}
    for minor, currency in amounts:
        if minor is not None and currency:
            totals[currency] = totals.get(currency, 0) + minor
    return [Money(total, currency) for currency, total in sorted(totals.items())]


def clock(at: datetime) -> str:
    """Wall clock time of a moment that is certainly of today."""
    return f"{timezone.localtime(at):%H:%M:%S} UTC"


def moment(at: datetime, now: datetime) -> str:
    """A time inside a sentence, with its date where that is not today's."""
    return situation.moment(timezone.localtime(at), timezone.localtime(now))


def lasting(seconds: float) -> str:
    return duration(seconds)


def title(text: str) -> str:
    """The first line of an intent, cut where a title would become a paragraph."""
    first = " ".join(text.split())
    return first if len(first) <= TITLE_MAX else f"{first[: TITLE_MAX - 1]}…"


def split(text: str, most: int) -> tuple[str, str]:
    """A text as what is shown and what stands behind "show more"; cut between words where there is a place."""
    if len(text) <= most * 5 // 4:
        return text, ""
    head = text[:most]
    place = max(head.rfind(" "), head.rfind("\n"))
    place = place if place > most // 2 else most
    return text[:place].rstrip(), text[place:].lstrip()


def number(task_number: int) -> str:
    return f"T-{task_number}"


def effects(standing: int, undone: int, partly: int = 0) -> str:
    """How many effects stand, and how many were taken back; `partly` of the standing ones were in part."""
    if not undone and not partly:
        return f"{standing} proven"
    told = [f"{standing - partly} standing", f"{partly} undone in part" if partly else ""]
    return ", ".join(filter(None, [*told, f"{undone} undone" if undone else ""]))


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
