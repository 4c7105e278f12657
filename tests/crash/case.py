"""One billing case that a crash interrupts: how it begins, how the world goes on, and what must hold afterwards."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from steadyhand import Boundary, SteadyhandError

from recovery.models import Decision
from runs import wall
from runs.models import Action, Attempt, Event
from runs.models import Run as RunRow
from tests.recovery.invariants import broken
from tests.recovery.rebuild import differing
from tests.stack import BASE, Stack
from tests.stories.billing import Agent
from tests.stories.telling import by_reference, credits

ROUND_SECONDS = 60.0
MOST_ROUNDS = 4
"""The liveness bound (I16): the end of a lease, a look, a look that counts, and one to spare."""


@dataclass
class CreditCase:
    """A case under a reference of its own, so that whoever comes after a crash finds its run again."""

    stack: Stack
    agent: Agent
    changes: dict[str, Any] = field(default_factory=dict)
    reference: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        self.workflow = self.stack.register(first_look=1, **self.changes)

    def open(self, boundary: Boundary) -> Any:
        return boundary.run(workflow=self.workflow, intent="Credit", client_ref=self.reference)

    @property
    def run(self) -> RunRow:
        return by_reference(self.stack, self.reference)

    def process(self, point: str) -> subprocess.Popen[bytes]:
        """An agent as a process of its own, on its way to a point of its credit."""
        command = [sys.executable, "-m", "tests.crash.dying_agent", self.stack.url, self.stack.sandbox_url]
        command += [self.workflow, self.reference, self.agent.invoice, point]
        return subprocess.Popen(command, cwd=BASE, env=self.stack.agent_env())

    def go_on(self, done: Callable[[], bool] | None = None) -> None:
        """Time passes, the clock does its work, and a new agent works the case, until it has come to its end."""
        done = done or self.worked
        for _ in range(MOST_ROUNDS):
            if done():
                return
            self.stack.later(ROUND_SECONDS)
            self.stack.sweep_until(self._quiet, "the worker to do what is due")
        assert done(), f"{MOST_ROUNDS} rounds of {ROUND_SECONDS:.0f} s were not enough: {self.run.state}"

    def worked(self) -> bool:
        """Whether an agent that takes the case up brings it to its end now."""
        try:
            with self.stack.boundary() as boundary:
                run = self.open(boundary)
                for step in (self.agent.credit, self.agent.reply):
                    run.turn()
                    step(run)
                return bool(run.finish("Done.").state == "completed")
        except SteadyhandError:
            return False

    def _quiet(self) -> bool:
        with wall.within(self.stack.tenant.pk):
            waits = Decision.objects.filter(run__client_ref=self.reference, state__in=("requested", "running"))
            return not waits.exists()

    # --- what is asked afterwards ---------------------------------------------------------------------------

    def tries(self, tool: str = "apply_credit") -> list[Attempt]:
        with wall.within(self.stack.tenant.pk):
            return list(Attempt.objects.filter(run=self.run, action__tool=tool).order_by("number"))

    def history(self, *kinds: str) -> list[Event]:
        with wall.within(self.stack.tenant.pk):
            events = Event.objects.filter(run=self.run, **({"kind__in": kinds} if kinds else {}))
            return list(events.order_by(*Event.IN_ORDER))

    def counted(self) -> tuple[int, int, int]:
        """(actions, attempts, calls counted) of the run as it stands."""
        with wall.within(self.stack.tenant.pk):
            run = RunRow.objects.get(client_ref=self.reference)
            actions = Action.objects.filter(run=run).count()
            return actions, Attempt.objects.filter(run=run).count(), run.tool_calls

    def calls(self, tool: str = "apply_credit") -> list[Action]:
        with wall.within(self.stack.tenant.pk):
            return list(Action.objects.filter(run__client_ref=self.reference, tool=tool))

    def holds(self, *, credited: int = 1) -> None:
        """One effect, no arrival without its attempt, an end for every run, and no invariant broken."""
        run = self.run
        assert run.ended_at is not None, f"the run was lost in {run.state}"
        assert len(credits(self.stack, self.agent)) == credited
        for call in self.calls():
            sent = self.stack.sandbox.arrivals(operation="credits", method="POST", action_id=call.action_id)
            assert len(sent) <= call.attempts, f"{len(sent)} arrivals of {call.attempts} attempts"
        assert broken(self.stack.tenant.pk) == {}
        assert differing(self.stack.tenant.pk) == {}


def carefully(manifest: dict[str, Any]) -> dict[str, Any]:
    """The same workflow with a credit that no single statement may permit: there may be one for each invoice."""
    return _with(manifest, "apply_credit", {"once_per": ["invoice"]})


def final(manifest: dict[str, Any]) -> dict[str, Any]:
    """The same workflow with a credit that cannot be taken back: one that may have happened pages at once."""
    return _with(manifest, "apply_credit", {"irreversible": True, "compensate": None})


def taken_back(manifest: dict[str, Any]) -> dict[str, Any]:
    """The same workflow with a credit that the worker voids by itself, and can look up."""
    look = {
        "path": "/payments/voids",
        "query": {"note": "{action_id}"},
        "items": "items",
        "ours": {"note": "{action_id}"},
        "match": {"credit": "{arguments.credit}"},
        "external_id": "void_id",
    }
    bounds = {"max_in_flight_seconds": 20, "max_visibility_lag_seconds": 5, "first_look_seconds": 1}
    sent = {
        "connector": "payments",
        "path": "/payments/voids",
        "body": {"credit": "{arguments.credit}", "note": "{action_id}"},
    }
    more = {"send": sent, "reconcile": {"connector": "payments", "look": look, **bounds}}
    return _with(manifest, "void_credit", more)


def few_looks(manifest: dict[str, Any]) -> dict[str, Any]:
    """The same workflow with a credit that is looked for twice, and once more for good."""
    credit = next(tool for tool in manifest["tools"] if tool["name"] == "apply_credit")
    return _with(manifest, "apply_credit", {"reconcile": {**credit["reconcile"], "max_looks": 2}})


def _with(manifest: dict[str, Any], name: str, more: dict[str, Any]) -> dict[str, Any]:
    tools = [{**tool, **more} if tool["name"] == name else tool for tool in manifest["tools"]]
    return {**manifest, "tools": tools}
