"""No answer duplicates an effect, hides one or undoes nothing, in any world that the evidence leaves possible."""

from collections.abc import Iterable
from typing import NamedTuple

import pytest

from recovery.rules.decide import Action, decide
from recovery.rules.evidence import Evidence
from tests.recovery.evidence_space import everything, evidence, sample
from tests.recovery.planted import Decide, before, changed, without
from tests.recovery.worlds import World, fitting, harm

ACTIVE = set(Action) - {Action.HUMAN, Action.WAIT, Action.PROBE, Action.ASK_APPROVAL}


class Findings(NamedTuple):
    harms: dict[str, tuple[Evidence, World]]  # kind of harm → its first example
    impossible: list[Evidence]  # evidence that fits no world and still was not given to a person
    examined: int


def explore(decide: Decide, combinations: Iterable[Evidence]) -> Findings:
    harms: dict[str, tuple[Evidence, World]] = {}
    impossible: list[Evidence] = []
    worlds: dict[tuple[object, ...], list[World]] = {}
    seen: set[tuple[object, ...]] = set()
    for e in combinations:
        if e.effect == "read":
            continue
        a = decide(e)
        # What a world depends on, of everything in the evidence.
        facts = (e.observation, e.key, e.reconcilable, e.verdict, e.proof, e.undo)
        if (*facts, a) in seen:
            continue
        seen.add((*facts, a))
        if facts not in worlds:
            worlds[facts] = list(fitting(e))
        if not worlds[facts] and a.action is not Action.HUMAN:
            impossible.append(e)
        if a.action in ACTIVE:
            for w in worlds[facts]:
                if kind := harm(e, a, w):
                    harms.setdefault(kind, (e, w))
    return Findings(harms, impossible, len(seen))


@pytest.fixture(scope="module")
def whole() -> Findings:
    return explore(decide, everything())


@pytest.mark.parametrize("kind", ["duplicate", "hidden", "false ok", "empty undo"])
def test_no_answer_does_harm_in_any_possible_world(whole: Findings, kind: str) -> None:
    assert kind not in whole.harms, whole.harms[kind]


def test_evidence_that_fits_no_world_goes_to_a_person(whole: Findings) -> None:
    assert whole.examined > 1000
    assert not whole.impossible, whole.impossible[0]


def test_a_lost_reply_leaves_open_whether_anything_happened() -> None:
    worlds = set(fitting(evidence(observation="unknown")))
    assert {(w.effects, w.part) for w in worlds} == {(0, False), (1, False), (0, True)}
    assert any(w.under_way for w in worlds)


def test_a_look_that_came_too_early_leaves_a_commit_under_way_possible() -> None:
    worlds = set(fitting(evidence(observation="unknown", verdict="absent")))
    assert World(0, False, True, False, False) in worlds
    assert World(1, False, False, False, False) in worlds


def test_a_final_look_that_finds_nothing_leaves_one_world() -> None:
    worlds = list(fitting(evidence(observation="unknown", verdict="absent_final")))
    assert worlds == [World(0, False, False, False, False)]


def test_a_refusal_beside_a_record_at_the_provider_fits_no_world() -> None:
    assert not list(fitting(evidence(observation="transient_reject", verdict="present")))


def test_two_effects_are_possible_where_they_were_counted() -> None:
    assert any(w.effects == 2 for w in fitting(evidence(observation="unknown", verdict="conflict")))


BUGS: list[tuple[str, Decide, str]] = [
    (
        "a lost reply is sent again without a key",
        changed("9d", when=lambda e: e.goal == "forward" and e.observation == "unknown"),
        "duplicate",
    ),
    (
        "not found at once counts as not done",
        before("8i", lambda e: e.verdict == "absent" and e.goal == "forward", Action.RETRY),
        "duplicate",
    ),
    ("what is present is sent again", before("7a", lambda e: e.verdict == "present", Action.RETRY), "duplicate"),
    ("the missing part is sent with the whole", changed("5e", action=Action.RETRY), "duplicate"),
    ("not found at once is fatal", before("9e", lambda e: e.verdict == "absent", Action.FATAL), "hidden"),
    ("unknown is fatal", changed("9h", action=Action.FATAL), "hidden"),
    (
        "cancel forgets an effect",
        changed("7b", action=Action.CLOSE_CANCELLED, reason="cancelled_by_user"),
        "hidden",
    ),
    ("undo while a second commit may come", without("6b"), "hidden"),
    ("undo of an effect that may not be there", without("6b"), "empty undo"),
    (
        "undo of a lost reply",
        before("9a", lambda e: e.goal == "rollback", Action.COMPENSATE),
        "empty undo",
    ),
    ("any valid reply is ok", before("7c", lambda e: e.goal == "forward", Action.CLOSE_OK), "false ok"),
    (
        "any sight of it is ok",
        before("7a", lambda e: e.goal == "forward" and e.verdict == "present", Action.CLOSE_OK),
        "false ok",
    ),
    ("part of it is ok", changed("5e", action=Action.CLOSE_OK), "false ok"),
]


@pytest.mark.parametrize(("bug", "kind"), [pytest.param(b, k, id=i) for i, b, k in BUGS])
def test_a_planted_bug_does_harm_in_some_world(bug: Decide, kind: str) -> None:
    assert kind in explore(bug, sample()).harms


@pytest.mark.parametrize("rule", ["4a", "4b"])
def test_an_overlooked_contradiction_is_noticed(rule: str) -> None:
    assert explore(without(rule), sample()).impossible
