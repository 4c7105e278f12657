"""The agent's side of a scenario: a runtime that proposes, sends through the scripted world, and reports.

It knows what a real one knows, permits and answers. It decides no outcome, and it sends only under a permit.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from steadyhand import observe
from steadyhand.contract import Finish, Heartbeat, Observation, Permit, Report, Turn, Usage
from steadyhand.identity import BadInput

from recovery import intake
from recovery.clients import Credentials
from recovery.scenarios import answers
from recovery.scenarios.calls import Call, was_cut
from recovery.scenarios.format import Event, Scenario
from recovery.scenarios.manifest import ASK
from recovery.scenarios.world import Try, World
from runs import wall
from runs.models import Run
from runs.querysets import read_clock
from runs.states import RUN_OPEN

HEARTBEAT_SECONDS = 30.0
READY = ("planning", "executing", "waiting_for_tool", "recovering")
Schedule = Callable[[datetime, Callable[[], None]], None]


@dataclass
class Agent:
    """One agent with one run."""

    scenario: Scenario
    who: Credentials
    run_id: uuid.UUID
    workflow_id: str
    world: World
    schedule: Schedule
    alive: bool = True
    calls: list[Call] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    # --- what the model does --------------------------------------------------------------------------------

    def begin_turn(self, text: str | None, usage: Usage | None) -> None:
        """`usage` None: the script tells later what the turn used."""
        self._turn(Turn(phase="begin"))
        if usage is not None:
            self.end_turn(text, usage)

    def end_turn(self, text: str | None, usage: Usage) -> None:
        self._turn(Turn(usage=usage, text=observe.clean(text, 2000) if text else None))

    def _turn(self, told: Turn) -> None:
        answer = intake.turn(self.who, self.run_id, told, request_id="scenario")
        self._hear(answer.error)

    def call(self, event: Event, tool: str, arguments: dict[str, Any]) -> None:
        call = Call(event, event.step or tool or "call", tool, arguments)
        self.calls.append(call)
        self.propose(call)

    def call_raw(self, event: Event, tool: str, raw: str) -> None:
        """Arguments as the model's text: what is no JSON object is refused, and the record keeps why (F084)."""
        try:
            arguments = json.loads(raw)
        except ValueError as broken:
            return self._unreadable(event, tool, was_cut(broken, raw))
        if isinstance(arguments, dict):
            return self.call(event, tool, arguments)
        return self._unreadable(event, tool, cut=False)

    def _unreadable(self, event: Event, tool: str, cut: bool) -> None:
        call = Call(event, event.step or tool or "call", tool, {})
        call.unreadable = "truncated_arguments" if cut else "invalid_arguments"
        self.calls.append(call)
        self.propose(call)

    def ask(self, event: Event) -> None:
        """A question to the requester is the call of a tool that needs their input."""
        words = str(event.get("text") or event.get("question") or "What is missing?")
        call = Call(event, event.step or "question", ASK, {"question": words[:1000]})
        self.calls.append(call)
        self.propose(call)

    def finish(self, claim: str | None = None, *, ended_by: Any = "agent") -> None:
        told = Finish(claim=observe.clean(claim, 8000) if claim else None, ended_by=ended_by)
        intake.finish(self.who, self.run_id, told, request_id="scenario")

    # --- what the runtime does ------------------------------------------------------------------------------

    def propose(self, call: Call, *, layer: str = "agent") -> None:
        """Ask; what the answer allows is done at once, and everything else waits for its time."""
        proposal = call.proposal(self.workflow_id, layer)
        try:
            permit = intake.propose(self.who, self.run_id, proposal, request_id="scenario")
        except (BadInput, intake.Conflict) as refused:
            call.stage = "done"
            self.told.append(str(refused))
            return
        self._hear(permit.error)
        if permit.action_id:
            self.world.steps.setdefault(permit.action_id, call.step)
        if permit.answer == "execute":
            self._send(call, permit)
        elif call.stage != "in_flight":
            self._wait(call, permit)

    def _wait(self, call: Call, permit: Permit) -> None:
        run = self.run()
        waits = permit.answer == "wait" or (permit.answer == "stop" and run.state in RUN_OPEN)
        call.stage = "waiting" if waits else "done"
        asks_a_person = permit.error is not None and permit.error.code == "approval_required"
        # While a person, a look-up or a provider's message is awaited, the feed tells of the answer.
        awaited = asks_a_person or run.state == "verifying"
        call.retry_at, call.seen = None if awaited else permit.due_at, run.version

    def _send(self, call: Call, permit: Permit) -> None:
        call.stage, call.permit, call.retry_at = "in_flight", permit, None
        if call.tool == ASK:
            missing = str(call.event.get("field") or "question")[:200]
            asked = Observation(kind="exception", declared="needs_input", declared_field=missing)
            return self._report(call, permit, asked)
        if permit.refresh_credential and not self._refreshed():
            rejected = Observation(kind="not_sent", declared="credentials_rejected", message="The refresh failed.")
            return self._report(call, permit, rejected)
        if self._dies_holding_it(call):
            return None
        sent = self.world.send(self.world.steps.get(permit.action_id or "", call.step), call.tool)
        call.awaits = sent.first
        now, usual = read_clock(), permit.timeout_seconds or 30.0
        if sent.first is not None or not self._dies_before(now + timedelta(seconds=usual)):
            took = sent.latency(usual)
            self.schedule(now + timedelta(seconds=took), lambda: self._came_back(call, permit, sent.first, took))
        self._later_words(call, permit, sent, now)
        self._beat(permit, now, sent)
        return None

    def _refreshed(self) -> bool:
        event = self.world.refreshes.popleft() if self.world.refreshes else None
        if event is not None:
            self.world.happened(event)
        return event is not None and str(event.get("result", "ok")) in ("ok", "success", "refreshed", "True")

    def _dies_holding_it(self, call: Call) -> bool:
        """Whether the script has the process die between its permit and its send: then nothing leaves."""
        call.awaits = None
        leaves = self.world.next_send(call.step)
        deaths = [event.t for event in self.scenario.of_type("crash") if event.t > self.world.clock.t]
        return leaves is not None and any(death < leaves.t for death in deaths)

    def _dies_before(self, moment: datetime) -> bool:
        return any(self.world.clock.at(event.t) <= moment for event in self.scenario.of_type("crash"))

    def _later_words(self, call: Call, permit: Permit, sent: Try, now: datetime) -> None:
        start = sent.sent.t if sent.sent else (sent.first.t if sent.first else 0.0)
        for late in sent.late:
            took = max(0.0, late.t - start)
            self.schedule(now + timedelta(seconds=took), partial(self._came_back, call, permit, late, took))

    def _beat(self, permit: Permit, now: datetime, sent: Try) -> None:
        """Between the heartbeats that the file lists, one every 30 seconds is understood."""
        listed = [self.world.clock.at(event.t) for event in self.scenario.of_type("heartbeat")]
        answered = now + timedelta(seconds=sent.latency(permit.timeout_seconds or 30.0))
        last = max((at for at in listed if at < answered), default=now)
        beats = int((last - now).total_seconds() // HEARTBEAT_SECONDS)
        for number in range(1, beats + 1):
            self.schedule(now + timedelta(seconds=HEARTBEAT_SECONDS * number), lambda: self.beat(permit))

    def beat(self, permit: Permit) -> None:
        beat = Heartbeat(attempt_id=permit.attempt_id or "", fence=permit.fence or 0)
        try:
            intake.heartbeat(self.who, self.run_id, beat, request_id="scenario")
        except intake.Conflict as lost:
            self.told.append(str(lost))

    def _came_back(self, call: Call, permit: Permit, event: Event | None, took: float) -> None:
        if event is not None:
            self._report(call, permit, answers.observation(event, latency_ms=int(took * 1000)))
            return self.world.happened(event)
        return self._report(call, permit, answers.observation(None, latency_ms=int(took * 1000)))

    def _report(self, call: Call, permit: Permit, seen: Observation) -> None:
        told = Report(attempt_id=permit.attempt_id or "", tool=call.tool, fence=permit.fence or 0, observation=seen)
        try:
            reported = intake.report(self.who, self.run_id, told, request_id="scenario")
        except intake.Conflict as late:
            self.told.append(str(late))
            return
        self._hear(reported.error)
        if call.permit is not permit:
            return
        waits = reported.answer in ("again", "suspend")
        again = reported.answer == "again"
        call.stage, call.retry_at = ("waiting" if waits else "done"), reported.due_at if again else None
        call.seen = self.run().version

    def poke(self) -> None:
        """Propose again what may go on now: its time has come, or the feed says that the run is ready."""
        for call in self.calls if self.alive else ():
            if call.stage == "waiting" and self._is_time(call):
                self.propose(call)

    def _is_time(self, call: Call) -> bool:
        if call.retry_at is not None and call.retry_at <= read_clock():
            return True
        run = self.run()
        return run.version != call.seen and (run.state in READY or run.state not in RUN_OPEN)

    def again(self) -> None:
        """A runner comes back, or a queue hands the work out once more: everything unfinished is asked for again."""
        for call in [call for call in self.calls if call.stage != "done"]:
            self.propose(call)

    def lose(self) -> None:
        """Everything that was in this process's hands is gone with it."""
        self.alive = False
        for call in self.in_flight():
            if call.awaits is None:
                call.stage, call.retry_at, call.seen = "waiting", None, self.run().version

    def next_at(self) -> datetime | None:
        times = [call.retry_at for call in self.calls if call.stage == "waiting" and call.retry_at and self.alive]
        return min(times, default=None)

    def in_flight(self) -> list[Call]:
        return [call for call in self.calls if call.stage == "in_flight"]

    def run(self) -> Run:
        with wall.within(self.who.tenant_id):
            return Run.objects.get(pk=self.run_id)

    def _hear(self, error: Any) -> None:
        """What the model gets to read, kept for the texts that it must never see."""
        if error is not None:
            self.told.append(json.dumps(error.model_dump(mode="json")))
