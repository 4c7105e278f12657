"""The tools of a billing desk, as plain functions."""

from __future__ import annotations

import asyncio
from typing import Any

from steadyhand import Call

CREDIT = {"invoice": "in_1", "amount_minor": 2000}
CALL = ("c1", "apply_credit", CREDIT)


class Desk:
    """The tools of a billing desk; `answers` scripts what apply_credit does."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.credits: list[tuple[str, int, str | None]] = []

    def functions(self) -> list[Any]:
        def apply_credit(invoice: str, call: Call, amount_minor: int) -> Any:
            """Credit an invoice.

            Args:
                invoice: The invoice to credit.
                amount_minor: Cents.
            """
            self.credits.append((invoice, amount_minor, call.idempotency_key))
            answer = self.answers.pop(0) if self.answers else {"id": "cr_1"}
            if isinstance(answer, Exception):
                raise answer
            return answer

        async def load_invoice(invoice: str) -> dict[str, str]:
            """Load an invoice."""
            await asyncio.sleep(0)
            return {"invoice": invoice}

        return [apply_credit, load_invoice]
