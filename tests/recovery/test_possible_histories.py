"""Rows from true histories, assembled and decided: no answer duplicates an effect, hides one or undoes nothing.

The possible worlds over the assembly: where tests/recovery/test_possible_worlds.py starts from the table's fields,
this starts from what happened outside, and goes through attempts, evidence, times and keys to the answer.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from recovery.rules import assembly, bounds, testimony, trust
from recovery.rules.decide import Action
from recovery.rules.known import Fact, Known
from tests.recovery.histories import T0, History, Moment, contracts
from tests.recovery.worlds import harm

HISTORIES = 6000
CONTRACTS = contracts()


class Told(NamedTuple):
    """What the histories came to: kinds of harm with the seed of the first of each, and which answers were given."""

    harms: dict[str, tuple[int, Moment]]
    answers: Counter[str]
    shown: int  # broken promises that showed in the rows


def live_through(histories: int, *, until: str = "") -> Told:
    told = Told({}, Counter(), 0)
    shown = 0
    for seed in range(histories):
        history = of_seed(seed)
        for moment in history.moments():
            told.answers[f"{moment.answer.action}"] += 1
            shown += history.breaks and moment.told
            kind = harm(moment.evidence, moment.answer, moment.world) if moment.told else None
            if kind is not None:
                told.harms.setdefault(kind, (seed, moment))
        if until in told.harms:
            break
    return told._replace(shown=shown)


def of_seed(seed: int) -> History:
    rng = random.Random(seed)
    tool = CONTRACTS[seed % len(CONTRACTS)]
    bounded = tool.reconcile is not None and tool.reconcile.max_in_flight_seconds is not None
    goal = rng.choice(("forward", "forward", "forward", "cancel", "rollback"))
    return History(rng, tool, goal, breaks=bounded and rng.random() < 0.15)


@pytest.fixture(scope="module")
def whole() -> Told:
    return live_through(HISTORIES)


@pytest.mark.parametrize("kind", ["duplicate", "hidden", "false ok", "empty undo"])
def test_no_answer_does_harm_in_any_true_history(whole: Told, kind: str) -> None:
    assert kind not in whole.harms, whole.harms[kind]


def test_the_histories_lead_everywhere(whole: Told) -> None:
    acted = {str(action) for action in set(Action) - {Action.ASK_APPROVAL}}
    assert acted <= set(whole.answers), whole.answers
    assert whole.shown > 20, "broken bounds that the rows tell of"


# --- faults planted into the assembly -----------------------------------------------------------------------

Plant = Callable[[pytest.MonkeyPatch], None]
MODULES = (assembly, bounds, testimony, trust)


def put(name: str, wrong: Callable[[Any], Any]) -> Plant:
    """The function of this name replaced wherever it is used; `wrong` gets the right one."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        used = [module for module in MODULES if hasattr(module, name)]
        assert used, name
        right = getattr(used[0], name)
        for module in used:
            patch.setattr(module, name, wrong(right))

    return plant


def _told(known: Known) -> list[str]:
    return [fact.verdict for fact in known.facts if fact.verdict not in ("none", "probe_failed")]


def _first(right: Any) -> Any:
    return lambda known: next(iter(_told(known)), right(known))


def _callback_first(right: Any) -> Any:
    return lambda known: "present" if any(fact.kind == "callback" for fact in known.facts) else right(known)


def _as(said: str, instead: str) -> Callable[[Any], Any]:
    def wrong(right: Any) -> Any:
        def verdict(known: Known) -> Any:
            found = right(known)
            return found.replace(said, instead) if found.startswith(said) else found

        return verdict

    return wrong


def _later(**less: float) -> Callable[[Any], Any]:
    """The key's life computed with some seconds left out."""

    def wrong(right: Any) -> Any:
        def key(known: Known, now: Any) -> Any:
            rule = known.tool.reconcile
            if rule is None or rule.max_in_flight_seconds is None:
                return right(known, now)
            return right(
                replace(known, tool=known.tool.model_copy(update={"reconcile": rule.model_copy(update=less)})), now
            )

        return key

    return wrong


def _from_dispatch(right: Any) -> Any:
    return lambda known: known.tries[-1].sent_at if known.tries else None


def _bound_is_zero(right: Any) -> Any:
    def final(tool: Any, since: Any) -> Any:
        rule = tool.reconcile
        missing = rule is not None and rule.max_in_flight_seconds is None
        return since if missing else right(tool, since)

    return final


def _kept(right: Any) -> Any:
    return lambda known, fact: True


FAULTS: dict[str, tuple[Plant, str]] = {
    "a verdict is kept across a dispatch": (put("_speaks_of_last", _kept), "duplicate"),
    "a look is final before the bound": (
        put("final_from", lambda right: lambda tool, since: since), "duplicate"),
    "the bound runs from the dispatch": (put("uncertain_since", _from_dispatch), "duplicate"),
    "a bound that is missing is none to wait for": (put("final_from", _bound_is_zero), "duplicate"),
    "the first evidence wins": (put("verdict_of", _first), "duplicate"),
    "the latest attempt speaks": (
        put("observation_of", lambda right: lambda known: known.tries[-1].observed or "unknown"), "hidden"),
    "a broken success is a success": (put("observation_of", _as("ok_invalid", "ok_valid")), "false ok"),
    "an expired key counts as live": (
        put("live_key", lambda right: lambda *of: right(*of).replace("expired", "live")), "duplicate"),
    "what is in flight is ignored in the key's life": (
        put("live_key", _later(max_in_flight_seconds=0.0)), "duplicate"),
    "a key whose arguments nobody compares counts as live": (
        put("live_key", lambda right: lambda known, now: "live" if known.tool.idempotency.kind == "key" else "none"),
        "duplicate"),
    "two effects are taken as present": (put("counted", lambda right: lambda fact: fact.verdict), "false ok"),
    "a part is taken as present": (put("verdict_of", _as("partial", "present")), "false ok"),
    "a conflict is downgraded": (put("verdict_of", _as("conflict", "present")), "false ok"),
    "a message is stronger than a final look": (put("verdict_of", _callback_first), "false ok"),
    "a message is taken for a look": (put("_is_word", lambda right: lambda known, fact: False), "false ok"),
    "an effect of a disproven try is overlooked": (put("overturned", lambda right: lambda facts: False), "false ok"),
    "a demotion does not reach what was proven before it": (
        put("weakened", lambda right: lambda verdict: verdict), "duplicate"),
    "an undo by somebody else is overlooked": (
        put("undone_outside", lambda right: lambda known: False), "empty undo"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_assembly_does_harm_in_some_history(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, kind = FAULTS[fault]
    plant(monkeypatch)
    assert kind in live_through(HISTORIES * 2, until=kind).harms


def test_a_broken_promise_excuses_an_answer_until_a_row_tells_of_it() -> None:
    history = of_seed(0)
    assert next(history.moments()).told
    history.breaks = True
    history.facts.append(Fact("probe", "absent_final", 1, T0, 0))
    assert not history._moment().told
    history.facts.append(Fact("late_report", "present", 1, T0, 1))
    assert history._moment().told
