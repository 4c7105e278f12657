"""What a call does to the world and what a look-up sees of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from sandbox.calls import MAX_LIST_ITEMS, Answer, Call, Refused, json_answer, parse_time
from sandbox.ledger import Ledger
from sandbox.services import WRITABLE, Route, Write, require_existing, seeded_customer, seeded_invoice

Seen = list[dict[str, Any]]
PAGING = ("reference", "action_id", "idempotency_key", "since", "until", "limit")


def commit(ledger: Ledger, call: Call, *, hidden_seconds: float = 0.0) -> Answer:
    """Carry out one write in one transaction, unless a live key already holds its reply.

    A key with other arguments is refused with 422 ``idempotency_key_mismatch``.
    """
    write = WRITABLE[(call.service, call.operation)]
    with ledger.transaction():
        keyed = bool(call.key) and ledger.mode(call.service)["keys"] == "honour"
        stored = ledger.stored_result(call.service, call.key) if keyed else None
        if stored is not None:
            if stored["arguments_hash"] != call.arguments_hash:
                message = "This key was used before with other arguments."
                raise Refused(422, "idempotency_key_mismatch", message)
            replayed = {"Idempotent-Replayed": "true"}
            return json_answer(stored["status"], json.loads(stored["body"]), replayed)
        status, body = _apply(ledger, write, call, hidden_seconds)
        if keyed:
            ledger.store_result(call, status, body)
        return json_answer(status, body)


def _apply(ledger: Ledger, write: Write, call: Call, hidden_seconds: float) -> tuple[int, dict[str, Any]]:
    if write.operation == "customers":
        return 200, _put_customer(ledger, write, call, hidden_seconds)
    if write.operation == "voids":
        _require_voidable(ledger, call.fields["credit"])
    effect = ledger.add_effect(call, call.fields, prefix=write.prefix, hidden_seconds=hidden_seconds)
    return 201, shape(write, effect, voided=set())


def _put_customer(ledger: Ledger, write: Write, call: Call, hidden_seconds: float) -> dict[str, Any]:
    customer = call.fields["customer"]
    before = customer_at(ledger, customer, seen_at=None)
    wanted = {name: value for name, value in call.fields.items() if name != "customer"}
    if all(before.get(name) == value for name, value in wanted.items()):
        return {**before, "changed": False}
    effect = ledger.add_effect(call, call.fields, prefix=write.prefix, hidden_seconds=hidden_seconds)
    return {**before, **wanted, "change_id": effect["effect_id"], "changed": True}


def _require_voidable(ledger: Ledger, credit: str) -> None:
    if not ledger.effects({"operation": "credits", "effect_id": credit}):
        raise Refused(404, "credit_not_found", "There is no credit with this id.", field="credit")
    for void in ledger.effects({"operation": "voids"}, limit=None):
        if void["fields"]["credit"] == credit:
            message = "This credit was voided before."
            raise Refused(409, "already_voided", message, existing_id=void["effect_id"])


def shape(write: Write, effect: dict[str, Any], *, voided: set[str]) -> dict[str, Any]:
    """An effect as its service shows it."""
    made = {write.identity: effect["effect_id"], **effect["fields"]}
    if write.standing is not None:
        made["status"] = "voided" if effect["effect_id"] in voided else write.standing
    made |= {"reference": effect["reference"], "action_id": effect["action_id"]}
    return made | {"idempotency_key": effect["key"], "created_at": effect["at"]}


def look(ledger: Ledger, route: Route, call: Call, *, behind_seconds: float = 0.0) -> Answer:
    """Answer a read as the world was ``behind_seconds`` ago; ``Refused`` 404 when it is not to be seen."""
    return json_answer(200, VIEWS[route.view](ledger, route, call, ledger.now() - behind_seconds))


def _list(ledger: Ledger, route: Route, call: Call, seen_at: float) -> dict[str, Any]:
    write, fields = _written(route), call.fields
    _refuse_unknown_filters(write, route, fields)
    _require_parents(route, fields)
    since, until = (_time(fields, name) for name in ("since", "until"))
    limit = _limit(fields)
    found = []
    named = {name: fields[name] for name in ("reference", "action_id") if name in fields}
    for item in _shown(ledger, write, seen_at, **named):
        at = parse_time(item["created_at"])
        if (since is None or at >= since) and (until is None or at < until) and _fits(item, fields):
            found.append(item)
    return {"items": found[:limit], "count": len(found), "has_more": len(found) > limit}


def _get(ledger: Ledger, route: Route, call: Call, seen_at: float) -> dict[str, Any]:
    write = _written(route)
    _require_parents(route, call.fields)
    for item in _shown(ledger, write, seen_at, effect_id=call.fields["id"]):
        if _fits(item, call.fields, besides={"id"}):
            return item
    raise Refused(404, "not_found", f"There is no {write.identity} with this value.")


def _written(route: Route) -> Write:
    if route.write is None:
        raise TypeError(f"{route.path} shows no written things")
    return route.write


def _require_parents(route: Route, fields: dict[str, Any]) -> None:
    for part in route.path.split("/"):
        if part.startswith("{") and part != "{id}":
            require_existing(part[1:-1], fields[part[1:-1]])


def _shown(ledger: Ledger, write: Write, seen_at: float, **equal: str) -> Seen:
    voids = ledger.effects({"operation": "voids"}, limit=None, seen_at=seen_at)
    voided = {void["fields"]["credit"] for void in voids}
    named = {"service": write.service, "operation": write.operation, **equal}
    found = ledger.effects(named, limit=None, seen_at=seen_at)
    return [shape(write, effect, voided=voided) for effect in found]


def _refuse_unknown_filters(write: Write, route: Route, fields: dict[str, Any]) -> None:
    parameters = {part[1:-1] for part in write.path.split("/") if part.startswith("{")}
    known = {*PAGING, *write.required, *write.optional, *parameters, "status", write.identity}
    for name in fields:
        if name not in known:
            raise Refused(400, "unknown_filter", f"{route.path} has no filter named {name}.", field=name)


def _fits(item: dict[str, Any], fields: dict[str, Any], besides: set[str] | None = None) -> bool:
    for name, wanted in fields.items():
        if name in ("since", "until", "limit", *(besides or ())):
            continue
        held = {item["reference"], item["action_id"]} if name == "reference" else {_as_text(item.get(name))}
        if wanted not in held:
            return False
    return True


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _time(fields: dict[str, Any], name: str) -> float | None:
    if name not in fields:
        return None
    try:
        return parse_time(fields[name])
    except (ValueError, OverflowError) as error:
        message = f"{name} must be an ISO 8601 time with an offset."
        raise Refused(400, "invalid_filter", message, field=name) from error


def _limit(fields: dict[str, Any]) -> int:
    given = fields.get("limit", "100")
    if not (re.fullmatch(r"[0-9]{1,3}", given) and 1 <= int(given) <= MAX_LIST_ITEMS):
        message = f"limit must be a whole number from 1 to {MAX_LIST_ITEMS}."
        raise Refused(400, "invalid_filter", message, field="limit")
    return int(given)


def _invoice(ledger: Ledger, route: Route, call: Call, seen_at: float) -> dict[str, Any]:
    invoice = call.fields["invoice"]
    require_existing("invoice", invoice)
    credits = _shown(ledger, WRITABLE[("payments", "credits")], seen_at)
    standing = [item for item in credits if item["invoice"] == invoice and item["status"] == "issued"]
    return {**seeded_invoice(invoice), "credited_minor": sum(item["amount_minor"] for item in standing)}


def customer_at(ledger: Ledger, customer: str, *, seen_at: float | None) -> dict[str, Any]:
    """A customer as first seeded, with every change made up to then."""
    made = seeded_customer(customer)
    for effect in ledger.effects({"service": "crm"}, limit=None, seen_at=seen_at):
        if effect["fields"]["customer"] == customer:
            made |= {name: value for name, value in effect["fields"].items() if name != "customer"}
    return made


def _customer(ledger: Ledger, route: Route, call: Call, seen_at: float) -> dict[str, Any]:
    require_existing("customer", call.fields["customer"])
    return customer_at(ledger, call.fields["customer"], seen_at=seen_at)


def ticket_at(ledger: Ledger, ticket: str, *, seen_at: float) -> dict[str, Any]:
    """A ticket: open until its status was changed, with the number of its notes."""
    of_ticket = [
        effect
        for effect in ledger.effects({"service": "tickets"}, limit=None, seen_at=seen_at)
        if effect["fields"]["ticket"] == ticket
    ]
    changes = [effect["fields"]["status"] for effect in of_ticket if effect["operation"] == "status"]
    return {
        "ticket_id": ticket,
        "status": changes[-1] if changes else "open",
        "notes": len(of_ticket) - len(changes),
        "status_changes": len(changes),
    }


def _ticket(ledger: Ledger, route: Route, call: Call, seen_at: float) -> dict[str, Any]:
    require_existing("ticket", call.fields["ticket"])
    return ticket_at(ledger, call.fields["ticket"], seen_at=seen_at)


def _tickets(ledger: Ledger, route: Route, call: Call, seen_at: float) -> dict[str, Any]:
    for name in call.fields:
        if name not in ("status", "limit"):
            raise Refused(400, "unknown_filter", f"/tickets has no filter named {name}.", field=name)
    touched = ledger.effects({"service": "tickets"}, limit=None, seen_at=seen_at)
    names = dict.fromkeys(effect["fields"]["ticket"] for effect in touched)
    found = [ticket_at(ledger, name, seen_at=seen_at) for name in names]
    found = [item for item in found if item["status"] == call.fields.get("status", item["status"])]
    limit = _limit(call.fields)
    return {"items": found[:limit], "count": len(found), "has_more": len(found) > limit}


VIEWS: dict[str, Callable[[Ledger, Route, Call, float], dict[str, Any]]] = {
    "list": _list,
    "get": _get,
    "invoice": _invoice,
    "customer": _customer,
    "ticket": _ticket,
    "tickets": _tickets,
}
