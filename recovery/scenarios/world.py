"""The scripted connector: it answers what the product sends and asks, in the file's order, and counts arrivals."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from django.db import connection
from steadyhand.contract import Observation

from recovery.connectors.base import Finding
from recovery.scenarios import answers, hints
from recovery.scenarios.format import ANSWERS, Event, Scenario
from runs.querysets import read_clock

SLACK_SECONDS = 5.0


class Clock:
    """The database's clock, moved by hand; it never goes back."""

    def __init__(self, started_at: datetime) -> None:
        self.started_at = started_at
        self.move(started_at)

    def move(self, to: datetime) -> None:
        self.now = to
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('app.now', %s, false)", [to.isoformat()])

    def at(self, t: float) -> datetime:
        return self.started_at + timedelta(seconds=t)

    @property
    def t(self) -> float:
        return (self.now - self.started_at).total_seconds()


@dataclass
class Try:
    """One scripted send: when it left in the file, what came back first, and what came later on the same send."""

    sent: Event | None
    first: Event | None = None
    late: list[Event] = field(default_factory=list)

    def latency(self, unanswered: float) -> float:
        if self.first is None:
            return unanswered
        return max(0.0, self.first.t - self.sent.t) if self.sent else 0.1


class Sent(Protocol):
    """What the worker is about to send: a poll, an undo, a call that it makes itself."""

    @property
    def tool(self) -> Any: ...
    @property
    def action_id(self) -> str: ...


class World:
    """`happened` is told each scripted event as it takes effect, at whatever time the product brought it about."""

    def __init__(self, scenario: Scenario, clock: Clock, happened: Callable[[Event], None]) -> None:
        self.scenario, self.clock, self.happened = scenario, clock, happened
        self.tries = _tries(scenario)
        self.looks = {step: deque(found) for step, found in _by_step(scenario.of_type("reconcile")).items()}
        self.refreshes = deque(scenario.of_type("credential_refresh"))
        self.sends: Counter[str] = Counter()
        self.sends_of_step: Counter[str] = Counter()
        self.steps: dict[str, str] = {}

    def send(self, step: str, tool: str) -> Try:
        """A call arrives at the provider: the next scripted answer of its step, or silence."""
        self.sends[tool] += 1
        self.sends_of_step[step] += 1
        queue = self.tries.get(step)
        found = queue.popleft() if queue else Try(None)
        if found.sent is not None:
            self.happened(found.sent)
        return found

    def upcoming(self, step: str) -> Event | None:
        """The next answer that the script still holds for a step."""
        queue = self.tries.get(step)
        return next((one.first for one in queue or () if one.first is not None), None)

    def next_send(self, step: str) -> Event | None:
        """The next send that the script holds for a step."""
        queue = self.tries.get(step)
        return queue[0].sent if queue else None

    def transmit(self, outgoing: Sent) -> Observation:
        """What the worker sends by itself; the clock moves on as long as the answer takes."""
        tool = outgoing.tool if isinstance(outgoing.tool, str) else outgoing.tool.name
        step = next((name for name in _steps_without_a_proposal(self.scenario, tool) if self.tries.get(name)), tool)
        is_poll = any(other.get("poll_tool") == tool for other in self.scenario.tools)
        found = self._polled(step) if is_poll else self.send(step, tool)
        took = found.latency(10.0)
        self.clock.move(self.clock.now + timedelta(seconds=took))
        if found.first is not None:
            self.happened(found.first)
        return answers.observation(found.first, latency_ms=int(took * 1000))

    def _looks_at(self, tool: str) -> deque[Event]:
        """Look-ups that the file lists under another step of the same tool, as it does for an undo."""
        steps = hints.steps_of(self.scenario, tool)
        return next((queue for step, queue in self.looks.items() if step in steps and queue), deque())

    def _polled(self, step: str) -> Try:
        """A poll is a look-up: it counts as no send (ruling 12)."""
        queue = self.tries.get(step)
        return queue.popleft() if queue else Try(None)

    def ask(self, step: str, tool: str, arguments: dict[str, Any], *, last: bool, by_person: bool) -> Finding:
        """A look-up. An answer is given once, and not before its time unless no later look can fetch it."""
        queue = self.looks.get(step) or self._looks_at(tool)
        early = bool(queue) and queue[0].t > (read_clock() - self.clock.started_at).total_seconds() + SLACK_SECONDS
        event = queue.popleft() if queue and (not early or last or by_person) else None
        if event is not None:
            self.happened(event)
        declared = self.scenario.tool(tool)
        return answers.finding(
            event, declared, arguments, final=hints.is_authoritative(self.scenario, declared) if declared else False
        )


def _tries(scenario: Scenario) -> dict[str, deque[Try]]:
    found: dict[str, deque[Try]] = defaultdict(deque)
    for event in sorted(scenario.of_type("dispatch", *ANSWERS), key=lambda event: event.index):
        queue = found[event.step]
        if event.type == "dispatch":
            queue.append(Try(event))
        elif not queue:
            queue.append(Try(None, event))
        elif queue[-1].first is None:
            queue[-1].first = event
        else:
            queue[-1].late.append(event)
    return dict(found)


def _by_step(events: list[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        found[event.step].append(event)
    return found


def _steps_without_a_proposal(scenario: Scenario, tool: str) -> list[str]:
    """Steps that the file names for what the product sends by itself, in their order."""
    named = [event.step for event in scenario.of_type("dispatch") if event.get("tool") == tool]
    return list(dict.fromkeys(named))
