"""The demo's cases: what the customer wants, what the model will do, and what goes wrong in the sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Turn = list[tuple[str, dict[str, Any]]] | str


@dataclass(frozen=True)
class Case:
    """One case. `faults` are played by the sandbox for this case's invoice only."""

    name: str
    intent: str
    workflow: str
    invoice: str
    account: str
    amount_minor: int
    credit_faults: list[dict[str, Any]] = field(default_factory=list)
    invoice_faults: list[dict[str, Any]] = field(default_factory=list)
    address_missing: bool = False

    def turns(self) -> list[Turn]:
        """The model's script: every turn is a list of tool calls, the last one its closing sentence."""
        credit = {
            "account": self.account,
            "invoice": self.invoice,
            "amount_minor": self.amount_minor,
            "currency": "EUR",
        }
        reply = {
            "to": f"{self.account}@customers.example",
            "subject": f"Your invoice {self.invoice}",
            "body": f"We have credited {self.amount_minor / 100:.2f} EUR to your account.",
        }
        return [
            [("load_invoice", {"invoice": self.invoice})],
            [("apply_credit", credit)],
            [("draft_reply", reply)],
            "The credit has been applied and the customer has been informed.",
        ]

    def scope(self) -> dict[str, Any]:
        return {"ids": {"account": [self.account]}, "max_amount_minor": 20_000, "currency": "EUR"}


BUSY = {"do": "status", "status": 429, "headers": {"Retry-After": "3600"}}
REFUSED = {
    "do": "refuse",
    "status": 422,
    "body": {"error": {"code": "invoice_closed", "message": "The invoice is closed."}},
}


OPENING = [
    Case("ok", "Refund the double charge of March", "billing_case", "INV-20901", "acct_8801", 4_200),
    Case(
        "unknown", "Refund the double charge of February", "billing_case", "INV-20931", "acct_8841", 12_000,
        credit_faults=[{"do": "commit_then_drop"}],
    ),
    Case(
        "late", "Correct the meter reading that was booked twice", "meter_correction", "INV-20937", "acct_8850",
        3_100, credit_faults=[{"do": "late_commit", "seconds": 3}],
    ),
    Case(
        "busy", "Goodwill after the outage of Tuesday", "billing_case", "INV-20944", "acct_8862", 955,
        invoice_faults=[BUSY],
    ),
    Case(
        "refused", "Credit an invoice that was closed last year", "billing_case", "INV-18007", "acct_8874", 7_750,
        credit_faults=[REFUSED],
    ),
    Case(
        "input", "Credit the returned deposit", "billing_case", "INV-20958", "acct_8889", 2_500,
        address_missing=True,
    ),
    Case("ok", "Refund the reminder fee", "billing_case", "INV-20961", "acct_8890", 500),
]  # fmt: skip
"""One case of each kind, for a console that has something of everything from the start."""


def numbered(number: int) -> Case:
    """The case of this number: the opening ones first."""
    return OPENING[number] if number < len(OPENING) else ordinary(number)


def ordinary(number: int) -> Case:
    """One more case of an ordinary day; now and then its reply is lost, or its credit lands late."""
    invoice, account = f"INV-3{number:04d}", f"acct_9{number:03d}"
    amount = 500 + (number * 737) % 9_000
    intent = ("Refund a double charge", "Goodwill after a late delivery", "Correct a meter reading")[number % 3]
    if number % 9 == 8:
        lost: list[dict[str, Any]] = [{"do": "commit_then_drop"}]
        return Case("unknown", intent, "billing_case", invoice, account, amount, credit_faults=lost)
    if number % 9 == 4:
        late: list[dict[str, Any]] = [{"do": "late_commit", "seconds": 3}]
        return Case("late", intent, "meter_correction", invoice, account, amount, credit_faults=late)
    return Case("ok", intent, "billing_case", invoice, account, amount)
