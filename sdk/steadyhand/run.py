"""One run, as the agent drives it: propose, call once, report, and do what the answer says."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

import httpx

from steadyhand import observe
from steadyhand.calls import Call, Tool, ToolFunction, as_tool, perform, recordable
from steadyhand.contract import (
    OUTCOME_OF,
    Cancel,
    Finish,
    Heartbeat,
    Observation,
    OutcomeDocument,
    Permit,
    Proposal,
    Report,
    Reported,
    StepState,
    Turn,
    TurnAnswer,
    Usage,
)
from steadyhand.errors import (
    Problem,
    Refused,
    SteadyhandError,
    Stopped,
    Suspended,
    Unavailable,
    plain_error,
    refused_input,
)
from steadyhand.reports import Reports
from steadyhand.transport import Transport

log = logging.getLogger("steadyhand")
T = TypeVar("T")
E = TypeVar("E", bound=SteadyhandError)
DEFAULT_TIMEOUT_SECONDS = 30.0
SHORTEST_WAIT_SECONDS = 0.1
_UNUSABLE = frozenset({413, 422})


@dataclass(frozen=True)
class Ways:
    """How a boundary behaves: patience, clock, layer, and the reads that may go on without a record."""

    max_wait: float
    layer: str
    fail_open_reads: frozenset[str]
    clock: Callable[[], float]
    sleep: Callable[[float], None]


class Run:
    """A run in progress; a context manager, and safe for the parallel tool calls of one turn.

    Leaving the block in the ordinary way finishes the run, unless it was finished, cancelled or halted before.
    Leaving it by an exception never does: after Suspended it waits for `resume`, after anything else the lease
    of a call in flight decides. `halted` is the first Suspended, Stopped, Unavailable or Problem of this process.
    """

    def __init__(
        self,
        transport: Transport,
        ways: Ways,
        *,
        run_id: str,
        workflow_id: str,
        intent: str = "",
        steps: list[StepState] | None = None,
    ) -> None:
        self.run_id = run_id
        self.workflow_id = workflow_id
        self.intent = intent
        self.steps = steps or []
        self.halted: SteadyhandError | None = None
        self._transport = transport
        self._ways = ways
        self._reports = Reports(transport, run_id)
        self._ended = False

    def call(self, tool: Tool | ToolFunction, arguments: dict[str, Any], *, step: str | None = None) -> Any:
        """Call a tool through the boundary and return its recorded result.

        A proven effect is replayed, not repeated. Raises Refused, Suspended (Unrecorded), Stopped, Unavailable
        (nothing was sent) or Problem. `step` names the place in the run; without it the server derives one.
        """
        tool = as_tool(tool)
        arguments = recordable(arguments)
        proposal = Proposal(
            workflow_id=self.workflow_id, tool=tool.name, arguments=arguments, step=step, layer=self._ways.layer
        )
        waited = 0.0
        while True:
            self._watched(self._reports.catch_up)
            asked_at = self._ways.clock()
            try:
                answer: Permit | Reported = self._propose(proposal)
            except Unavailable as unavailable:
                return self._without_record(tool, arguments, unavailable)
            proposal = proposal.model_copy(update={"step": answer.step})
            if isinstance(answer, Permit) and answer.answer == "execute":
                answer = self._execute(tool, arguments, answer, asked_at)
            if answer.answer in ("replay", "result"):
                return answer.result
            waited += self._wait_or_leave(answer, waited)

    def turn(self, usage: Usage | dict[str, Any] | None = None, text: str | None = None) -> TurnAnswer:
        """Record one turn of the model; leave out numbers that are unknown. Raises Stopped if a budget fired."""
        spent = Usage.model_validate(usage or {})
        turn = Turn(usage=spent, text=None if text is None else observe.clean(text, 2000))
        answer = self._watched(lambda: self._transport.post(self._path("turns"), turn, TurnAnswer))
        if answer.answer == "stop":
            error = answer.error or plain_error("turn_budget_exhausted")
            raise self.halting(Stopped(self.run_id, error, OUTCOME_OF.get(error.code)))
        return answer

    def finish(self, claim: str | None = None, *, at_turn_limit: bool = False) -> OutcomeDocument:
        """Say that the agent is done. The outcome comes from the record; `claim` is kept and proves nothing.

        `at_turn_limit`: the framework stopped the agent at a ceiling of its own, and a person takes over.
        """
        cleaned = None if claim is None else observe.clean(claim, 8000)
        return self._end("finish", Finish(claim=cleaned, ended_by="turn_limit" if at_turn_limit else "agent"))

    def cancel(self, reason: str) -> OutcomeDocument:
        """Ask for the end of the run. Effects that happened stay listed; an unknown write keeps its task."""
        return self._end("cancel", Cancel(reason=reason))

    def outcome(self) -> OutcomeDocument:
        """The run as the record has it now."""
        return self._transport.get(self._path(), OutcomeDocument)

    def halting(self, error: E) -> E:
        """Remember what keeps this run from going on here, and hand it back for raising. Adapters use it too."""
        self.halted = self.halted or error
        return error

    def close(self) -> None:
        """Deliver kept reports a last time. Leaving the block does it."""
        self._reports.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and self.halted is None and not self._ended:
                self.finish()
        finally:
            self.close()

    def _path(self, part: str = "") -> str:
        return f"/runs/{self.run_id}/{part}".rstrip("/")

    def _end(self, verb: str, message: Finish | Cancel) -> OutcomeDocument:
        self._watched(self._reports.catch_up)
        document = self._watched(lambda: self._transport.post(self._path(verb), message, OutcomeDocument))
        self._ended = True
        return document

    def _propose(self, proposal: Proposal) -> Permit:
        try:
            permit = self._transport.post(self._path("proposals"), proposal, Permit)
        except Problem as problem:
            if problem.status not in _UNUSABLE:
                raise self.halting(problem) from None
            fault = problem.errors[0] if problem.errors else {}
            remedy = str(fault.get("remedy") or problem.detail or problem.title)
            raise refused_input(str(fault.get("field") or "arguments"), remedy) from problem
        if permit.answer == "execute" and (permit.attempt_id is None or permit.fence is None):
            raise Unavailable("Steadyhand's permit is incomplete.")
        return permit

    def _without_record(self, tool: Tool, arguments: dict[str, Any], unavailable: Unavailable) -> Any:
        """Writes fail closed. A read may go on where the host has said so, and the log says that it did."""
        if tool.name not in self._ways.fail_open_reads:
            raise self.halting(unavailable)
        log.warning("run %s: the read %s goes on without a record", self.run_id, tool.name)
        open_permit = Permit(answer="execute", run_id=self.run_id, step=tool.name)
        value = tool.function(copy.deepcopy(arguments), self._call_of(tool, open_permit))
        return value.raise_for_status().json() if isinstance(value, httpx.Response) else value

    def _execute(self, tool: Tool, arguments: dict[str, Any], permit: Permit, asked_at: float) -> Reported:
        # The permit's clock started after we asked, so measuring from the question can only be too strict.
        limit = permit.dispatch_within_seconds
        if limit is not None and self._ways.clock() - asked_at > limit:
            return self._report(tool, permit, observe.not_sent("The permit was not used in time."))
        observation, interrupt = perform(tool, arguments, self._call_of(tool, permit))
        try:
            return self._report(tool, permit, observation)
        finally:
            if interrupt is not None:  # Ctrl-C reaches the host whether or not the report arrived
                raise interrupt

    def _call_of(self, tool: Tool, permit: Permit) -> Call:
        seconds = permit.timeout_seconds or DEFAULT_TIMEOUT_SECONDS
        beat = Heartbeat(attempt_id=permit.attempt_id or "", fence=permit.fence or 0)
        return Call(
            run_id=self.run_id,
            tool=tool.name,
            step=permit.step,
            timeout_seconds=seconds,
            deadline=self._ways.clock() + seconds,
            idempotency_key=permit.idempotency_key,
            action_id=permit.action_id,
            attempt_id=permit.attempt_id,
            attempt=permit.attempt or 1,
            clock=self._ways.clock,
            beat=(lambda: self._transport.tell(self._path("heartbeats"), beat)) if permit.attempt_id else None,
        )

    def _report(self, tool: Tool, permit: Permit, observation: Observation) -> Reported:
        report = Report(
            attempt_id=permit.attempt_id or "", tool=tool.name, fence=permit.fence or 0, observation=observation
        )
        return self._watched(lambda: self._reports.hand_in(report))

    def _wait_or_leave(self, answer: Permit | Reported, waited: float) -> float:
        """Sleep as asked and return the seconds, or raise what the answer means."""
        named = answer.error.code if answer.error else None
        reason = answer.reason_code if isinstance(answer, Reported) else named
        error = answer.error or plain_error(reason or "unsupported_operation")
        outcome = answer.outcome if isinstance(answer, Reported) else OUTCOME_OF.get(error.code)
        if answer.answer in ("deny", "error"):
            raise Refused(error, outcome)
        if answer.answer == "stop":
            raise self.halting(Stopped(self.run_id, error, outcome))
        seconds = answer.wait_seconds
        if answer.answer == "suspend" or seconds is None or waited + seconds > self._ways.max_wait:
            raise self.halting(Suspended(self.run_id, answer.due_at, reason))
        seconds = max(seconds, SHORTEST_WAIT_SECONDS)
        self._ways.sleep(seconds)
        return seconds

    def _watched(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except SteadyhandError as error:
            raise self.halting(error) from error.__cause__
