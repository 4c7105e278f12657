"""A billing agent's tools, as an engineer would write them: one HTTP call each, nothing retried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
from steadyhand import Call, Run, http_call

ACCOUNT = "acct_1"


class Agent:
    """Calls the sandbox; every call goes through the run's boundary."""

    def __init__(self, sandbox: str, invoice: str) -> None:
        self.client = httpx.Client(base_url=sandbox, timeout=5, trust_env=False)
        self.invoice = invoice

    def load(self, run: Run) -> Any:
        def load_invoice(arguments: dict[str, Any], call: Call) -> httpx.Response:
            return http_call(call, self.client, "GET", f"/payments/invoices/{arguments['invoice']}")

        return run.call(load_invoice, {"invoice": self.invoice})

    def credit(
        self, run: Run, amount_minor: int = 12_000, *, then: Callable[[], object] | None = None, **more: Any
    ) -> Any:
        """`then` happens between the provider's answer and our report of it."""

        def apply_credit(arguments: dict[str, Any], call: Call) -> httpx.Response:
            headers = {"X-Action-Id": call.action_id or ""}
            reply = http_call(call, self.client, "POST", "/payments/credits", json=arguments, headers=headers)
            if then is not None:
                then()
            return reply

        arguments = {"account": ACCOUNT, "invoice": self.invoice, "amount_minor": amount_minor, "currency": "EUR"}
        return run.call(apply_credit, {**arguments, **more})

    def reply(self, run: Run) -> Any:
        def draft_reply(arguments: dict[str, Any], call: Call) -> httpx.Response:
            headers = {"X-Action-Id": call.action_id or ""}
            return http_call(call, self.client, "POST", "/mail/drafts", json=arguments, headers=headers)

        return run.call(draft_reply, {"to": "c@customers.example", "subject": "Credit", "body": "Credited."})

    def work(self, run: Run) -> Any:
        """The whole case, each step in a turn of its own."""
        for step in (self.load, self.credit, self.reply):
            run.turn()
            step(run)
        return run.finish("The credit has been applied and the customer was told.")
