"""One run, as the agent drives it: propose, call once, report, and do what the answer says.

Written once, for an event loop; `Run` drives the same coroutines on a ground where they never pause.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from steadyhand import observe
from steadyhand.calls import Arguments, Tool, ToolFunction, as_tool, recordable
from steadyhand.contract import (
    OUTCOME_OF,
    Cancel,
    Finish,
    Memory,
    Observation,
    OutcomeDocument,
    Permit,
    Proposal,
    ProvidedInput,
    Report,
    Reported,
    ResumeAnswer,
    Rollback,
    RunOpened,
    StepState,
    Turn,
    TurnAnswer,
    Usage,
)
from steadyhand.current import current
from steadyhand.dispatch import Dispatch
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
from steadyhand.ground import Means
from steadyhand.reports import Reports
from steadyhand.turns import ModelTurn, Most

if TYPE_CHECKING:
    from typing_extensions import Unpack

log = logging.getLogger("steadyhand")
T = TypeVar("T")
E = TypeVar("E", bound=SteadyhandError)
DEFAULT_TIMEOUT_SECONDS = 30.0
SHORTEST_WAIT_SECONDS = 0.02
_UNUSABLE = frozenset({413, 422})


class AsyncRun:
    """A run in progress; an async context manager, and safe for the parallel tool calls of one turn.

    Leaving the block in the ordinary way finishes the run, unless it was finished, cancelled or halted before.
    Leaving it by an exception never does: after Suspended it waits for `resume`, after anything else the lease
    of a call in flight decides. `halted` is the first Suspended, Stopped, Unavailable or Problem of this process,
    `inputs` what the requester answered before this process took the run up.
    """

    def __init__(self, means: Means, known: RunOpened | ResumeAnswer, intent: str) -> None:
        self.run_id = known.run_id
        self.workflow_id = known.workflow_id
        self.intent = intent
        self.steps: list[StepState] = known.steps if isinstance(known, ResumeAnswer) else []
        self.inputs: list[ProvidedInput] = known.inputs if isinstance(known, ResumeAnswer) else []
        self.halted: SteadyhandError | None = None
        self._means = means
        self._reads = frozenset(known.reads)
        self._dispatch = Dispatch(means, known.run_id, self._reads)
        self._returned: Counter[str] = Counter()
        self._reports = Reports(means.transport, means.ground, means.spool, known.run_id)
        self._ended = False
        self._outer: Any = None

    async def call(
        self, tool: Tool | ToolFunction, arguments: Arguments, *, step: str | None = None, layer: str | None = None
    ) -> Any:
        """Call a tool through the boundary and return its recorded result.

        A proven effect is replayed, not repeated. Raises Refused, Suspended (Unrecorded), Stopped, Unavailable
        (nothing was sent) or Problem. `step` names the place in the run; without it a write has its tool's name, and
        a read its number too. `layer` names who asks, where a wrapper around the agent tries again by itself.

        A task that is cancelled after the call has left still reports it, and is cancelled then.
        """
        tool = as_tool(tool)
        arguments = recordable(arguments)
        proposal = Proposal(
            workflow_id=self.workflow_id,
            tool=tool.name,
            arguments=arguments,
            step=step or self._numbered(tool.name),
            layer=layer or self._means.ways.layer,
        )
        result = await self._settled(tool, proposal)
        self._returned[tool.name] += 1
        return result

    async def turn(self, usage: Usage | dict[str, Any] | None = None, text: str | None = None) -> TurnAnswer:
        """Record one turn of the model; leave out numbers that are unknown. Raises Stopped if a budget fired."""
        cleaned = None if text is None else observe.clean(text, 2000)
        return await self._tell_turn(Turn(usage=Usage.model_validate(usage or {}), text=cleaned))

    @asynccontextmanager
    async def model_turn(self, **most: Unpack[Most]) -> AsyncIterator[ModelTurn]:
        """A turn whose most is reserved before the model is asked; say inside what it `used`.

        Raises Stopped, and the model is not asked, if a budget has no room for it. What is not said to have been
        used counts as the most that was reserved.
        """
        turn = ModelTurn(most)
        await self._tell_turn(turn.begun())
        try:
            yield turn
        finally:
            await self._tell_turn(turn.ended())

    async def finish(self, claim: str | None = None, *, at_turn_limit: bool = False) -> OutcomeDocument:
        """Say that the agent is done. The outcome comes from the record; `claim` is kept and proves nothing.

        `at_turn_limit`: the framework stopped the agent at a ceiling of its own, and a person takes over.
        """
        cleaned = None if claim is None else observe.clean(claim, 8000)
        return await self._end("finish", Finish(claim=cleaned, ended_by="turn_limit" if at_turn_limit else "agent"))

    async def cancel(self, reason: str) -> OutcomeDocument:
        """Ask for the end of the run. Effects that happened stay listed; an unknown write keeps its task."""
        return await self._end("cancel", Cancel(reason=reason))

    async def rollback(self, reason: str) -> OutcomeDocument:
        """Ask that what this run did be undone, as far as it is proven and can be undone. The run ends with it."""
        return await self._end("rollback", Rollback(reason=reason))

    async def outcome(self) -> OutcomeDocument:
        """The run as the record has it now."""
        return await self._means.transport.get(self._path(), OutcomeDocument)

    async def memory(self) -> Memory:
        """What the run has done so far, as data and as `text` for a prompt."""
        return await self._means.transport.get(self._path("memory"), Memory)

    def halting(self, error: E) -> E:
        """Remember what keeps this run from going on here, and hand it back for raising. Adapters use it too."""
        self.halted = self.halted or error
        return error

    async def close(self) -> None:
        """Deliver kept reports a last time. Leaving the block does it."""
        await self._reports.close()

    async def leave(self, error: BaseException | None) -> None:
        """What leaving the block does."""
        try:
            if error is None and self.halted is None and not self._ended:
                await self.finish()
        finally:
            await self.close()

    async def __aenter__(self) -> AsyncRun:
        self._outer = current.get()
        current.set(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        current.set(self._outer)
        await self.leave(error)

    def _path(self, part: str = "") -> str:
        return f"/runs/{self.run_id}/{part}".rstrip("/")

    def _numbered(self, tool: str) -> str | None:
        """The next step of a read, so that reading once more is a new call, and the same one after a resume."""
        if tool not in self._reads:
            return None
        earlier = self._returned[tool]
        return f"{tool}.{earlier + 1}" if earlier else tool

    async def _end(self, verb: str, message: Finish | Cancel | Rollback) -> OutcomeDocument:
        await self._watched(self._reports.catch_up())
        document = await self._watched(self._means.transport.post(self._path(verb), message, OutcomeDocument))
        self._ended = True
        return document

    async def _tell_turn(self, turn: Turn) -> TurnAnswer:
        answer = await self._watched(self._means.transport.post(self._path("turns"), turn, TurnAnswer))
        if answer.answer == "stop":
            error = answer.error or plain_error("turn_budget_exhausted")
            raise self.halting(Stopped(self.run_id, error, OUTCOME_OF.get(error.code)))
        return answer

    async def _settled(self, tool: Tool, proposal: Proposal) -> Any:
        """Propose until the call has a result or this process has to leave it."""
        waited = 0.0
        while True:
            await self._watched(self._reports.catch_up())
            try:
                answer = await self._means.ground.unbroken(self._attempted(tool, proposal))
            except Unavailable as unavailable:
                return await self._without_record(tool, proposal.arguments, unavailable)
            if answer.answer in ("replay", "result"):
                return answer.result
            proposal = proposal.model_copy(update={"step": answer.step})
            waited += await self._wait_or_leave(answer, waited)

    async def _attempted(self, tool: Tool, proposal: Proposal) -> Permit | Reported:
        """One proposal, and the call that it permits. Raises Unavailable only where nothing was sent."""
        asked_at = self._means.ways.clock()
        permit = await self._propose(proposal)
        if permit.answer != "execute":
            return permit
        arguments = proposal.arguments if permit.arguments is None else permit.arguments
        observation, interrupt = await self._dispatch.perform(tool, arguments, permit, asked_at)
        try:
            return await self._report(tool, permit, observation)
        finally:
            if interrupt is not None:  # it reaches the host whether or not the report arrived
                raise interrupt

    async def _propose(self, proposal: Proposal) -> Permit:
        try:
            permit = await self._means.transport.post(self._path("proposals"), proposal, Permit)
        except Problem as problem:
            if problem.status not in _UNUSABLE:
                raise self.halting(problem) from None
            fault = problem.errors[0] if problem.errors else {}
            remedy = str(fault.get("remedy") or problem.detail or problem.title)
            raise refused_input(str(fault.get("field") or "arguments"), remedy) from problem
        if permit.answer == "execute" and (permit.attempt_id is None or permit.fence is None):
            raise Unavailable("Steadyhand's permit is incomplete.")
        return permit

    async def _without_record(self, tool: Tool, arguments: Arguments, unavailable: Unavailable) -> Any:
        """Writes fail closed. A read may go on where the host has said so, and the log says that it did."""
        if tool.name not in self._means.ways.fail_open_reads:
            raise self.halting(unavailable)
        log.warning("run %s: the read %s goes on without a record", self.run_id, tool.name)
        return await self._dispatch.without_record(tool, arguments)

    async def _report(self, tool: Tool, permit: Permit, observation: Observation) -> Reported:
        report = Report(
            attempt_id=permit.attempt_id or "", tool=tool.name, fence=permit.fence or 0, observation=observation
        )
        return await self._watched(self._reports.hand_in(report))

    async def _wait_or_leave(self, answer: Permit | Reported, waited: float) -> float:
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
        if answer.answer == "suspend" or seconds is None or waited + seconds > self._means.ways.max_wait:
            raise self.halting(Suspended(self.run_id, answer.due_at, reason))
        seconds = max(seconds, SHORTEST_WAIT_SECONDS)
        await self._means.ground.sleep(seconds)
        return seconds

    async def _watched(self, asked: Coroutine[Any, Any, T]) -> T:
        try:
            return await asked
        except SteadyhandError as error:
            raise self.halting(error) from error.__cause__
