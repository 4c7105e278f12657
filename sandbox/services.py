"""What the outside world offers: its operations, the arguments they take, and what a reply looks like."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from sandbox.calls import Refused

Check = Callable[[Any], bool]


def text(most: int = 4000) -> Check:
    """A string that is not empty and not longer than ``most``."""
    return lambda value: isinstance(value, str) and 0 < len(value) <= most


def matches(pattern: str) -> Check:
    """A string that fits a whole pattern."""
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def positive_minor(value: Any) -> bool:
    """Money: a positive integer of minor units that SQLite can hold; never a float, never true or false."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**53


CURRENCY = matches(r"[A-Z]{3}")
IDENTIFIER = matches(r"[^\s/]{1,200}")
MONEY: dict[str, Check] = {"amount_minor": positive_minor, "currency": CURRENCY}
INVOICE = matches(r"INV-[A-Za-z0-9-]{1,60}")


@dataclass(frozen=True, kw_only=True)
class Write:
    """An operation that changes the world, and the lists and look-ups that show what it did."""

    service: str
    operation: str
    path: str
    prefix: str
    identity: str
    required: dict[str, Check]
    optional: dict[str, Check]
    standing: str | None = None
    method: str = "POST"


@dataclass(frozen=True, kw_only=True)
class Route:
    """One verb on one path; ``write`` is the operation it performs or shows."""

    service: str
    operation: str
    kind: str
    method: str
    path: str
    view: str
    write: Write | None = None


WRITES = (
    Write(
        service="payments",
        operation="credits",
        path="/payments/credits",
        prefix="cr",
        identity="credit_id",
        required={"account": IDENTIFIER, "invoice": INVOICE, **MONEY},
        optional={"note": text()},
        standing="issued",
    ),
    Write(
        service="payments",
        operation="refunds",
        path="/payments/refunds",
        prefix="re",
        identity="refund_id",
        required={"charge": IDENTIFIER, **MONEY},
        optional={"note": text()},
        standing="issued",
    ),
    Write(
        service="payments",
        operation="voids",
        path="/payments/voids",
        prefix="vo",
        identity="void_id",
        required={"credit": IDENTIFIER},
        optional={"fee_minor": positive_minor, "note": text()},
        standing="done",
    ),
    Write(
        service="tickets",
        operation="notes",
        path="/tickets/{ticket}/notes",
        prefix="no",
        identity="note_id",
        required={"body": text(20000)},
        optional={"public": lambda value: isinstance(value, bool)},
        standing="added",
    ),
    Write(
        service="tickets",
        operation="status",
        path="/tickets/{ticket}/status",
        prefix="st",
        identity="change_id",
        required={"status": matches("open|pending|on_hold|solved|closed")},
        optional={},
    ),
    Write(
        service="mail",
        operation="drafts",
        path="/mail/drafts",
        prefix="dr",
        identity="draft_id",
        required={"to": text(320), "subject": text(500), "body": text(100000)},
        optional={},
        standing="draft",
    ),
    Write(
        service="mail",
        operation="messages",
        path="/mail/messages",
        prefix="ms",
        identity="message_id",
        required={"to": text(320), "subject": text(500), "body": text(100000)},
        optional={"draft": IDENTIFIER},
        standing="sent",
    ),
    Write(
        service="crm",
        operation="customers",
        path="/crm/customers/{customer}",
        prefix="cu",
        identity="change_id",
        required={},
        optional={
            "name": text(300),
            "email": text(320),
            "plan": text(100),
            "phone": text(100),
            "address": text(),
            "tier": text(100),
            "status": text(100),
        },
        method="PUT",
    ),
)


