"""The demo's agent process: the OpenAI Agents SDK with a scripted model, its tools called through the boundary.

Each case is an agent of its own. A case that is suspended is taken up again when the events feed says that its run is
ready; the agent then starts its script anew, and proven effects are returned from the record instead of being made
again. Killed and started again, it finds its unfinished runs by their reference.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
from agents import Agent, RunConfig, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from steadyhand import Boundary, Call, Refused, Run, Stopped, Suspended, Unavailable, http_call
from steadyhand.adapters.openai_agents import guarded_tools, run_agent_sync
from steadyhand.errors import NeedsInput

from demo import cases, workflows
from demo.cases import Case, Turn

SECONDS_BETWEEN_CASES = 45.0
MOST_CASES = 400
TAKEN_UP_AGAIN = 40
ENDED = ("completed", "failed", "cancelled")


class Desk:
    """One agent process at its desk: the boundary, the sandbox, and the cases that wait to be resumed."""

    def __init__(self, boundary: Boundary, sandbox: str, state: Path) -> None:
        self.boundary = boundary
        self.sandbox = httpx.Client(base_url=sandbox, timeout=10, trust_env=False)
        self.state = state
        self.waiting: dict[str, Case] = {}
        self.lock = threading.Lock()
        self.stopping = threading.Event()

    def register(self) -> None:
        base = str(self.sandbox.base_url).rstrip("/")
        slow = workflows.billing(base, in_flight_seconds=900, lag_seconds=60, first_look_seconds=1800)
        quick = workflows.billing(base, in_flight_seconds=45, lag_seconds=15, first_look_seconds=0)
        self.boundary.register("billing_case", slow)
        self.boundary.register("meter_correction", quick)

    def open(self, case: Case, reference: str) -> None:
        """Work a new case, or one that an earlier process left: the reference finds its run again."""
        run = self.boundary.run(
            workflow=case.workflow,
            intent=case.intent,
            scope=case.scope(),
            client_ref=reference,
            customer_ref=case.account,
            requester=f"{case.account}@customers.example",
            model="scripted",
        )
        if run.outcome().state in ENDED:
            run.close()  # an earlier process brought it to its end
        else:
            self._work(run, case)

    def resume(self, run_id: str) -> None:
        """Take up a run that has become ready; if it is not, it goes on waiting."""
        case = self._take(run_id)
        if case is None:
            return
        try:
            run = self.boundary.resume(run_id)
        except Suspended:
            self._wait(run_id, case)
        except Stopped as stopped:
            say(f"{case.name}: ended as {stopped}")
        else:
            self._work(run, case)

    def follow(self) -> None:
        """Read the events feed and resume what it says is ready."""
        after: str | None = None
        while not self.stopping.is_set():
            try:
                page = self.boundary.events(after=after, limit=200)
                after = page.next
                for event in page.items:
                    if event.kind == "ready":
                        self.resume(event.run_id)
            except (Unavailable, httpx.HTTPError) as wrong:
                say(f"the console is away: {wrong}")
            self.stopping.wait(1.0)

    def _work(self, run: Run, case: Case) -> None:
        tools = guarded_tools(run, _functions(self.sandbox, case))
        model = ScriptedModel([_turn(number, turn) for number, turn in enumerate(case.turns())])
        agent = Agent(name="billing", model=model, tools=tools)
        try:
            with run:
                end = run_agent_sync(run, agent, case.intent, run_config=RunConfig(tracing_disabled=True))
            say(f"{case.name}: {end.outcome.state}, {end.outcome.reason_code}")
        except Suspended as suspended:
            say(f"{case.name}: waits, {suspended}")
            self._wait(run.run_id, case)
        except (Stopped, Refused, Unavailable) as stopped:
            say(f"{case.name}: stopped, {stopped}")

    def _wait(self, run_id: str, case: Case) -> None:
        with self.lock:
            self.waiting[run_id] = case

    def _take(self, run_id: str) -> Case | None:
        with self.lock:
            return self.waiting.pop(run_id, None)

    def script_faults(self, case: Case) -> None:
        for operation, script in (("credits", case.credit_faults), ("invoices", case.invoice_faults)):
            if script:
                match = {"service": "payments", "operation": operation, "field": {"invoice": case.invoice}}
                self.sandbox.post("/_control/faults", json={"match": match, "script": script}).raise_for_status()


def _functions(sandbox: httpx.Client, case: Case) -> list[Any]:
    """The tools as plain functions: one HTTP call each, the action's identity passed on, nothing retried."""

    def load_invoice(invoice: str, call: Call) -> httpx.Response:
        """Load an invoice."""
        return http_call(call, sandbox, "GET", f"/payments/invoices/{invoice}")

    def apply_credit(account: str, invoice: str, amount_minor: int, currency: str, call: Call) -> httpx.Response:
        """Credit an account."""
        body = {"account": account, "invoice": invoice, "amount_minor": amount_minor, "currency": currency}
        return _post(sandbox, "/payments/credits", body, call)

    def draft_reply(to: str, subject: str, body: str, call: Call) -> httpx.Response:
        """Draft the reply to the customer."""
        if case.address_missing:
            raise NeedsInput("The customer's address is missing.", field="to")
        return _post(sandbox, "/mail/drafts", {"to": to, "subject": subject, "body": body}, call)

    return [load_invoice, apply_credit, draft_reply]


