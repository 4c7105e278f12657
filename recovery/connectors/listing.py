"""What an outside system did in an interval, page by page: one request each, and an end to how many (DESIGN 5).

Whatever cannot be told is `CannotList`: a list that is not whole proves nothing about what is not in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import httpx
from steadyhand import judging
from steadyhand.connector import Listed, Page, Unclear, checked_page, moment, page_in
from steadyhand.manifest import Connector, Listing
from steadyhand.paths import MISSING, dig, word

from recovery.connectors import guard, line, python, webhook
from recovery.connectors.base import Whom
from recovery.connectors.http import Unusable, document_of
from recovery.connectors.templates import secret_of
from recovery.rules import foreign

HALVINGS = 8


class CannotList(Exception):
    """The listing is not known to be whole; the message says why in a sentence."""


class TooLong(CannotList):
    """It has more pages than agreed: a shorter interval may have fewer."""


@dataclass(frozen=True)
class Interval:
    """What is to be listed: from `since` up to and without `until`."""

    connector: Connector
    listing: Listing
    whom: Whom
    since: datetime
    until: datetime


def as_far_as_fits(interval: Interval) -> tuple[list[Listed], datetime]:
    """Everything from the interval's beginning up to the moment that is given back.

    That is its end, or where it has more pages than agreed the middle of what is new in it, and so on; after
    HALVINGS of these it is said that it does not fit. Raises CannotList.
    """
    new_from = interval.since + timedelta(seconds=interval.listing.overlap_seconds)
    for _ in range(HALVINGS):
        try:
            return effects(interval), interval.until
        except TooLong:
            interval = replace(interval, until=new_from + (interval.until - new_from) / 2)
    return effects(interval), interval.until


def effects(interval: Interval) -> list[Listed]:
    """Everything in the interval, each page asked for once. Raises CannotList."""
    found: list[Listed] = []
    cursor = ""
    for _ in range(interval.listing.max_pages):
        page = _page(interval, cursor)
        found += [one for one in page.effects if interval.since <= one.at < interval.until]
        if not page.cursor:
            return found
        if page.cursor == cursor:
            raise CannotList("The listing names the same page again and again.")
        cursor = page.cursor
    since, until = (end.isoformat(timespec="seconds") for end in (interval.since, interval.until))
    raise TooLong(f"The listing has more than {interval.listing.max_pages} pages from {since} to {until}.")


def _page(interval: Interval, cursor: str) -> Page:
    try:
        return _fit(checked_page(_PAGES[interval.connector.kind](interval, cursor)))
    except (guard.Forbidden, Unusable, python.Unavailable) as why:
        raise CannotList(str(why)) from why
    except Unclear as wrong:
        raise CannotList(f"The listing cannot be used: {wrong}.") from wrong
    except (TimeoutError, httpx.TimeoutException) as late:
        raise CannotList("The listing did not come in time.") from late
    except Exception as wrong:
        # Somebody else's code or a broken connection: its class is kept, its text may hold anything.
        raise CannotList(f"The listing broke: {type(wrong).__name__}.") from wrong


def _fit(page: Page) -> Page:
    """As it can be stored and compared: with ids as the record writes them, and records as JSON."""
    fit = [
        Listed(
            foreign.name(one.external_id), one.at, foreign.name(one.reference), foreign.name(one.key),
            foreign.plain(one.record),
        )
        for one in page.effects
    ]  # fmt: skip
    return Page(tuple(fit), page.cursor)


def _over_http(interval: Interval, cursor: str) -> Page:
    how, connector = interval.listing, interval.connector
    slots = {"since": interval.since.isoformat(), "until": interval.until.isoformat(), "cursor": cursor}
    query = {name: _filled(value, slots) for name, value in how.query.items()}
    target = guard.check((connector.base_url or "").rstrip("/") + (how.path or ""), allow_hosts=connector.allow_hosts)
    sent = {name: value for name, value in query.items() if value}
    reply = line.exchange(
        "GET", target, headers=secret_of(connector), timeout_seconds=connector.timeout_seconds, params=sent
    )
    document, more = document_of(reply)
    return _read(document, how, more=more)


def _filled(template: str, slots: dict[str, str]) -> str:
    for name, value in slots.items():
        template = template.replace("{" + name + "}", value)
    return template


def _read(document: Any, how: Listing, *, more: bool) -> Page:
    records = document if how.items is None else dig(document, how.items)
    if not isinstance(records, list):
        raise Unclear("there is no list of records where one was declared")
    following = dig(document, how.cursor) if how.cursor else MISSING
    cursor = word(following)
    if not cursor and following not in (MISSING, None, "", False):
        raise Unclear("what asks for the next page is neither text nor a number")
    if not cursor and judging.goes_on(document, how.items, how.complete, more=more):
        raise Unclear("it goes on, and nothing says how to ask for the rest")
    return Page(tuple(_listed(record, how) for record in records), cursor)


def _listed(record: Any, how: Listing) -> Listed:
    external_id, reference = word(dig(record, how.external_id)), word(dig(record, how.reference))
    if not external_id:
        raise Unclear("a record has no id")
    return Listed(external_id, moment(dig(record, how.at)), reference, record=record)


def _from_endpoint(interval: Interval, cursor: str) -> Page:
    asked = {
        "connector": interval.whom.name, "tenant": interval.whom.tenant, "since": interval.since.isoformat(),
        "until": interval.until.isoformat(), "cursor": cursor,
    }  # fmt: skip
    return page_in(webhook.fetch("list_effects", interval.connector, interval.whom, asked))


def _from_package(interval: Interval, cursor: str) -> Page:
    asked = (interval.since, interval.until, cursor)
    seconds = interval.connector.timeout_seconds
    page: Page = python.call(interval.connector, interval.whom, "list_effects", *asked, seconds=seconds)
    return page


_PAGES: dict[str, Callable[[Interval, str], Page]] = {
    "http": _over_http,
    "webhook": _from_endpoint,
    "python": _from_package,
}


def plain(one: Listed) -> dict[str, Any]:
    """The effect as JSON, for people."""
    return asdict(one) | {"at": one.at.isoformat()}
