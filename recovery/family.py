"""Sub-agents: a run that works for another one stays inside its scope, and is charged to its budgets too (I8, F100).

The family is locked by the caller, root first (`record.lock_family`).
"""

from __future__ import annotations

from datetime import datetime

from steadyhand.contract import OpenRun, Scope
from steadyhand.identity import BadInput

from recovery import settle
from recovery.rules import scope as scopes
from runs import budgets, record
from runs.ids import parse_id
from runs.models import AgentClient, Run
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import RUN_OPEN

DEEPEST = 5
_AHEAD = ("turns", "tool_calls")


def parent_of(client: AgentClient, request: OpenRun) -> Run | None:
    """The run that the new one is to work for, locked. Raises BadInput unless it is an open run of this client."""
    if request.parent_run_id is None:
        return None
    parent_id = parse_id(request.parent_run_id)
    family = record.lock_family(parent_id) if parent_id is not None else []
    if not family or family[-1].client_id != client.pk or not _takes_work(family[-1]):
        raise BadInput("parent_run_id", "name an open run of this agent")
    if len(family) >= DEEPEST:
        raise BadInput("parent_run_id", f"nest runs at most {DEEPEST} deep")
    return family[-1]


def narrowed(request: OpenRun, parent: Run | None) -> OpenRun:
    """The request with the parent's limits where it names none of its own. Raises BadInput where it exceeds them."""
    if parent is None:
        return request
    own = request.scope.model_dump(mode="json")
    return request.model_copy(update={"scope": Scope.model_validate(scopes.within(own, parent.scope))})


def charge(run: Run, actor: Actor, **units: int) -> str | None:
    """Charge work to every run that this one works for; returns the reason code of the ceiling that fired.

    Turns, calls and reservations are granted by all of them or counted by none; what was used is counted always, and
    a reservation (`reserved_…`) that is given back is negative. The run whose ceiling fired is stopped here.
    """
    if run.parent_id is None:
        return None
    family, now = record.ancestors(run), read_clock()
    against = _against(family, units, now)
    counted = units if against is None else {name: more for name, more in units.items() if not _asks(name, more)}
    for ancestor in family:
        _add(ancestor, counted)
    if against is None and any(counted.values()):
        against = _against(family, {}, now)
    return None if against is None else _stop(*against, run, actor)


def _against(family: list[Run], units: dict[str, int], now: datetime) -> tuple[Run, list[str]] | None:
    """The first run, from the root on, that cannot bear this; an empty list of ceilings says that it has ended."""
    for ancestor in family:
        if units and not _takes_work(ancestor):
            return ancestor, []
        fired = _fired(ancestor, units, now)
        if fired:
            return ancestor, fired
    return None


def _fired(ancestor: Run, units: dict[str, int], now: datetime) -> list[str]:
    reserved = {name.removeprefix("reserved_"): more for name, more in units.items() if name.startswith("reserved_")}
    more = reserved if any(number > 0 for number in reserved.values()) else None
    if units.get("turns"):
        return budgets.fired(ancestor, now, unit="turn", more=more)
    if units.get("tool_calls"):
        return budgets.fired(ancestor, now, unit="call")
    return budgets.fired(ancestor, now, more=more)


def _asks(name: str, more: int) -> bool:
    """Whether this unit is asked for before the work; everything else has happened and is a fact."""
    return name in _AHEAD or (name.startswith("reserved_") and more > 0)


def _add(ancestor: Run, units: dict[str, int]) -> None:
    if any(units.values()):
        most = budgets.MAX_COUNTED
        sums = {name: max(0, min(getattr(ancestor, name) + more, most)) for name, more in units.items()}
        Run.objects.filter(pk=ancestor.pk).update(**sums)
        ancestor.refresh_from_db()


def _stop(ancestor: Run, fired: list[str], run: Run, actor: Actor) -> str:
    """The run above is stopped for a person; the one below learns whose ceiling it was from its own history."""
    reason = fired[0] if fired else "stopped_by_operator"
    if fired and _takes_work(ancestor):
        settle.escalate_run(ancestor, reason, actor, fired=fired)
    data = {"parent": str(ancestor.pk), "reason_code": reason, "fired": fired}
    record.write_event(run, "parent_stopped", actor, from_state=run.state, to_state=run.state, data=data)
    return reason


def _takes_work(run: Run) -> bool:
    return run.state in RUN_OPEN and run.goal == "forward"