def _post(sandbox: httpx.Client, path: str, body: dict[str, Any], call: Call) -> httpx.Response:
    return http_call(call, sandbox, "POST", path, json=body, headers={"X-Action-Id": call.action_id or ""})


def _turn(number: int, turn: Turn) -> Any:
    if isinstance(turn, str):
        return [assistant_message(turn)]
    return [function_call(name, arguments, call_id=f"call_{number}") for name, arguments in turn]


def say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    """Work the opening cases at once, then one more every so often, until stopped."""
    set_tracing_disabled(True)
    token = Path(os.environ["STEADYHAND_TOKEN_FILE"]).read_text().strip()
    state = Path(os.environ["STEADYHAND_DEMO_STATE"])
    with Boundary(os.environ["STEADYHAND_URL"], token, max_wait=2) as boundary:
        desk = Desk(boundary, os.environ["SANDBOX_URL"], state)
        signal.signal(signal.SIGTERM, lambda *_: desk.stopping.set())
        signal.signal(signal.SIGINT, lambda *_: desk.stopping.set())
        desk.register()
        with ThreadPoolExecutor(max_workers=4) as pool:
            follower = pool.submit(desk.follow)
            _day(desk, pool)
            desk.stopping.set()
            follower.result()


def _day(desk: Desk, pool: ThreadPoolExecutor) -> None:
    """The opening once per installation, then an ordinary day that goes on where an earlier process stopped."""
    done = json.loads(desk.state.read_text())["cases"] if desk.state.exists() else 0
    for number in range(max(0, done - TAKEN_UP_AGAIN), done):
        pool.submit(_guarded, desk, cases.numbered(number), f"demo-{number}")
    for number in range(done, MOST_CASES):
        if desk.stopping.is_set():
            return
        desk.script_faults(cases.numbered(number))
        desk.state.write_text(json.dumps({"cases": number + 1}))
        pool.submit(_guarded, desk, cases.numbered(number), f"demo-{number}")
        desk.stopping.wait(0.2 if number + 1 < len(cases.OPENING) else SECONDS_BETWEEN_CASES)


def _guarded(desk: Desk, case: Case, reference: str) -> None:
    """A case that breaks is said, and the day goes on."""
    started = time.monotonic()
    try:
        desk.open(case, reference)
    except Exception as wrong:
        say(f"{case.name}: broke after {time.monotonic() - started:.1f} s, {type(wrong).__name__}: {wrong}")


if __name__ == "__main__":
    main()
