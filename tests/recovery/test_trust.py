"""Tables of what contradicts what: bounds that were not kept, looks beside callbacks, effects taken back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from recovery.rules import assembly, bounds, snapshots, testimony, trust
from recovery.rules.decide import decide
from recovery.rules.known import Fact, Known
from tests.recovery.test_assembly import KEY, T0, fact, known, tool

FINAL = fact("absent_final")


def twice(after: int = 2) -> Fact:
    return replace(fact("conflict", after=after), count=2)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((), False),
        ((FINAL,), False),
        ((fact("present"),), False),
        ((fact("absent"), fact("present")), False),
        ((FINAL, fact("present")), True),
        ((FINAL, fact("present_final")), True),
        ((FINAL, fact("partial")), True),
        ((FINAL, fact("undone")), True),
        ((FINAL, fact("present", kind="callback")), True),
        ((FINAL, fact("present", kind="late_report")), True),
        ((FINAL, fact("present", after=2)), False),
        ((fact("absent_final", after=2), fact("present", after=1)), True),
        ((FINAL, twice()), True),
        ((twice(after=1),), False),
        ((FINAL, fact("conflict", after=2)), False),
        ((FINAL, fact("job_failed")), False),
        ((fact("present"), FINAL), False),
    ],
)
def test_F028_a_bound_is_violated_by_what_it_had_ruled_out(facts: tuple[Fact, ...], expected: bool) -> None:
    assert trust.violated(facts) is expected


@pytest.mark.parametrize(
    ("look", "other", "verdict"),
    [
        ("absent", "present", "present"),
        ("absent_final", "present", "conflict"),
        ("absent_final", "partial", "conflict"),
        ("present", "job_failed", "conflict"),
        ("present_final", "job_failed", "conflict"),
        ("conflict", "present", "conflict"),
        ("processing", "present", "present"),
        ("probe_failed", "present", "present"),
        ("absent", "job_failed", "none"),
        ("undone", "present", "conflict"),
    ],
)
@pytest.mark.parametrize("kind", ["callback", "probe", "listing", "late_report"])
@pytest.mark.parametrize("connector", ["http", "webhook", "python"])
def test_F043_a_look_and_another_source_add_up_or_contradict_each_other(
    look: str, other: str, verdict: str, kind: str, connector: str
) -> None:
    facts = (fact(look), fact(other, kind=kind))
    for order in (facts, facts[::-1]):
        assert testimony.verdict_of(known("unknown", facts=order, connector_kind=connector)) == verdict


# --- a demoted connector ------------------------------------------------------------------------------------


def demoted(*observed: str | None, facts: tuple[Fact, ...] = (), **promises: object) -> Known:
    return known(*observed, facts=facts, of=trust.undeclared(tool(**promises)), demoted=True)


@pytest.mark.parametrize(
    ("said", "worth"), [("absent_final", "absent"), ("present_final", "present"), ("partial_final", "partial")]
)
def test_F028_what_rested_on_the_bound_of_a_demoted_connector_is_worth_less(said: str, worth: str) -> None:
    assert testimony.verdict_of(known("unknown", facts=(fact(said),))) == said
    assert testimony.verdict_of(demoted("unknown", facts=(fact(said),))) == worth


def test_F028_a_demoted_connector_never_answers_for_good() -> None:
    about = demoted("unknown")
    assert bounds.final_from(about.tool, T0) is None
    assert bounds.final_from(tool(), T0) is not None


def test_F028_an_absence_that_is_no_longer_final_frees_nothing() -> None:
    told = (FINAL,)
    free = assembly.assemble(known("unknown", facts=told), T0 + timedelta(seconds=60))
    bound = assembly.assemble(demoted("unknown", facts=told), T0 + timedelta(seconds=60))
    assert (decide(free).rule, decide(bound).action.value) == ("8i", "WAIT")


def test_F028_an_earlier_try_counts_as_unknown_again() -> None:
    told = (FINAL,)
    assert testimony.observation_of(known("unknown", "transient_reject", facts=told)) == "transient_reject"
    assert testimony.observation_of(demoted("unknown", "transient_reject", facts=told)) == "unknown"


def test_F028_no_key_lives_by_a_bound_that_is_not_kept() -> None:
    keyed = KEY | {"retention_seconds": 3600}
    assert bounds.live_key(known("unknown", of=tool(idempotency=keyed)), T0) == "live"
    assert bounds.live_key(demoted("unknown", idempotency=keyed), T0) == "none"
    forever = KEY | {"retention_seconds": "unlimited"}
    assert bounds.live_key(demoted("unknown", idempotency=forever), T0) == "live", "it needs no bound"


def test_F028_the_contradiction_itself_stays_one() -> None:
    assert testimony.verdict_of(demoted("unknown", facts=(FINAL, fact("present")))) == "conflict"


def test_a_form_drawn_before_the_demotion_is_overtaken() -> None:
    assert snapshots.hash_of(known("unknown")) != snapshots.hash_of(demoted("unknown"))


# --- taken back outside -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "facts", "undo", "rule"),
    [
        ("rollback", (fact("undone"),), "done", "3a"),
        ("rollback", (fact("present"), fact("undone")), "done", "3a"),
        ("rollback", (fact("undone"), fact("absent")), "done", "3a"),
        ("forward", (fact("undone"),), "none", "1"),
        ("forward", (fact("present"), fact("undone")), "none", "1"),
        ("cancel", (fact("undone"),), "none", "1"),
    ],
)
def test_F141_an_effect_taken_back_outside_needs_no_undo_and_forward_is_a_persons(
    goal: str, facts: tuple[Fact, ...], undo: str, rule: str
) -> None:
    about = known("unknown", facts=facts, goal=goal)
    evidence = assembly.assemble(about, T0)
    assert (evidence.undo, decide(evidence).rule) == (undo, rule)
