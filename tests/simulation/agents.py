"""Agents as the boundary drives them: propose, dispatch once, report, wait or leave, come back, finish."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from steadyhand.contract import (
    Cancel,
    Finish,
    Observation,
    OpenRun,
    Permit,
    Proposal,
    Report,
    Reported,
    Resume,
    Rollback,
    Scope,
    Turn,
    Usage,
)

from recovery import intake
from recovery.clients import Credentials
from runs.states import RUN_OPEN
from tests.simulation.outside import Outside
from tests.simulation.remote import Call
from tests.simulation.world import Fault, Killed, World

LATENCY = 0.02
MAX_WAIT = 30.0
MOST_ASKED = 16
MOST_SESSIONS = 14


class ConnectionLost(Exception):
    """The server did not answer; whether it did what was asked is not known."""


class Suspended(Exception):
    """The call waits for longer than the process does."""

    def __init__(self, seconds: float | None) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Stopped(Exception):
    """The run takes no further calls for now."""


@dataclass(frozen=True)
class Temper:
    """How an agent behaves where it could behave well.

    dies        the share of dispatches in the middle of which its process is killed
    pauses      the share of dispatches after which it stands still for longer than its lease (a zombie)
    pauses_before    the same before it sends
    changes     it proposes other arguments where it is asked to wait
    loops       it asks for the same call again under another step, so many times
    hurries     it goes on to the next step without waiting for the last
    liar        it says that it is done before it has begun the last step
    leaves      it never comes back once it was told to wait
    cancels, rolls_back    what it asks for after so many steps
    wild        calls that it should not make, made first
    babbles     its first call is prose and no JSON
    other_version    it was written for another version of the workflow than its run is pinned to
    turn_limit  its framework stops it, and its last sentence is its claim
    """

    dies: float = 0.0
    pauses: float = 0.0
    pauses_before: float = 0.0
    changes: bool = False
    loops: int = 0
    hurries: bool = False
    liar: bool = False
    leaves: bool = False
    cancels: int | None = None
    rolls_back: int | None = None
    cancels_at: float | None = None
    rolls_back_at: float | None = None
    wild: tuple[tuple[str, dict[str, Any]], ...] = ()
    unmeasured: bool = False
    babbles: bool = False
    other_version: bool = False
    turn_limit: bool = False
    claim: str = "Everything is done and the customer is happy."


Plan = tuple[tuple[tuple[str, dict[str, Any]], ...], ...]
"""Turns of calls: each a tool and its arguments."""


@dataclass
class Server:
    """The way in, as agents meet it: it may die in the middle of a request, or its answer may be lost."""

    world: World
    loses: float = 0.0
    down: tuple[float, float] = (0.0, 0.0)

    def ask(self, what: Callable[[], Any], *, told: str = "") -> Any:
        world = self.world
        world.sleep(LATENCY)
        if self.down[0] <= world.now < self.down[1]:
            raise ConnectionLost
        try:
            answer = what()
            if told:
                world.point(told, "after")
        except (Killed, Fault) as dead:
            world.note(f"the server died: {dead}")
            raise ConnectionLost from None
        if self.loses and world.rng.random() < self.loses:
            raise ConnectionLost
        return answer


@dataclass
class Agent:
    """One agent's work on one run, over as many processes as it takes."""

    world: World
    server: Server
    outside: Outside
    who: Credentials
    workflow: str
    workflow_id: uuid.UUID
    plan: Plan
    temper: Temper = Temper()
    ref: str = "ref-1"
    run_id: uuid.UUID | None = None
    sessions: int = 0
    over: bool = False
    answers: dict[str, Any] = field(default_factory=dict)
    counted: int = 0

    # --- sessions -----------------------------------------------------------------------------------------------

    def live(self) -> None:
        """One process of this agent; another one takes over when it dies or has waited."""
        self.sessions += 1
        again: float | None = 20.0
        try:
            again = self._session()
        finally:
            if again is not None and self.sessions < MOST_SESSIONS and not self.over:
                self.world.spawn(f"agent {self.ref}", self.live, after=again)

    def _session(self) -> float | None:
        """Seconds until it comes back; None if it does not."""
        try:
            self.world.point("C00")
            self._work()
            return None
        except Suspended as wait:
            if self.temper.leaves:
                return None
            wanted = wait.seconds if wait.seconds is not None else 120.0 * self.sessions
            return min(3000.0, max(1.0, wanted)) + self.world.rng.uniform(0.0, 5.0)
        except Stopped:
            return None if self._ended() or self.temper.leaves else 90.0 * self.sessions
        except ConnectionLost:
            return 15.0
        except Fault:
            return 10.0

    def _work(self) -> None:
        self._open()
        for number, calls in enumerate(self.plan):
            if self.temper.cancels == number or self.temper.rolls_back == number:
                self._turn_back()
            if self.temper.liar and number == len(self.plan) - 1:
                break
            self._turn(number)
            for tool, arguments in (*(self.temper.wild if number == 0 else ()), *calls):
                self._step(tool, arguments, f"{tool}-{number}")
        self.finish()

    def _step(self, tool: str, arguments: dict[str, Any], step: str) -> None:
        if step in self.answers:
            return
        for loop in range(1 + self.temper.loops):
            try:
                told = self.call(tool, arguments, step if loop == 0 else f"{step}-again{loop}")
            except Suspended:
                if not self.temper.hurries:
                    raise
                continue
            self.answers[step] = told

    def _open(self) -> None:
        request = OpenRun(
            workflow=self.workflow, client_ref=self.ref, intent="Refund what was charged twice",
            scope=Scope(max_amount_minor=10_000_000),
        )  # fmt: skip
        if self.run_id is not None:
            self._ask(lambda: intake.resume(self.who, self.run_id, Resume(), request_id="sim"))
            return
        opened = self._ask(lambda: intake.open_run(self.who, request, request_id="sim"))
        self.run_id = uuid.UUID(opened.run_id)

    def _turn(self, number: int) -> None:
        """A turn of the model; what it used is told once, and may not be known."""
        if number < self.counted:
            return
        usage = Usage() if self.temper.unmeasured else Usage(input_tokens=900, output_tokens=120)
        told = self._ask(lambda: intake.turn(self.who, self.run_id, Turn(usage=usage), request_id="sim"))
        if told.answer == "stop":
            raise Stopped
        self.counted = number + 1

    def _turn_back(self) -> None:
        if self.temper.cancels is not None:
            self.cancel()
        else:
            self.roll_back()
        raise Stopped

    def cancel(self) -> None:
        told = Cancel(reason="The customer does not want it any more")
        self._ask(lambda: intake.cancel(self.who, self.run_id, told, request_id="sim"))

    def roll_back(self) -> None:
        told = Rollback(reason="The customer does not want it any more")
        self._ask(lambda: intake.rollback(self.who, self.run_id, told, request_id="sim"))

    def finish(self) -> None:
        told = Finish(claim=self.temper.claim, ended_by="turn_limit" if self.temper.turn_limit else "agent")
        self._ask(lambda: intake.finish(self.who, self.run_id, told, request_id="sim"), told="C15")
        if not self._ended():
            raise Suspended(None)

    def _ended(self) -> bool:
        if self.run_id is None:
            return False
        document = self._ask(lambda: intake.read(self.who, self.run_id, request_id="sim"))
        self.over = document.state not in RUN_OPEN
        return self.over

    # --- one call -------------------------------------------------------------------------------------------------

    def call(self, tool: str, arguments: dict[str, Any], step: str) -> Any:
        """Until it is settled, or the process would wait too long. What it came to, as the boundary's word."""
        for asked in range(MOST_ASKED):
            drifted = self._drifted(arguments, asked)
            permit = self._propose(tool, drifted, step)
            self.world.note(f"{step}: {permit.answer} {permit.error.code if permit.error else ''}")
            if permit.answer == "execute":
                told = self._dispatch(permit, tool, drifted)
                if told is None or told.answer == "again":
                    self._wait(told.wait_seconds if told is not None else 1.0)
                    continue
                if told.answer == "result":
                    return ("result", told.result)
                if told.answer == "error":
                    return ("error", told.reason_code)
                if told.answer == "stop":
                    raise Stopped
                raise Suspended(self._until(told))
            if permit.answer == "wait":
                self._wait(permit.wait_seconds, asked)
                continue
            if permit.answer == "replay":
                return ("result", permit.result)
            if permit.answer == "deny":
                return ("error", permit.error.code if permit.error else "")
            raise Stopped
        raise Suspended(None)

    def _drifted(self, arguments: dict[str, Any], asked: int) -> dict[str, Any]:
        if not self.temper.changes or asked == 0 or "amount" not in arguments:
            return arguments
        return {**arguments, "amount": arguments["amount"] + asked % 2}

    def _until(self, told: Reported) -> float | None:
        return max(0.0, self.world.seconds(told.due_at) - self.world.now) if told.due_at is not None else None

    def _wait(self, seconds: float | None, asked: int = 0) -> None:
        """What takes longer is asked for ever more rarely."""
        if seconds is None or seconds > MAX_WAIT:
            raise Suspended(seconds)
        self.world.sleep(max(seconds, min(10.0, 0.05 * 3**asked)))

    def _propose(self, tool: str, arguments: dict[str, Any], step: str) -> Permit:
        workflow = uuid.UUID(int=1) if self.temper.other_version and self.answers else self.workflow_id
        proposal = Proposal(workflow_id=str(workflow), tool=tool, arguments=arguments, step=step)
        if self.temper.babbles and not self.answers:
            proposal = proposal.model_copy(update={"arguments": {}, "unreadable": "invalid_arguments"})
        return self._ask(
            lambda: intake.propose(self.who, self.run_id, proposal, request_id="sim"), told="C05"
        )  # fmt: skip

    def _dispatch(self, permit: Permit, tool: str, arguments: dict[str, Any]) -> Reported | None:
        """Once, inside the permit's time; whatever goes wrong in between is reported as what it is."""
        world, granted = self.world, self.world.now
        if world.rng.random() < self.temper.pauses_before:
            world.sleep(world.rng.uniform(6.0, 80.0))
        try:
            world.point("C06")
            world.point("C06", "after")
            if world.now - granted > (permit.dispatch_within_seconds or 5.0):
                seen = Observation(kind="not_sent", message="the permit was too old")
            else:
                seen = self._send(permit, tool, permit.arguments or arguments)
        except Fault as wrong:
            seen = Observation(kind="exception", exc_type=type(wrong).__name__, message=str(wrong))
        if world.rng.random() < self.temper.pauses:
            world.sleep(world.rng.uniform(30.0, 400.0))
        told = Report(attempt_id=permit.attempt_id or "", fence=permit.fence or 0, observation=seen, tool=tool)
        return self._report(told)

    def _send(self, permit: Permit, tool: str, arguments: dict[str, Any]) -> Observation:
        call = Call(
            tool, permit.action_id or "", permit.idempotency_key or "", arguments, write=tool != "find",
            attempt=permit.attempt or 1, items=tuple(one["payee"] for one in arguments.get("items", ())),
        )  # fmt: skip
        if self.world.rng.random() < self.temper.dies:
            self.outside.remote.send(call, self.world.now)
            raise Killed("the agent died in its call")
        seen = self.outside.call(call, timeout=permit.timeout_seconds or 10.0, attempt=permit.attempt)
        self.world.point("C12", "after")
        return seen

    def _report(self, told: Report) -> Reported | None:
        """From the spool, until somebody takes it; given up after a while, for the lease's end says the same."""
        for delay in (0.5, 2.0, 10.0):
            try:
                return self._ask_once(
                    lambda: intake.report(self.who, self.run_id, told, request_id="sim"), told="C15"
                )
            except ConnectionLost:
                self.world.sleep(delay)
        return None

    def _ask_once(self, what: Callable[[], Any], told: str = "") -> Any:
        return self.server.ask(what, told=told)

    def _ask(self, what: Callable[[], Any], told: str = "") -> Any:
        """Asking is repeated: the record knows what it has answered already."""
        for delay in (0.2, 1.0, 5.0):
            try:
                return self._ask_once(what, told)
            except ConnectionLost:
                self.world.sleep(delay)
        return self._ask_once(what, told)


__all__ = ["Agent", "ConnectionLost", "Plan", "Server", "Stopped", "Suspended", "Temper"]
