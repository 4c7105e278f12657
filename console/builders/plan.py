"""The plan of a rollback put together: what each line takes back, where it stands, and what is left."""

from __future__ import annotations

from console import looks
from console.builders import words
from console.looks import Look
from console.pages.plan import PlanCard, PlanRow
from recovery import planning
from recovery.planning import Place
from recovery.rules.plans import Plan
from runs.models import Run

OPEN = ("running", "approval", "held", "settle_first", "impossible", "remaining")
LEFT = {
    "fee": "the declared cost of the undo",
    "part": "what the undo's answer did not give back",
    "untold": "the undo's answer does not say how much came back",
    "whole": "nobody takes it back",
}


def card(run: Run) -> PlanCard | None:
    """The plan of a run that is or was being taken back; None for another run, and where nothing was done."""
    places = planning.progress(run) if run.goal == "rollback" else []
    return of_places(run, places) if places else None


def of_places(run: Run, places: list[Place]) -> PlanCard:
    """The plan whose lines stand there, as it would be carried out or is."""
    plan = planning.plan_of(run, places)
    left = [place for place in places if place.effect is not None and place.effect.residual]
    return PlanCard(
        rows=[_row(number, place) for number, place in enumerate(places, start=1)],
        hash=plan.hash,
        summary=_summary(places),
        remaining=[place.line.step for place in places if place.stand in OPEN],
        sums=words.sums((minor, currency) for currency, minor in plan.sums.items()),
        costs=words.sums((minor, currency) for currency, minor in plan.costs.items()),
        left=words.sums((place.effect.residual_minor, place.line.currency) for place in left if place.effect),
        approval=_approval(run, plan),
        undeclared=sum(words.money(one.value_minor, one.currency) is None for one in plan.possible),
    )


def in_words(place: Place) -> str:
    """Why a line cannot be carried out as it stands; empty where nothing is in its way."""
    return place.line.why if place.stand in ("settle_first", "impossible", "remaining") else ""


def _row(number: int, place: Place) -> PlanRow:
    line, effect = place.line, place.effect
    residual = effect.residual if effect is not None else ""
    return PlanRow(
        number=number,
        step=line.step,
        undo=line.undo,
        look=looks.look("plan", place.stand),
        words="its undo stopped; a person decides" if place.stand == "held" else in_words(place),
        amount=words.money(line.value_minor, line.currency),
        cost=words.money(line.cost_minor or None, line.currency),
        left=words.money(effect.residual_minor, line.currency) if effect is not None and residual else None,
        left_words=_left(residual, signed=effect is not None and effect.signed_off_at is not None),
        until=line.until if place.stand in OPEN else None,
        until_words="no end" if line.undo and place.stand in OPEN else "",
        reversal=looks.look("reversal", _reversal(place)),
        undo_look=_look_of_undo(place),
    )


def _reversal(place: Place) -> str:
    """Whether this effect can be taken back at all, a key of looks.REVERSAL."""
    done = {"done": "undone", "outside": "undone", "partly": "undone_in_part"}
    stuck = {"unknown": "check_first", "irreversible": "irreversible", "window_over": "too_late", "": "reversible"}
    return done.get(place.stand) or stuck.get(place.line.obstacle, "no_way")


def _look_of_undo(place: Place) -> Look | None:
    """How far the call that takes it back has come; None before there is one."""
    if place.undo is None:
        return None
    return looks.look("undo" if place.undo.state in looks.UNDO else "action", place.undo.state)


def _left(residual: str, *, signed: bool) -> str:
    if not residual:
        return ""
    return f"{LEFT[residual]}; {'accepted' if signed else 'nobody has accepted it yet'}"


def _summary(places: list[Place]) -> str:
    counted = [(looks.look("plan", stand).word.lower(), sum(one.stand == stand for one in places))
               for stand in looks.PLAN]  # fmt: skip
    return ", ".join(f"{count} {word}" for word, count in counted if count)


def _approval(run: Run, plan: Plan) -> str:
    if not plan.needs_approval:
        return ""
    if run.approved_plan == plan.hash:
        return "A second person has approved exactly this plan."
    voided = " It has changed since it was approved." if run.approved_plan else ""
    return f"{plan.approval_reason} Nobody has approved it as it stands.{voided}"
