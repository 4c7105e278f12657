"""From rows to evidence (DECISIONS 2): who speaks, what clears a verdict, when a look is final and a key live."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steadyhand.manifest import Tool

from recovery.rules import assembly, bounds, snapshots
from recovery.rules.bounds import finalize
from recovery.rules.decide import decide
from recovery.rules.known import Fact, Known, Try

T0 = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
LOOK = {"path": "/x", "ours": {"ref": "{action_id}"}, "external_id": "id"}
BOUNDED = {
    "connector": "c",
    "look": LOOK,
    "max_in_flight_seconds": 20,
    "max_visibility_lag_seconds": 5,
    "max_looks": 3,
}
KEY = {"kind": "key", "header": "Idempotency-Key"}


def tool(effect: str = "write", **promises: Any) -> Tool:
    return Tool.model_validate(
        {"name": "t", "effect": effect, "reconcile": BOUNDED, "timeout_seconds": 10} | promises
    )


def known(*observed: str | None, facts: tuple[Fact, ...] = (), of: Tool | None = None, **changes: Any) -> Known:
    """An action with one try for each observation."""
    tries = tuple(Try(number, said, T0 if said else None) for number, said in enumerate(observed, 1))
    usual = Known(
        tool=of or tool(), connector_kind="http", tries=tries, facts=facts, goal="forward", looks_made=0, due_at=None,
        first_dispatched_at=T0, max_attempts=3, budget_left=True, deadline_at=None, next_due_at=None,
        over_threshold=False, gate_open=True, never_again=False,
    )  # fmt: skip
    return replace(usual, **changes)


def fact(verdict: str, after: int = 1, kind: str = "probe") -> Fact:
    return Fact(kind, verdict, after, T0)


def seen(about: Known, at: float = 0) -> tuple[str, str]:
    evidence = assembly.assemble(about, T0 + timedelta(seconds=at))
    return evidence.observation, evidence.verdict


# --- the least certain attempt speaks -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        ((), "not_sent"),
        ((None,), "unknown"),
        (("ok_valid",), "ok_valid"),
        (("transient_reject", "ok_valid"), "ok_valid"),
        (("transient_reject", "transient_reject"), "transient_reject"),
        (("not_sent", "permanent_reject"), "permanent_reject"),
        (("unknown", "ok_valid"), "unknown"),
        (("unknown", "permanent_reject"), "unknown"),
        (("unknown", "transient_reject", None), "unknown"),
        (("ok_invalid", "unknown"), "ok_invalid"),
        (("unknown", "ok_invalid"), "ok_invalid"),
        (("transient_reject", None), "unknown"),
    ],
)
def test_the_least_certain_attempt_speaks_for_a_write(observed: tuple[str | None, ...], expected: str) -> None:
    assert seen(known(*observed))[0] == expected


@pytest.mark.parametrize(
    "observed", [("unknown", "ok_valid"), ("transient_reject", "ok_valid"), ("ok_invalid", "ok_valid")]
)
def test_the_latest_attempt_speaks_for_a_read(observed: tuple[str, ...]) -> None:
    assert seen(known(*observed, of=tool("read")))[0] == "ok_valid"


def test_a_final_absence_settles_every_attempt_before_it() -> None:
    proven = (fact("absent_final", after=1),)
    assert seen(known("unknown", "ok_valid", facts=proven))[0] == "ok_valid"
    assert seen(known("unknown", "transient_reject", facts=proven))[0] == "transient_reject"
    assert seen(known("unknown", "unknown", facts=proven))[0] == "unknown"
    assert seen(known("unknown", facts=proven)) == ("unknown", "absent_final")


KEYED = {**KEY, "retention_seconds": 100}
"""Live for a send up to 65 seconds after the first: 10 timeout, 20 in flight, 5 skew."""


def tries(*told: tuple[str | None, float, int]) -> tuple[Try, ...]:
    """Observed, sent at, under which generation of the key; each ends five seconds later."""
    return tuple(
        Try(number, said, T0 + timedelta(seconds=at + 5), T0 + timedelta(seconds=at), generation)
        for number, (said, at, generation) in enumerate(told, 1)
    )


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([("unknown", 0, 1), ("ok_valid", 10, 1)], "ok_valid"),
        ([("ok_invalid", 0, 1), ("ok_valid", 10, 1)], "ok_valid"),
        ([("unknown", 0, 1), ("unknown", 5, 1), ("ok_valid", 10, 1)], "ok_valid"),
        ([("ok_valid", 0, 1), ("unknown", 10, 1)], "ok_valid"),
        ([("unknown", 0, 1), ("ok_valid", 64, 1)], "ok_valid"),  # it counts when it was sent
        ([("unknown", 0, 1), ("ok_valid", 70, 1)], "unknown"),  # the provider may have forgotten the key
        ([("unknown", 0, 1), ("ok_valid", 10, 2)], "unknown"),  # another key: another call to the provider
        ([("unknown", 0, 1), ("permanent_reject", 10, 1)], "unknown"),
    ],
)
def test_a_valid_reply_settles_every_attempt_that_went_out_under_the_same_live_key(
    sent: list[tuple[str | None, float, int]], expected: str
) -> None:
    about = known(of=tool(idempotency=KEYED), tries=tries(*sent))
    assert seen(about, at=80)[0] == expected, "and it stays so when the key has expired since"


def test_a_reply_under_an_older_key_is_not_measured_by_the_life_of_the_newer_one() -> None:
    sent = tries(("unknown", 0, 1), ("ok_valid", 70, 1), ("transient_reject", 80, 2))
    newer = known(of=tool(idempotency=KEYED), tries=sent, first_dispatched_at=T0 + timedelta(seconds=80))
    assert seen(newer)[0] == "unknown"


def test_an_effect_is_not_forgotten_over_a_later_refusal() -> None:
    assert seen(known("ok_valid", "transient_reject"))[0] == "ok_valid"


def test_a_later_permanent_refusal_beside_an_open_try_only_ends_the_attempts() -> None:
    refused = known("unknown", "permanent_reject", never_again=True)
    evidence = assembly.assemble(refused, T0)
    assert (evidence.observation, evidence.attempts_left) == ("unknown", False)


# --- what was learned ---------------------------------------------------------------------------------------


def test_each_dispatch_clears_the_verdict() -> None:
    facts = (fact("absent_final", after=1),)
    assert seen(known("unknown", facts=facts))[1] == "absent_final"
    assert seen(known("unknown", None, facts=facts))[1] == "none"
    assert seen(known("unknown", "unknown", facts=(*facts, fact("absent", after=2))))[1] == "absent"


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ((), "none"),
        (("none",), "none"),
        (("probe_failed",), "probe_failed"),
        (("absent", "probe_failed"), "absent"),
        (("absent", "present"), "present"),
        (("present", "absent"), "present"),
        (("absent", "processing"), "processing"),
        (("processing", "absent"), "absent"),
        (("absent", "absent_final"), "absent_final"),
        (("present", "present_final"), "present_final"),
        (("conflict", "present_final"), "conflict"),
        (("present", "absent_final"), "conflict"),
        (("absent_final", "present_final"), "conflict"),
        (("partial", "absent_final"), "conflict"),
        (("partial", "partial_final"), "partial_final"),
    ],
)
def test_F043_what_was_learned_adds_up_and_contradictions_are_a_conflict(
    verdicts: tuple[str, ...], expected: str
) -> None:
    assert seen(known("unknown", facts=tuple(fact(verdict) for verdict in verdicts)))[1] == expected


def test_F028_an_effect_of_a_try_that_had_been_disproven_is_a_conflict_for_ever() -> None:
    late = (fact("absent_final", after=1), fact("present", after=1, kind="late_report"))
    assert seen(known("unknown", None, facts=late))[1] == "conflict"
    assert seen(known("unknown", "ok_valid", facts=late))[1] == "conflict"


def test_an_effect_of_a_later_try_contradicts_nothing() -> None:
    facts = (fact("absent_final", after=1), fact("present_final", after=2))
    assert seen(known("unknown", "unknown", facts=facts))[1] == "present_final"


def test_under_a_live_key_an_earlier_try_that_was_found_is_the_same_effect() -> None:
    found = (fact("present", after=1, kind="late_report"),)
    about = known(of=tool(idempotency=KEYED), facts=found, tries=tries(("unknown", 0, 1), ("unknown", 10, 1)))
    assert seen(about)[1] == "present"
    assert seen(replace(about, facts=(*found, fact("absent_final", after=2))))[1] == "conflict"
    other_key = replace(about, tries=tries(("unknown", 0, 1), ("unknown", 10, 2)))
    assert seen(other_key)[1] == "none"
    forgotten = replace(about, tries=tries(("unknown", 0, 1), ("unknown", 70, 1)))
    assert seen(forgotten)[1] == "none", "the later try may have made a second one"


def test_an_earlier_absence_says_nothing_of_a_later_try_under_any_key() -> None:
    about = known(of=tool(idempotency=KEYED), facts=(fact("absent"),), tries=tries(("unknown", 0, 1), (None, 9, 1)))
    assert seen(about)[1] == "none"


@pytest.mark.parametrize(
    ("verdict", "count", "expected"),
    [
        ("present", 1, "present"),
        ("present", None, "present"),
        ("present", 2, "conflict"),
        ("present_final", 3, "conflict"),
        ("partial", 2, "partial"),  # parts of a batch are counted one by one
        ("absent_final", 0, "absent_final"),
    ],
)
def test_F029_effects_are_counted_two_of_them_are_a_conflict(verdict: str, count: int | None, expected: str) -> None:
    about = known("unknown", facts=(Fact("probe", verdict, 1, T0, count),))
    assert seen(about)[1] == expected


@pytest.mark.parametrize("later", ["absent", "probe_failed", "none"])
def test_a_proven_absence_is_not_downgraded_by_what_proves_less(later: str) -> None:
    assert seen(known("unknown", facts=(fact("absent_final"), fact(later))))[1] == "absent_final"


def test_word_that_the_work_goes_on_after_a_proven_absence_is_a_contradiction() -> None:
    assert seen(known("unknown", facts=(fact("absent_final"), fact("processing"))))[1] == "conflict"
    assert seen(known("unknown", facts=(fact("processing"), fact("absent_final"))))[1] == "absent_final"


@pytest.mark.parametrize("source", ["callback", "person", "late_report"])
@pytest.mark.parametrize("order", [1, -1])
def test_the_last_word_does_not_win_whoever_says_it(source: str, order: int) -> None:
    facts = (fact("absent_final"), fact("present", kind=source))[::order]
    assert seen(known("unknown", facts=facts))[1] == "conflict"


# --- accepted jobs and messages -----------------------------------------------------------------------------

CALLBACK = {"callback": {"source": "pay", "succeeded": ["done"], "failed": ["failed"]}, "completes_by": "callback"}


def test_an_accepted_job_is_in_progress_and_its_failure_a_refusal_for_good() -> None:
    accepted = known("unknown", facts=(fact("processing", kind="reply"),), of=tool(**CALLBACK))
    assert seen(accepted) == ("unknown", "processing")
    failed = replace(accepted, facts=(*accepted.facts, fact("job_failed", kind="callback")))
    assert seen(failed) == ("permanent_reject", "none")
    assert seen(replace(failed, facts=(*failed.facts, fact("present"))))[1] == "conflict"


def test_while_a_callback_is_awaited_nobody_looks() -> None:
    accepted = known("unknown", facts=(fact("processing", kind="reply"),), of=tool(**CALLBACK), due_at=T0)
    waiting = replace(accepted, ends_at=T0 + timedelta(seconds=60))
    assert assembly.looks_of(waiting, T0) == "later"
    assert assembly.looks_of(waiting, T0 + timedelta(seconds=61)) == "due"


def test_a_failed_job_leaves_an_earlier_try_without_a_key_open() -> None:
    about = known("unknown", "unknown", facts=(fact("job_failed", after=2, kind="callback"),), of=tool(**CALLBACK))
    assert seen(about)[0] == "unknown"


@pytest.mark.parametrize(
    ("proof", "expected"),
    [("reply", ("unknown", "present")), ("look", ("ok_valid", "none")), ("look_final", ("ok_valid", "none"))],
)
def test_a_message_is_as_strong_as_a_reply_so_a_look_still_confirms_it(proof: str, expected: tuple[str, str]) -> None:
    told = (fact("processing", kind="reply"), fact("present", kind="callback"))
    about = known("unknown", facts=told, of=tool(proof=proof, **CALLBACK))
    assert seen(about) == expected
    assert seen(replace(about, facts=(*told, fact("present"))))[1] == "present"


def test_a_message_that_nobody_can_confirm_by_a_look_stands_for_itself() -> None:
    told = (fact("present", kind="callback"),)
    assert (
        seen(known("unknown", facts=told, over_threshold=True, of=tool(reconcile=None, **CALLBACK)))[1] == "present"
    )


# --- undone by somebody else --------------------------------------------------------------------------------


def test_a_look_that_finds_our_effect_undone_outside_ends_the_rollback() -> None:
    undone = known("ok_valid", facts=(fact("undone"),), goal="rollback")
    evidence = assembly.assemble(undone, T0)
    assert (evidence.undo, decide(evidence).rule) == ("done", "3a")


def test_an_effect_undone_outside_is_a_persons_question_unless_that_was_wanted() -> None:
    for goal in ("forward", "cancel"):
        evidence = assembly.assemble(known("ok_valid", facts=(fact("undone"),), goal=goal), T0)
        assert (evidence.undo, evidence.verdict) == ("none", "conflict")


# --- when a look is final -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("started", "final"), [(-1, False), (0, False), (24.999, False), (25, True), (1e6, True)])
def test_F025_a_look_is_final_from_the_bound_on(started: float, final: bool) -> None:
    bound = bounds.final_from(tool(), T0)
    at = T0 + timedelta(seconds=started)
    assert (finalize("absent", started_at=at, final_at=bound) == "absent_final") == final


@pytest.mark.parametrize("missing", ["max_in_flight_seconds", "max_visibility_lag_seconds"])
def test_F041_without_a_bound_nothing_is_final(missing: str) -> None:
    assert bounds.final_from(tool(reconcile=BOUNDED | {missing: None}), T0) is None


def test_bounds_of_zero_make_every_look_final() -> None:
    zero = BOUNDED | {"max_in_flight_seconds": 0, "max_visibility_lag_seconds": 0}
    assert bounds.final_from(tool(reconcile=zero), T0) == T0


def test_while_a_try_is_under_way_no_look_is_final() -> None:
    assert bounds.final_from(tool(), bounds.uncertain_since(known("unknown", None))) is None


@pytest.mark.parametrize("verdict", ["conflict", "processing", "probe_failed"])
def test_what_time_cannot_settle_is_never_final(verdict: str) -> None:
    assert finalize(verdict, started_at=T0, final_at=T0) == verdict


def test_the_bound_runs_from_the_end_of_the_last_dispatch() -> None:
    about = known(tries=(Try(1, "unknown", T0, T0), Try(2, "unknown", T0 + timedelta(seconds=50), T0)))
    assert bounds.final_from(tool(), bounds.uncertain_since(about)) == T0 + timedelta(seconds=75)


@pytest.mark.parametrize(
    ("promises", "kind", "expected"),
    [
        ({}, "http", 25),
        ({"reconcile": BOUNDED | {"max_in_flight_seconds": None}}, "http", bounds.UNBOUNDED_RECOUNT_SECONDS),
        ({"reconcile": BOUNDED | {"counts": False}}, "http", None),
        ({"reconcile": None}, None, None),
        ({}, "manual", None),
    ],
)
def test_F029_a_write_believed_on_less_than_a_final_look_is_counted_later_where_somebody_counts(
    promises: dict[str, Any], kind: str | None, expected: float | None
) -> None:
    assert bounds.recount_after(tool(**promises), kind) == expected
    assert bounds.recount_after(tool("read"), "http") is None


# --- whether a key is live ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("promise", "at", "expected"),
    [
        ({"kind": "none"}, 0, "none"),
        ({"kind": "natural"}, 1e9, "live"),
        ({**KEY, "retention_seconds": "unlimited"}, 1e9, "live"),
        (KEY, 0, "none"),  # no retention declared: no promise
        ({**KEY, "retention_seconds": 100, "compares_arguments": False}, 0, "none"),
        ({**KEY, "retention_seconds": 100}, 0, "live"),
        ({**KEY, "retention_seconds": 100}, 64.9, "live"),  # 10 timeout + 20 in flight + 5 skew
        ({**KEY, "retention_seconds": 100}, 65, "expired"),
        ({**KEY, "retention_seconds": 100}, 1000, "expired"),
    ],
)
def test_F027_F046_a_key_is_live_while_every_copy_would_land_within_its_retention(
    promise: dict[str, Any], at: float, expected: str
) -> None:
    about = known("unknown", of=tool(idempotency=promise))
    assert bounds.live_key(about, T0 + timedelta(seconds=at)) == expected


def test_F027_a_key_without_a_declared_flight_time_is_no_live_key() -> None:
    unbounded = tool(
        idempotency={**KEY, "retention_seconds": 1000}, reconcile=BOUNDED | {"max_in_flight_seconds": None}
    )
    assert bounds.live_key(known("unknown", of=unbounded), T0) == "none"
    alone = tool(idempotency={**KEY, "retention_seconds": 1000}, reconcile=None)
    assert bounds.live_key(known("unknown", of=alone), T0) == "none"


# --- the rest of the fields ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "due", "expected"),
    [(0, None, "later"), (0, 0, "due"), (0, 1, "later"), (3, 0, "later"), (4, 0, "spent")],
)
def test_looks_are_due_later_or_spent(made: int, due: float | None, expected: str) -> None:
    due_at = None if due is None else T0 + timedelta(seconds=due)
    assert assembly.looks_of(known("unknown", looks_made=made, due_at=due_at), T0) == expected


def test_looks_have_their_own_ceiling_and_use_nothing_of_the_run() -> None:
    spent = known("unknown", due_at=T0, budget_left=False, deadline_at=T0, max_attempts=1, never_again=True)
    assert assembly.looks_of(spent, T0 + timedelta(seconds=60)) == "due"


def test_what_is_missing_already_is_what_a_repeated_delete_wants() -> None:
    assert bounds.live_key(known("unknown", of=tool(absent_is_success=True)), T0) == "live"


@pytest.mark.parametrize(
    ("declared", "in_time", "expected"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_an_effect_can_be_taken_back_inside_its_declared_window(
    declared: bool, in_time: bool, expected: bool
) -> None:
    undo = {"compensate": {"tool": "u", "arguments": {"id": "id"}}} if declared else {}
    assert assembly.assemble(known("ok_valid", of=tool(**undo), undo_in_time=in_time), T0).compensable == expected


def test_a_connector_that_a_person_speaks_for_is_no_look_up() -> None:
    assert not assembly.reconcilable(known("unknown", connector_kind="manual"))
    assert not assembly.reconcilable(known("unknown", of=tool(reconcile=None)))


def test_over_the_threshold_a_reply_is_no_proof_where_a_look_can_be_had() -> None:
    assert assembly.assemble(known("ok_valid", over_threshold=True), T0).proof == "look"
    assert assembly.assemble(known("ok_valid", over_threshold=True, of=tool(reconcile=None)), T0).proof == "reply"


def test_attempts_end_at_the_ceiling_and_with_a_permanent_refusal() -> None:
    assert assembly.assemble(known("unknown", "unknown"), T0).attempts_left
    assert not assembly.assemble(known("unknown", "unknown", "unknown"), T0).attempts_left
    assert not assembly.assemble(known("unknown", never_again=True), T0).attempts_left


def test_F032_a_retry_that_would_fall_due_after_the_deadline_is_past_it() -> None:
    about = known("transient_reject", deadline_at=T0 + timedelta(seconds=60))
    assert not assembly.assemble(about, T0).past_deadline
    assert assembly.assemble(replace(about, next_due_at=T0 + timedelta(seconds=61)), T0).past_deadline
    assert assembly.assemble(about, T0 + timedelta(seconds=61)).past_deadline


VERDICTS = ("none", "present", "absent", "absent_final", "processing", "conflict", "probe_failed", "present_final")
OBSERVED = ("unknown", "ok_valid", "ok_invalid", "transient_reject", "permanent_reject", "not_sent", None)


@given(
    st.lists(st.sampled_from(OBSERVED), max_size=4),
    st.lists(st.tuples(st.sampled_from(VERDICTS), st.integers(0, 4)), max_size=4),
    st.floats(0, 1e6),
)
def test_whatever_is_known_can_be_decided(observed: list[Any], facts: list[Any], at: float) -> None:
    about = known(*observed, facts=tuple(fact(verdict, after) for verdict, after in facts))
    assert decide(assembly.assemble(about, T0 + timedelta(seconds=at))).rule


# --- the hash that a button carries -------------------------------------------------------------------------


def test_F119_the_hash_changes_with_a_fact_and_not_with_time() -> None:
    base = known("unknown")
    assert snapshots.hash_of(base) == snapshots.hash_of(replace(base, due_at=T0, looks_made=2))
    changed = [
        known("unknown", None),
        known("ok_valid"),
        known("unknown", facts=(fact("absent"),)),
        replace(base, goal="cancel"),
        replace(base, gate_open=False),
    ]
    assert len({snapshots.hash_of(one) for one in (base, *changed)}) == 6


def test_looks_made_too_early_leave_one_for_the_moment_that_proves_something() -> None:
    early = known("unknown", looks_made=3, due_at=T0)
    kept_for = assembly.final_look_kept_for(early)
    assert kept_for is not None
    assert assembly.looks_of(early, kept_for - timedelta(seconds=1)) == "later"
    assert assembly.looks_of(early, kept_for) == "due"
    assert assembly.looks_of(known("unknown", looks_made=4, due_at=T0), kept_for) == "spent"
