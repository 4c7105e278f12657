"""The plan of a run's rollback, drawn from its rows, and how far it has come (DECISIONS 1).

Before it is ordered it is what would be done; afterwards it is what is being done. Whether it may be carried out is
asked of the plan as it is now: once a line of it changes, an approval of the older one is worth nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from steadyhand.identity import canonical
from steadyhand.manifest import Tool

from recovery import undos
from recovery.rules.plans import WHY, Line, Obstacle, Plan
from runs import definitions, vault
from runs.definitions import Definition
from runs.models import Action, Effect, Run
from runs.querysets import read_clock

Stand = Literal[
    "done", "outside", "partly", "waived", "running", "approval", "held", "settle_first", "impossible", "remaining"
]


@dataclass(frozen=True)
class Place:
    """One line of a plan and where it stands: its call, its latest undo and its effect, as far as there are any."""

    line: Line
    stand: Stand
    action: Action
    undo: Action | None
    effect: Effect | None


def of_run(run: Run) -> Plan:
    """The plan as the record stands now."""
    return plan_of(run, progress(run))


def plan_of(run: Run, places: list[Place]) -> Plan:
    """The plan whose lines these are."""
    threshold = definitions.of_run(run).manifest.value_threshold_minor
    return Plan(tuple(place.line for place in places), threshold)


def progress(run: Run) -> list[Place]:
    """Every line in its order, with where it stands; what a line costs to read does not grow with their number."""
    definition, now, made = definitions.of_run(run), read_clock(), undos.latest(run)
    lines = filter(_belongs, undos.in_order(run))
    return [_place(definition, action, made.get(action.pk), now) for action in lines]


def is_free(run: Run) -> bool:
    """Whether the rollback needs nobody's approval, or has one for the plan as it is now (F143)."""
    if not _can_need_approval(definitions.of_run(run)):
        return True
    plan = of_run(run)
    return not plan.needs_approval or run.approved_plan == plan.hash


def _can_need_approval(definition: Definition) -> bool:
    """Read nothing where no plan of this workflow could want a second person."""
    manifest = definition.manifest
    taken_back_by = {tool.compensate.tool for tool in manifest.tools if tool.compensate}
    wanting = any(definition.tools[name].requires_approval for name in taken_back_by)
    return wanting or manifest.value_threshold_minor is not None


def _belongs(action: Action) -> bool:
    """A call that was never sent is no effect; of a batch that is taken apart, its items are the lines."""
    if getattr(action, "proven", None) is not None:
        return True
    taken_apart = action.state == "partial_final" and action.parts.filter(role="item").exists()
    return action.attempts > 0 and not taken_apart


def _place(definition: Definition, action: Action, undo: Action | None, now: datetime) -> Place:
    effect: Effect | None = getattr(action, "proven", None)
    line = _line(definition, action, effect, now)
    return Place(line, _stand(action, effect, undo, line), action, undo, effect)


def _line(definition: Definition, action: Action, effect: Effect | None, now: datetime) -> Line:
    tool = definition.tools[action.tool]
    bare = Line(
        original=action.action_id,
        step=action.step,
        tool=action.tool,
        undo=tool.compensate.tool if tool.compensate else "",
        value_minor=action.value_minor,
        currency=action.currency,
        until=undos.window_end(effect, tool),
    )
    obstacle = _obstacle(tool, action, effect, now)
    if obstacle or tool.compensate is None:
        return replace(bare, obstacle=obstacle, why=WHY[obstacle])
    try:
        undo = undos.draw_up(definition, action)
    except undos.Impossible as why:
        return replace(bare, obstacle="impossible", why=str(why))
    return replace(
        bare,
        arguments_hash=vault.hash_arguments(definition.keys, canonical(undo.arguments)),
        value_minor=undo.value_minor,
        currency=undo.currency,
        cost_minor=tool.compensate.cost_minor,
        needs_approval=undo.needs_approval,
    )


def _obstacle(tool: Tool, action: Action, effect: Effect | None, now: datetime) -> Obstacle:
    if effect is None and action.state != "partial_final":
        return "unknown"
    if tool.irreversible:
        return "irreversible"
    if tool.compensate is None:
        return "not_compensable"
    until = undos.window_end(effect, tool)
    begun = action.state != "succeeded"
    return "window_over" if until is not None and now > until and not begun else ""


def _stand(action: Action, effect: Effect | None, undo: Action | None, line: Line) -> Stand:
    if effect is not None and effect.residual == "whole":
        return "waived"
    if effect is not None and effect.compensated_by_id == action.pk:
        return "outside"
    if action.state == "compensated":
        return "partly" if effect is not None and effect.residual else "done"
    if undo is not None and action.state in ("compensating", "compensation_held"):
        return "approval" if undo.state == "awaiting_approval" else _of_undo(undo)
    if line.obstacle:
        return "settle_first" if line.obstacle == "unknown" else "impossible"
    return "remaining"


def _of_undo(undo: Action) -> Stand:
    return "held" if undo.state in undos.ENDED_BADLY else "running"
