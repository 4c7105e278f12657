"""The declarative look-up: one GET, described in the manifest, that counts effects and compares all their fields.

One request, no redirects, no retries, no proxies, a deadline and a size cap: what goes wrong is a failed look-up.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import httpx
from steadyhand.manifest import Look
from steadyhand.paths import MISSING, dig

from recovery.connectors import guard, line
from recovery.connectors.base import Finding, Question, failed
from recovery.connectors.templates import fill, path_of, secret_of
from recovery.rules import foreign
from recovery.rules.conditions import holds

MAX_ITEMS = 500
# Where the usual ways of paging say that there is more; each is asked for beside the list and at the top.
_MORE = ("has_more", "hasMore", "next", "next_page", "next_cursor", "next_page_token", "nextPageToken", "links.next",
         "paging.next", "pagination.next", "_links.next")  # fmt: skip


def reconcile(question: Question) -> Finding:
    """Ask once. Every failure to ask or to understand is `probe_failed`, with a sentence."""
    if question.look is None:
        return failed("The manifest declares no look-up for this tool.")
    try:
        document, more = _fetch(question, question.look)
    except guard.Forbidden as refused:
        return failed(str(refused))
    except httpx.TimeoutException:
        return failed("The look-up did not answer in time.")
    except httpx.HTTPError as wrong:
        return failed(f"The look-up could not be made: {type(wrong).__name__}.")
    except _Unusable as wrong:
        return failed(str(wrong))
    return judge(document, question, question.look, more=more)


def judge(document: Any, question: Question, look: Look, *, more: bool = False) -> Finding:
    """Count what is ours and compare its fields. Pure, so that every answer can be tested without a network.

    `more`: the answer's headers name a next page. A list that goes on may hold ours further down: to find nothing in
    it proves nothing, and what is found is at least so many.
    """
    records = _records(document, look)
    if records is None:
        return failed("The look-up's answer holds no list of records where one was declared.", raw=document)
    if len(records) > MAX_ITEMS:
        return failed(f"The look-up returned more than {MAX_ITEMS} records, too many to count.")
    if any(fill(value, question) in (None, "") for value in look.ours.values()):
        return failed("The reference to look for is empty, so that nothing could be recognised as ours.")
    ours = [record for record in records if _all_equal(record, look.ours, question)]
    if not ours and look.items is None and not isinstance(document, list):
        return failed("The look-up answered with one record, and it is not ours.", raw=document)
    partial = _goes_on(document, look, more=more)
    if not ours and partial:
        return failed("The list is not complete.", raw=records[:3])
    if not ours:
        return Finding("absent", f"{len(records)} records listed, none of them is ours.", count=0, raw=records[:3])
    if len(ours) > 1:
        return Finding("conflict", f"{len(ours)} records carry our reference.", count=len(ours), raw=ours[:10])
    found = _judge_one(ours[0], question, look)
    return replace(found, fact=f"{found.fact} The list went on.", count=None) if partial else found


def _records(document: Any, look: Look) -> list[Any] | None:
    """What was listed; None for an answer that is no list: to find nothing in an error page proves nothing."""
    items = document if look.items is None else dig(document, look.items)
    if isinstance(items, list):
        return items if all(isinstance(item, dict) for item in items) else None
    return [items] if isinstance(items, dict) and look.items is None else None


def _goes_on(document: Any, look: Look, *, more: bool) -> bool:
    """Whether the list has a next page, by the contract's word for it or else by the usual signs."""
    if look.complete is not None:
        return not holds(look.complete, document)
    if look.items is None:
        return more
    beside = dig(document, look.items.rpartition(".")[0])
    return more or any(_says_more(dig(place, path)) for place in (document, beside) for path in _MORE)


def _says_more(value: Any) -> bool:
    return value is not MISSING and bool(value)


def _judge_one(record: Any, question: Question, look: Look) -> Finding:
    external_id = dig(record, look.external_id)
    named = isinstance(external_id, (str, int)) and not isinstance(external_id, bool)
    name = foreign.name(external_id) if named else ""
    if look.processing is not None and holds(look.processing, record):
        return Finding("processing", f"{name or 'A record'} is still being processed.", 1, name, record, record)
    if not name:
        return Finding("conflict", "A record carries our reference but has no identity.", count=1, raw=record)
    differing = [path for path, wanted in look.match.items() if not _equal(dig(record, path), fill(wanted, question))]
    lacking = [path for path in differing if dig(record, path) in (MISSING, None, "")]
    if differing and lacking == differing:
        return Finding("partial", f"{name} is ours and lacks {', '.join(lacking)}.", 1, name, record, record)
    if differing:
        fact = f"{name} carries our reference with other values: {', '.join(differing)}."
        return Finding("conflict", fact, 1, name, record, record)
    result = record if look.result is None else dig(record, look.result)
    return Finding("present", f"One record is ours: {name}.", 1, name, None if result is MISSING else result, record)


class _Unusable(Exception):
    """An answer that is no usable list."""


def _fetch(question: Question, look: Look) -> tuple[Any, bool]:
    """The answer, and whether its headers name a next page."""
    base = (question.connector.base_url or "").rstrip("/")
    target = guard.check(base + path_of(look.path, question), allow_hosts=question.connector.allow_hosts)
    query = {name: str(fill(value, question)) for name, value in look.query.items()}
    headers = {
        "Host": target.host,
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        **secret_of(question.connector),
    }
    timeout = question.connector.timeout_seconds
    with (
        line.client(timeout) as client,
        client.stream("GET", target.url, params=query, headers=headers, extensions=target.extensions) as reply,
    ):
        if reply.status_code != 200:
            raise _Unusable(f"The look-up answered {reply.status_code}.")
        return _json(_capped(reply, time.monotonic() + timeout)), any(
            "next" in (rel or "").lower().split() for rel in reply.links
        )


def _capped(reply: httpx.Response, deadline: float) -> bytes:
    """The body as it is sent, within a size and a time: no endless and no packed one holds the worker (F040)."""
    body = b""
    for chunk in reply.iter_raw():
        body += chunk
        if time.monotonic() > deadline:
            raise _Unusable("The look-up did not finish in time.")
        if len(body) > guard.MAX_REPLY_BYTES:
            raise _Unusable("The look-up's answer is too large.")
    return body


def _json(body: bytes) -> Any:
    document = foreign.parse_bytes(body)
    if document is MISSING:
        raise _Unusable("The look-up's answer is not JSON.")
    return document


def _all_equal(record: Any, wanted: dict[str, Any], question: Question) -> bool:
    return all(_equal(dig(record, path), fill(value, question)) for path, value in wanted.items())


def _equal(found: Any, wanted: Any) -> bool:
    """Equal in meaning: 1 and 1.0 are, 1 and true are not, an empty value never matches."""
    if found is MISSING or found in (None, "") or isinstance(found, bool) != isinstance(wanted, bool):
        return False
    return bool(found == wanted)
