"""A declared read that stands in for another one that could not be had: only if it is fit to, and said aloud.

Writes never have one. The first read is given up, the model is told what to call instead, and the customer that the
data may be old.
"""

from __future__ import annotations

from dataclasses import replace

from steadyhand.conditions import holds
from steadyhand.contract import StructuredError
from steadyhand.manifest import Fallback, Tool

from recovery.rules.classify import Classified
from runs import definitions
from runs.definitions import Definition
from runs.models import Action, Run
from runs.querysets import TenantQuerySet

UNAVAILABLE = (
    "provider_unavailable",
    "provider_rate_limited",
    "connect_failed",
    "circuit_open",
    "retry_exhausted",
    "deadline_exceeded",
    "time_budget_exhausted",
    "budget_exhausted",
    "invalid_tool_result",
    "remote_operation_failed",
)
"""Why another source may be asked. Whoever was refused or asked for the wrong thing is not helped by older data."""
GIVEN_UP = ("2e", "2f", "2g")
"""Rules of the table by which a read has come to its end without an answer."""


def gives_way(tool: Tool, rule: str) -> bool:
    """Whether a read at its end leaves the run to its agent, for it has something else to call."""
    return tool.fallback is not None and rule in GIVEN_UP


def name_in(error: StructuredError, tool: Tool | None, reason: str) -> StructuredError:
    """The error with the tool that may be called instead."""
    if tool is None or tool.fallback is None or reason not in UNAVAILABLE:
        return error
    instead = [f"call {tool.fallback.tool} instead", *error.suggested_actions]
    return error.model_copy(update={"fallback": tool.fallback.tool, "suggested_actions": instead})


def stands_in(definition: Definition, tool: Tool) -> bool:
    """Whether this tool is named as somebody's fallback: then its answers are read with care."""
    return any(other.fallback is not None and other.fallback.tool == tool.name for other in definition.manifest.tools)


def checked(run: Run, definition: Definition, tool: Tool, found: Classified) -> Classified:
    """A valid answer, refused if it takes the place of a read whose demands it does not meet."""
    if found.observed != "ok_valid" or not stands_in(definition, tool):
        return found
    for demand in _demands(run, definition, tool):
        lacking = next((condition.path for condition in demand.requires if not holds(condition, found.result)), None)
        if lacking is not None:
            detail = f"The answer is not fit to stand in: {lacking} is not as it must be."
            return replace(found, observed="ok_invalid", reason="invalid_tool_result", field=lacking, detail=detail)
    return found


def stood_in(run: Run, refused: Action) -> Fallback | None:
    """The fallback that answered in place of this given-up read, if one did."""
    tool = definitions.of_run(run).tools.get(refused.tool)
    if tool is None or tool.fallback is None or refused.reason_code not in UNAVAILABLE:
        return None
    answered = run.actions.filter(tool=tool.fallback.tool, state="succeeded", id__gt=refused.id)
    return tool.fallback if answered.exists() else None


def staleness(run: Run) -> list[str]:
    """What the customer has to be told about the sources that stood in, each sentence once."""
    told = [stood_in(run, refused) for refused in _given_up(run) if not _answered_after_all(run, refused)]
    return list(dict.fromkeys(fallback.staleness for fallback in told if fallback is not None))


def _demands(run: Run, definition: Definition, tool: Tool) -> list[Fallback]:
    names = _given_up(run).values_list("tool", flat=True)
    asked = [definition.tools[name].fallback for name in dict.fromkeys(names) if name in definition.tools]
    return [fallback for fallback in asked if fallback is not None and fallback.tool == tool.name]


def _given_up(run: Run) -> TenantQuerySet[Action]:
    return run.actions.filter(effect="read", state="refused_permanent", reason_code__in=UNAVAILABLE).order_by("id")


def _answered_after_all(run: Run, refused: Action) -> bool:
    return run.actions.filter(tool=refused.tool, state="succeeded", id__gt=refused.id).exists()
