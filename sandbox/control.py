"""The hand behind the curtain: reads the ledger, writes fault scripts, moves the clock, resets the world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sandbox import faults
from sandbox.calls import MAX_LIST_ITEMS, Answer, Refused, iso, json_answer
from sandbox.ledger import Ledger
from sandbox.services import SERVICES

FILTERS = ("service", "operation", "kind", "method", "reference", "action_id", "key", "outcome", "effect_id")
OF_ARRIVALS = {"service", "operation", "kind", "method", "reference", "action_id", "key", "outcome"}
OF_EFFECTS = {"service", "operation", "reference", "action_id", "key", "effect_id"}
MAX_ADVANCE_SECONDS = 10 * 365 * 86400

Query = dict[str, str]
Body = dict[str, Any]


def answer(ledger: Ledger, method: str, path: str, query: Query, body: Body) -> Answer:
    """One control request; ``Refused`` 404 or 405 for anything that is not in ``ROUTES``."""
    name = path.rstrip("/")
    if (method, name) not in ROUTES:
        status, code = (405, "method_not_allowed") if name in PATHS else (404, "not_found")
        raise Refused(status, code, "There is no such control.")
    return ROUTES[(method, name)](ledger, query, body)


def _health(ledger: Ledger, query: Query, body: Body) -> Answer:
    return json_answer(200, {"status": "ok", "now": iso(ledger.now())})


def _ledger(ledger: Ledger, query: Query, body: Body) -> Answer:
    order, limit = query.pop("order", "asc"), query.pop("limit", str(MAX_LIST_ITEMS))
    after = query.pop("after", "0")
    if order not in ("asc", "desc"):
        raise Refused(400, "invalid_filter", "order is asc or desc.", field="order")
    if not (limit.isdecimal() and len(limit) <= 3 and 1 <= int(limit) <= MAX_LIST_ITEMS):
        raise Refused(400, "invalid_filter", f"limit is 1 to {MAX_LIST_ITEMS}.", field="limit")
    if not (after.isascii() and after.isdecimal() and len(after) <= 15):
        raise Refused(400, "invalid_filter", "after is the number of a row that was shown.", field="after")
    for name in query:
        if name not in FILTERS:
            raise Refused(400, "unknown_filter", f"The ledger has no filter named {name}.", field=name)
    shared: dict[str, Any] = {"descending": order == "desc", "limit": int(limit), "after": int(after)}
    arrivals = {name: value for name, value in query.items() if name in OF_ARRIVALS}
    effects = {name: value for name, value in query.items() if name in OF_EFFECTS}
    return json_answer(
        200,
        {
            "arrivals": ledger.arrivals(arrivals, **shared),
            "effects": ledger.effects(effects, **shared),
            "pending": [
                {"arrival_id": promise.call.arrival_id, "due_at": iso(promise.due_at)}
                for promise in ledger.promises()
            ],
        },
    )


def _counts(ledger: Ledger, query: Query, body: Body) -> Answer:
    return json_answer(200, ledger.counts())


def _reset(ledger: Ledger, query: Query, body: Body) -> Answer:
    _only(body, {})
    ledger.reset()
    return json_answer(200, ledger.counts())


def _list_faults(ledger: Ledger, query: Query, body: Body) -> Answer:
    found = faults.list_scripts(ledger)
    return json_answer(200, {"items": found, "count": len(found)})


def _add_fault(ledger: Ledger, query: Query, body: Body) -> Answer:
    return json_answer(201, faults.add_script(ledger, body))


def _clear_faults(ledger: Ledger, query: Query, body: Body) -> Answer:
    _only(body, {})
    faults.clear_scripts(ledger)
    return _list_faults(ledger, query, body)


def _modes(ledger: Ledger, query: Query, body: Body) -> Answer:
    return json_answer(200, {service: ledger.mode(service) for service in sorted(SERVICES)})


def _set_mode(ledger: Ledger, query: Query, body: Body) -> Answer:
    _only(body, {"service", "keys", "retention_seconds"})
    service = body.get("service")
    if not isinstance(service, str) or service not in SERVICES:
        raise _wrong("service", f"must be one of {', '.join(sorted(SERVICES))}")
    mode = {**ledger.mode(service), **{name: value for name, value in body.items() if name != "service"}}
    if mode["keys"] not in ("honour", "ignore"):
        raise _wrong("keys", "must be honour or ignore")
    if not faults.number(mode["retention_seconds"], 0, MAX_ADVANCE_SECONDS):
        raise _wrong("retention_seconds", "must be a number of seconds, not negative")
    ledger.set_mode(service, mode["keys"], float(mode["retention_seconds"]))
    return _modes(ledger, query, body)


def _clock(ledger: Ledger, query: Query, body: Body) -> Answer:
    return json_answer(200, {"now": iso(ledger.now()), "ahead_seconds": ledger.ahead_seconds()})


def _advance(ledger: Ledger, query: Query, body: Body) -> Answer:
    _only(body, {"advance_seconds"})
    if not faults.number(body.get("advance_seconds"), 0, MAX_ADVANCE_SECONDS):
        raise _wrong("advance_seconds", "must be a number of seconds, not negative")
    ledger.advance(float(body["advance_seconds"]))
    return _clock(ledger, query, body)


def _only(body: Body, known: Any) -> None:
    for name in body:
        if name not in known:
            raise _wrong(name, "is unknown here")


def _wrong(field: str, what: str) -> Refused:
    return Refused(400, "invalid_request", f"{field} {what}.", field=field)


ROUTES: dict[tuple[str, str], Callable[[Ledger, Query, Body], Answer]] = {
    ("GET", "/_control/health"): _health,
    ("GET", "/_control/ledger"): _ledger,
    ("GET", "/_control/counts"): _counts,
    ("POST", "/_control/reset"): _reset,
    ("GET", "/_control/faults"): _list_faults,
    ("POST", "/_control/faults"): _add_fault,
    ("POST", "/_control/faults/clear"): _clear_faults,
    ("GET", "/_control/modes"): _modes,
    ("POST", "/_control/modes"): _set_mode,
    ("GET", "/_control/clock"): _clock,
    ("POST", "/_control/clock"): _advance,
}
PATHS = {path for _, path in ROUTES}
