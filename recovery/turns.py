"""Turns of the model: reserved before they begin, counted by what they used, never taken for nothing (I8, F104).

The run is locked by the caller, and with it every run that it works for, so that what is read here is what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from steadyhand.contract import Turn, TurnAnswer, Usage
from steadyhand.manifest import Budgets

from recovery import endings, escalation, family
from recovery.rules import messages
from runs import budgets, definitions
from runs.models import Run
from runs.querysets import read_clock
from runs.record import Actor
from runs.states import RUN_OPEN


@dataclass(frozen=True)
class Counted:
    """What a turn is taken to have used; `unmeasured` where a number is missing that nothing stands in for."""

    used: dict[str, int]
    estimated: bool
    unmeasured: bool


def count_turn(run: Run, told: Turn, actor: Actor) -> TurnAnswer:
    """Begin or end a turn; the ceiling that stops the next one is named and stops the run (F090, F100, F101)."""
    if run.state not in RUN_OPEN or run.goal != "forward":
        return _stopped(run)
    stopped_before = run.state == "escalated" and escalation.has_run_task(run)
    if stopped_before and told.phase == "begin":
        return _stopped(run)
    fired = _begin(run, told.usage, actor) if told.phase == "begin" else _end(run, told.usage, actor)
    if fired and not stopped_before:
        endings.escalate_run(run, fired[0], actor, fired=fired)
    return _stopped(run) if fired or stopped_before else TurnAnswer(answer="go", turn=run.turns)


def abandon(run: Run, actor: Actor) -> list[str]:
    """A turn that never ended used what was reserved for it, as far as anybody knows (F104)."""
    return [] if run.open_turn is None else _count(run, Usage(), actor)


def _begin(run: Run, most: Usage, actor: Actor) -> list[str]:
    """Reserve the most that the turn may use, here and on every run above; all of it or nothing (F102)."""
    fired = abandon(run, actor)
    if fired:
        return fired
    wanted = _reservation(most, definitions.of_run(run).manifest.budgets)
    fired = budgets.fired(run, read_clock(), unit="turn", more=wanted)
    if fired:
        return fired
    reserved = {f"reserved_{kind}": number for kind, number in wanted.items()}
    above = family.charge(run, actor, turns=1, **reserved)
    if above is not None:
        return [above]
    _add(run, turns=1, open_turn=wanted, **reserved)
    return []


def _end(run: Run, used: Usage, actor: Actor) -> list[str]:
    """Count what the turn used; one that was never begun is counted now, while there is a turn left for it."""
    if run.open_turn is None and run.turns >= run.max_turns:
        return budgets.fired(run, read_clock(), unit="turn")
    return _count(run, used, actor)


def _count(run: Run, told: Usage, actor: Actor) -> list[str]:
    """Put what was used in the place of what was reserved; returns every ceiling that has been reached."""
    counted = _counted(run, told)
    turns = 1 if run.open_turn is None else 0
    given_back = {f"reserved_{kind}": -number for kind, number in (run.open_turn or {}).items()}
    above = family.charge(run, actor, turns=turns, **counted.used, **given_back)
    estimated = run.usage_estimated or counted.estimated
    _add(run, turns=turns, open_turn=None, usage_estimated=estimated, **counted.used, **given_back)
    fired = budgets.fired(run, read_clock())
    fired += [above] if above is not None and above not in fired else []
    return fired + (["usage_unmeasured"] if counted.unmeasured else [])


def _counted(run: Run, told: Usage) -> Counted:
    """Each number as told, else as reserved, else as the manifest estimates a turn (F104, ruling 7)."""
    rules = definitions.of_run(run).manifest.budgets
    estimates = _reservation(Usage(), rules) if rules.unmeasured == "estimate" else {}
    stand_ins = estimates | (run.open_turn or {})
    missing = [kind for kind in budgets.USAGE if getattr(told, kind) is None and _matters(run, kind, stand_ins)]
    used = {kind: getattr(told, kind) or 0 for kind in budgets.USAGE} | {
        kind: stand_ins.get(kind, 0) for kind in missing
    }
    unknown = [kind for kind in missing if kind not in stand_ins]
    unmeasured = any(budgets.is_limited(run, kind) for kind in unknown) or (
        rules.unmeasured == "stop" and bool(unknown)
    )
    return Counted(used, bool(missing), unmeasured)


def _matters(run: Run, kind: str, stand_ins: dict[str, int]) -> bool:
    """Every turn uses tokens; what it costs is asked for only where something depends on it."""
    return kind != "cost_minor" or kind in stand_ins or budgets.is_limited(run, kind)


def _reservation(most: Usage, rules: Budgets) -> dict[str, int]:
    """The most that a turn may use, of each kind for which somebody has said it."""
    declared = {
        "cost_minor": rules.turn_cost_minor_units,
        "input_tokens": rules.turn_input_tokens,
        "output_tokens": rules.turn_output_tokens,
    }
    asked = {kind: getattr(most, kind) if getattr(most, kind) is not None else declared[kind] for kind in declared}
    return {kind: number for kind, number in asked.items() if number is not None}


def _add(run: Run, **changes: object) -> None:
    """Add to the counters, and set what is no counter."""
    counters = {name: _sum(getattr(run, name), more) for name, more in changes.items() if name in _COUNTERS}
    Run.objects.filter(pk=run.pk).update(version=run.version + 1, **changes | counters)
    run.refresh_from_db()


_COUNTERS = ("turns", *budgets.USAGE, *(f"reserved_{kind}" for kind in budgets.USAGE))


def _sum(so_far: int, more: object) -> int:
    assert isinstance(more, int)  # noqa: S101  (counters are numbers)
    return min(so_far + more, budgets.MAX_COUNTED)


def _stopped(run: Run) -> TurnAnswer:
    return TurnAnswer(
        answer="stop", turn=run.turns, error=messages.error_for_model(run.reason_code or "stopped_by_operator")
    )