def _routes() -> tuple[Route, ...]:
    made = []
    for write in WRITES:
        common: dict[str, Any] = {"service": write.service, "operation": write.operation, "write": write}
        made.append(Route(kind="write", method=write.method, path=write.path, view="create", **common))
        if write.method == "POST":
            made.append(Route(kind="read", method="GET", path=write.path, view="list", **common))
            made.append(Route(kind="read", method="GET", path=write.path + "/{id}", view="get", **common))
    return (
        *made,
        _read("payments", "invoices", "/payments/invoices/{invoice}", "invoice"),
        _read("tickets", "tickets", "/tickets", "tickets"),
        _read("tickets", "tickets", "/tickets/{ticket}", "ticket"),
        _read("crm", "customers", "/crm/customers/{customer}", "customer"),
        _read("crm", "changes", "/crm/changes", "list", CUSTOMERS),
    )


def _read(service: str, operation: str, path: str, view: str, write: Write | None = None) -> Route:
    return Route(service=service, operation=operation, kind="read", method="GET", path=path, view=view, write=write)


CUSTOMERS = next(write for write in WRITES if write.operation == "customers")
ROUTES = _routes()
SERVICES = {route.service: {r.operation for r in ROUTES if r.service == route.service} for route in ROUTES}
WRITABLE = {(write.service, write.operation): write for write in WRITES}


def find_route(method: str, path: str) -> tuple[Route, dict[str, str]]:
    """The route and its path parameters; ``Refused`` 404 or 405."""
    parts = path.strip("/").split("/")
    verbs = []
    for route in ROUTES:
        params = _bind(route.path.strip("/").split("/"), parts)
        if params is not None:
            if route.method == method:
                return route, params
            verbs.append(route.method)
    if verbs:
        raise Refused(405, "method_not_allowed", f"This path takes {' or '.join(sorted(set(verbs)))}.")
    raise Refused(404, "not_found", "Nothing lives at this path.")


def _bind(pattern: list[str], parts: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(parts):
        return None
    params = {}
    for want, got in zip(pattern, parts, strict=True):
        if want.startswith("{"):
            params[want[1:-1]] = unquote(got)
        elif want != got:
            return None
    return params


def check_write(write: Write, params: dict[str, str], body: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a write, path parameters included; ``Refused`` 422 names the field at fault."""
    known = {**write.required, **write.optional}
    for name in write.required:
        if name not in body:
            raise Refused(422, "invalid_request", f"The field {name} is missing.", field=name)
    for name, value in body.items():
        if name not in known:
            raise Refused(422, "invalid_request", f"The field {name} is unknown here.", field=name)
        if not known[name](value):
            raise Refused(422, "invalid_request", f"The field {name} has an unusable value.", field=name)
    for name, value in params.items():
        require_existing(name, value)
    return {**params, **body}


def require_existing(name: str, value: str) -> None:
    """Any id exists, except one that is unusable or says itself that it is missing; ``Refused`` 404."""
    wanted = INVOICE if name == "invoice" else IDENTIFIER
    if not wanted(value) or value.startswith("missing"):
        raise Refused(404, f"{name}_not_found", f"There is no {name} with this id.", field=name)


def seeded_number(identifier: str, low: int, high: int) -> int:
    """A number that depends on nothing but the id: the same invoice has the same amount everywhere."""
    digest = hashlib.sha256(identifier.encode()).digest()
    return low + int.from_bytes(digest[:6], "big") % (high - low)


def seeded_invoice(invoice: str) -> dict[str, Any]:
    """An open invoice as the world was born with it."""
    return {
        "invoice_id": invoice,
        "account": f"AC-{seeded_number('account of ' + invoice, 1000, 9999)}",
        "amount_minor": seeded_number(invoice, 1_500, 90_000),
        "currency": "EUR",
        "status": "open",
    }


def seeded_customer(customer: str) -> dict[str, Any]:
    """A customer record as the world was born with it."""
    names = ("Maren Holt", "Tobias Lindqvist", "Ines Carvalho", "Yusuf Demir", "Rosa Keller", "Pavel Novak")
    plans = ("basic", "team", "business")
    return {
        "customer_id": customer,
        "name": names[seeded_number("name " + customer, 0, len(names))],
        "email": f"{seeded_number('mail ' + customer, 100000, 999999)}@customers.example",
        "plan": plans[seeded_number("plan " + customer, 0, len(plans))],
        "status": "active",
    }
