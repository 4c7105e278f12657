"""A run for code without an event loop."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from steadyhand.async_run import AsyncRun, E
from steadyhand.blocking import held, now
from steadyhand.calls import Arguments, Tool, ToolFunction, as_tool, is_async
from steadyhand.contract import Memory, OutcomeDocument, ProvidedInput, StepState, TurnAnswer, Usage
from steadyhand.current import current
from steadyhand.errors import SteadyhandError
from steadyhand.turns import ModelTurn

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from steadyhand.turns import Most


class Run:
    """AsyncRun, each method done when it returns; a context manager, and safe for parallel calls from threads."""

    def __init__(self, driven: AsyncRun) -> None:
        self._driven = driven
        self.run_id = driven.run_id
        self.workflow_id = driven.workflow_id
        self.intent = driven.intent
        self._outer: Any = None

    @property
    def steps(self) -> list[StepState]:
        return self._driven.steps

    @property
    def inputs(self) -> list[ProvidedInput]:
        return self._driven.inputs

    @property
    def halted(self) -> SteadyhandError | None:
        return self._driven.halted

    def call(
        self, tool: Tool | ToolFunction, arguments: Arguments, *, step: str | None = None, layer: str | None = None
    ) -> Any:
        """Call a tool through the boundary and return its recorded result; what it raises stands at AsyncRun.call."""
        tool = as_tool(tool)
        if tool.is_async or is_async(tool.refresh):
            raise TypeError(f"{tool.name} is async: use AsyncBoundary.")
        return now(self._driven.call(tool, arguments, step=step, layer=layer))

    def turn(self, usage: Usage | dict[str, Any] | None = None, text: str | None = None) -> TurnAnswer:
        """Record one turn of the model; leave out numbers that are unknown. Raises Stopped if a budget fired."""
        return now(self._driven.turn(usage, text))

    def model_turn(self, **most: Unpack[Most]) -> AbstractContextManager[ModelTurn]:
        """A turn whose most is reserved before the model is asked; say inside what it `used`."""
        return held(self._driven.model_turn(**most))

    def finish(self, claim: str | None = None, *, at_turn_limit: bool = False) -> OutcomeDocument:
        """Say that the agent is done; the outcome comes from the record, and `claim` proves nothing."""
        return now(self._driven.finish(claim, at_turn_limit=at_turn_limit))

    def cancel(self, reason: str) -> OutcomeDocument:
        """Ask for the end of the run. Effects that happened stay listed."""
        return now(self._driven.cancel(reason))

    def rollback(self, reason: str) -> OutcomeDocument:
        """Ask that what this run did be undone, as far as it is proven and can be undone."""
        return now(self._driven.rollback(reason))

    def outcome(self) -> OutcomeDocument:
        """The run as the record has it now."""
        return now(self._driven.outcome())

    def memory(self) -> Memory:
        """What the run has done so far, as data and as `text` for a prompt."""
        return now(self._driven.memory())

    def halting(self, error: E) -> E:
        """Remember what keeps this run from going on here, and hand it back for raising."""
        return self._driven.halting(error)

    def close(self) -> None:
        """Deliver kept reports a last time. Leaving the block does it."""
        now(self._driven.close())

    def __enter__(self) -> Run:
        self._outer = current.get()
        current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        current.set(self._outer)
        now(self._driven.leave(error))
