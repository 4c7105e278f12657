"""The OpenAI Agents SDK behind the boundary (tested with openai-agents 0.24).

The framework may turn a limit into an ordinary answer. So what a run came to is read from the record, never from
what the framework returns.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents import MaxTurnsExceeded, RunHooks, Runner  # type: ignore[import-not-found]

from steadyhand.adapters.openai_agents_tools import guard, guarded_tools, landed
from steadyhand.contract import Outcome, OutcomeDocument, StructuredError
from steadyhand.errors import Stopped, Suspended
from steadyhand.run import Run

__all__ = ["AgentEnd", "guard", "guarded_tools", "run_agent", "run_agent_sync"]


@dataclass(frozen=True)
class AgentEnd:
    """How an agent ended: its closing words, and beside them what the record says. Believe the record."""

    output: Any
    outcome: OutcomeDocument
    result: Any

    @property
    def ok(self) -> bool:
        return self.outcome.outcome is Outcome.OK


async def run_agent(
    run: Run,
    agent: Any,
    input: Any,
    *,
    max_turns: int | None = None,
    hooks: Any = None,
    error_handlers: Mapping[str, Any] | None = None,
    **options: Any,
) -> AgentEnd:
    """Run an agent to its end and finish the run by its record.

    Turns are counted by Steadyhand; `max_turns` is a second, lower ceiling if the host wants one. Raises Suspended,
    Stopped or Unavailable from wherever in the agent they arose, and the framework's own errors as they are. An
    error handler may phrase an answer, but the error it handled is raised all the same: it is no success.
    """
    handled: list[Exception] = []
    watch = _Turns(run, hooks)
    try:
        result = await Runner.run(
            agent,
            input,
            max_turns=max_turns,
            hooks=watch,
            error_handlers=_noting(error_handlers or {}, handled),
            **options,
        )
    except MaxTurnsExceeded as error:
        handled.append(error)
    except Exception as error:
        if run.halted is not None:
            raise run.halted from error
        raise
    finally:
        await landed(run)
    if run.halted is not None:
        raise run.halted
    if handled:
        raise await _ceiling(run, handled[0])
    if result.interruptions:
        raise run.halting(Suspended(run.run_id, None, "approval_required"))
    claim = None if result.final_output is None else str(result.final_output)
    return AgentEnd(result.final_output, await asyncio.to_thread(run.finish, claim), result)


def run_agent_sync(run: Run, agent: Any, input: Any, **options: Any) -> AgentEnd:
    """`run_agent` for a program without an event loop."""
    return asyncio.run(run_agent(run, agent, input, **options))


class _Turns(RunHooks):  # type: ignore[misc]
    """Reports each turn before its tool calls begin, and passes every event on to the host's own hooks."""

    def __init__(self, run: Run, inner: Any) -> None:
        self._run = run
        self._inner = inner
        for name in (name for name in dir(RunHooks) if name.startswith("on_") and name != "on_llm_end"):
            if inner is not None:
                setattr(self, name, getattr(inner, name))

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        await asyncio.to_thread(self._run.turn, _usage(response.usage))
        if self._inner is not None:
            await self._inner.on_llm_end(context, agent, response)


def _usage(usage: Any) -> dict[str, int]:
    """Tokens of one turn. The framework shows zero where a provider said nothing; that is left out (F104)."""
    counts = {name: getattr(usage, name, None) for name in ("input_tokens", "output_tokens")}
    return {name: count for name, count in counts.items() if isinstance(count, int) and count > 0}


def _noting(handlers: Mapping[str, Any], handled: list[Exception]) -> dict[str, Any]:
    def noted(handler: Any) -> Any:
        async def handle(data: Any) -> Any:
            handled.append(data.error)
            answer = handler(data)
            return await answer if inspect.isawaitable(answer) else answer

        return handle

    return {kind: noted(handler) for kind, handler in handlers.items()}


async def _ceiling(run: Run, error: Exception) -> Exception:
    """What to raise for a handled error. The framework's own ceiling ends the run as a budget (F093)."""
    if not isinstance(error, MaxTurnsExceeded):
        return error
    await asyncio.to_thread(functools.partial(run.finish, at_turn_limit=True))
    used_up = StructuredError(code="turn_budget_exhausted", message="The agent has used all its turns.")
    return run.halting(Stopped(run.run_id, used_up, Outcome.NEEDS_HUMAN))
