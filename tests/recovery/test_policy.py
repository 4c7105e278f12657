"""Which buttons a person has, and for every other the rule and the sentence that says why not (DECISIONS 4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.rules import desk, policy
from recovery.rules.decide import Action, decide
from recovery.rules.policy import Situation, Verb
from recovery.rules.situation import Ceiling
from runs.models import ABILITIES
from tests.recovery.evidence_space import evidence, sample

NOW = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
ALL = frozenset(ABILITIES) - {"audit", "administer"}
UNKNOWN = {"observation": "unknown", "looks": "later"}


def at(known: dict[str, Any] | None = None, **changes: Any) -> Situation:
    """An unknown write before somebody who may do everything, with some of it changed."""
    usual = Situation(
        awaiting_approval=False, last_look_kept=False,
        abilities=ALL, task_open=True, mine=False, held_by=None, held_until=None, run_state="verifying",
        run_open=True,
        evidence=evidence(**(UNKNOWN | (known or {}))), settled=False, tool="apply_credit",
        final_from=NOW + timedelta(seconds=25), check_under_way=False, open_calls=1, ceiling=None,
        over_threshold=False, now=NOW, held=True,
    )  # fmt: skip
    return replace(usual, **changes)


def verb(name: str, situation: Situation) -> Verb:
    return policy.find(situation, name)


def test_an_unknown_write_is_looked_up_first() -> None:
    assert [one.name for one in policy.verbs(at()) if one.recommended] == ["reconcile"]
    assert verb("reconcile", at()).allowed
    assert "09:00:25 UTC" in verb("reconcile", at()).sentence


def test_a_retry_is_offered_when_it_is_proven_safe_and_not_before() -> None:
    assert not verb("retry", at()).allowed
    assert not verb("retry", at({"verdict": "absent"})).allowed
    proven = at({"verdict": "absent_final"})
    assert (verb("retry", proven).allowed, verb("retry", proven).rule) == (True, "8i")
    live = at({"key": "live", "reconcilable": False})
    assert (verb("retry", live).allowed, verb("retry", live).rule) == (True, "9d")


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"abilities": frozenset({"view"})}, "role"),
        ({"task_open": False}, "task"),
        ({"held_by": "Alice", "held_until": NOW}, "claim"),
        ({"settled": True}, "settled"),
        ({"check_under_way": True}, "look"),
        ({"over_threshold": True}, "8i"),
    ],
)
def test_what_stands_in_the_way_of_a_retry_is_named(changes: dict[str, Any], rule: str) -> None:
    blocked = verb("retry", at({"verdict": "absent_final"}, **changes))
    assert (blocked.allowed, blocked.rule) == (False, rule)
    assert blocked.sentence.startswith("Blocked: ")


def test_a_claim_bars_everybody_else_and_not_its_holder() -> None:
    held = at(held_by="Alice", held_until=NOW)
    assert {one.name for one in policy.verbs(held) if one.allowed} == {"comment"}
    mine = at(held_by="Alice", held_until=NOW, mine=True)
    assert {"reconcile", "cancel", "claim", "release", "comment"} <= {
        one.name for one in policy.verbs(mine) if one.allowed
    }


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        ({"open_calls": 0, "settled": True, "run_state": "escalated"}, True),
        ({"open_calls": 1, "run_state": "escalated"}, False),
        ({"open_calls": 0, "ceiling": "turn_budget_exhausted"}, False),
        ({"open_calls": 0, "run_open": False}, False),
        ({"open_calls": 0, "run_state": "cancelling"}, False),
    ],
)
def test_a_run_resumes_from_a_proven_state_only(changes: dict[str, Any], allowed: bool) -> None:
    assert verb("resume", at(**changes)).allowed == allowed


@pytest.mark.parametrize(
    ("known", "changes", "answer"),
    [
        ({}, {}, "not_yet"),
        ({}, {"final_from": None}, "check_first"),
        ({}, {"final_from": NOW}, "check_first"),
        ({"verdict": "absent_final"}, {}, "yes"),
        ({"verdict": "absent_final", "circuit": "shut"}, {}, "yes"),
        ({"verdict": "conflict"}, {}, "no"),
        ({"verdict": "absent_final"}, {"settled": True}, "no"),
        ({"looks": "spent"}, {}, "no"),
    ],
)
def test_the_question_whether_sending_again_is_safe_has_one_answer(known: Any, changes: Any, answer: str) -> None:
    assert policy.retry_safe(at(known, **changes))[0] == answer


def test_a_task_about_the_run_itself_has_no_call_to_send() -> None:
    about_run = at(evidence=None, settled=True, open_calls=0)
    assert policy.retry_safe(about_run)[0] == "not_applicable"
    own = {"claim", "assign", "snooze", "comment"}
    assert {one.name for one in policy.verbs(about_run) if one.allowed} == {"resume", "cancel", *own}


SITUATIONS = st.builds(
    lambda known, **changes: replace(at(), evidence=known, **changes),
    known=st.sampled_from(sample()),
    abilities=st.frozensets(st.sampled_from(sorted(ALL))),
    task_open=st.booleans(),
    mine=st.booleans(),
    held_by=st.none() | st.just("Alice"),
    run_state=st.sampled_from(["verifying", "escalated", "cancelling", "completed"]),
    run_open=st.booleans(),
    settled=st.booleans(),
    check_under_way=st.booleans(),
    open_calls=st.integers(0, 2),
    over_threshold=st.booleans(),
    final_from=st.none() | st.just(NOW) | st.just(NOW + timedelta(seconds=9)),
)


@given(SITUATIONS)
def test_every_button_is_allowed_or_says_why_not_and_one_at_most_is_recommended(situation: Situation) -> None:
    made = policy.verbs(situation)
    assert len({one.name for one in made}) == len(made) == len(policy.ACTING) + len(desk.VERBS)
    assert all(one.sentence and one.rule for one in made)
    assert all(one.sentence.startswith("Blocked: ") != one.allowed for one in made)
    assert sum(one.recommended for one in made) <= 1
    assert all(one.allowed for one in made if one.recommended)


@given(SITUATIONS)
def test_no_button_sends_what_the_table_would_not(situation: Situation) -> None:
    if policy.find(situation, "retry").allowed:
        assert situation.evidence is not None
        assert decide(situation.evidence._replace(gate="open")).action is Action.RETRY
        assert "retry" in situation.abilities
        assert not situation.over_threshold


@given(SITUATIONS, st.sampled_from(sorted(ALL)))
def test_taking_a_right_away_never_adds_a_button(situation: Situation, right: str) -> None:
    fewer = replace(situation, abilities=situation.abilities - {right})
    before = {one.name for one in policy.verbs(situation) if one.allowed}
    assert {one.name for one in policy.verbs(fewer) if one.allowed} <= before


def test_a_call_that_waits_for_an_approval_is_not_sent_by_a_retry() -> None:
    waiting = at({"observation": "not_sent", "gate": "shut"}, awaiting_approval=True)
    assert policy.retry_safe(waiting)[0] == "after_approval"
    retry = verb("retry", waiting)
    assert not retry.allowed
    assert "waits for an approval" in retry.sentence


def test_a_proven_nothing_is_never_called_unknown() -> None:
    used_up = at({"observation": "transient_reject", "attempts_left": False})
    answer, sentence, _ = policy.retry_safe(used_up)
    assert (answer, sentence) == ("no", "Nothing happened, but all its tries are used.")
    assert "stays unknown" not in verb("cancel", used_up).sentence


# --- the verbs that spend a person's authority ----------------------------------------------------------------

WAITING = {"awaiting_approval": True, "held": False, "run_state": "escalated"}
NOT_SENT = {"observation": "not_sent", "gate": "shut"}
SPENT = {"observation": "unknown", "looks": "spent", "attempts_left": False}
CEILING = Ceiling("max_turns", "turns", 12, 6)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({}, "8g"),
        ({"requester": True}, "four_eyes"),
        ({"approve_until": NOW}, "expired"),
        ({"approve_until": NOW + timedelta(seconds=1)}, "8g"),
        ({"abilities": ALL - {"approve"}}, "role"),
        ({"held_by": "Alice"}, "claim"),
        ({"awaiting_approval": False, "decided": "Omar chose “Approve” at 09:00:00 UTC"}, "decided"),
        ({"awaiting_approval": False}, "approval"),
    ],
)
def test_an_approval_is_given_once_in_time_and_by_another_person(changes: dict[str, Any], rule: str) -> None:
    answer = verb("approve", at(NOT_SENT, **(WAITING | changes)))
    assert (answer.rule, answer.allowed) == (rule, rule == "8g")


def test_the_one_who_attested_is_not_the_second_person() -> None:
    said = {"attested": "Alice attests that it happened (reference cr_1)", "held": False}
    assert verb("approve", at(**said)).allowed
    assert verb("approve", at(**said, attester=True)).rule == "four_eyes"
    assert verb("reject", at(**said, attester=True)).allowed
    assert verb("attest", at(**said)).rule == "attest"


@pytest.mark.parametrize(
    ("known", "changes", "allowed"),
    [
        ({"verdict": "absent_final"}, {"held_by": "Alice"}, True),
        ({"verdict": "absent_final"}, {"held_by": "Alice", "mine": True}, False),
        ({"verdict": "absent_final"}, {}, False),
        ({"verdict": "absent_final"}, {"held_by": "Alice", "held": False}, False),
        ({"observation": "unknown", "key": "live", "looks": "spent"}, {"held_by": "Alice"}, False),
    ],
)
def test_a_second_word_frees_only_what_is_proven_to_have_done_nothing(
    known: Any, changes: Any, allowed: bool
) -> None:
    assert verb("approve", at(known, over_threshold=True, **changes)).allowed == allowed


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        ({"fired": CEILING}, True),
        ({}, False),
        ({"fired": CEILING, "topped_up": "turn_budget_exhausted"}, False),
        ({"fired": CEILING, "run_open": False}, False),
        ({"fired": CEILING, "run_state": "cancelling"}, False),
    ],
)
def test_a_budget_is_topped_up_once_while_the_run_lives(changes: dict[str, Any], allowed: bool) -> None:
    assert verb("top_up", at(evidence=None, settled=True, **changes)).allowed == allowed


@pytest.mark.parametrize(
    ("known", "changes", "replay", "discard"),
    [
        ({"observation": "transient_reject", "attempts_left": False}, {"letter": "recorded"}, "8i", "letter"),
        ({"observation": "transient_reject", "attempts_left": False}, {"letter": "replaying"}, "letter", "letter"),
        (SPENT | {"key": "live"}, {"letter": "recorded"}, "9d", "9h"),
        (SPENT, {"letter": "recorded"}, "9h", "9h"),
        ({"observation": "transient_reject", "past_deadline": True}, {"letter": "recorded"}, "8d", "letter"),
        ({"observation": "transient_reject"}, {}, "letter", "letter"),
    ],
)
def test_a_dead_letter_is_replayed_where_it_is_safe_and_given_up_by_two_where_it_may_have_happened(
    known: dict[str, Any], changes: dict[str, Any], replay: str, discard: str
) -> None:
    seen = at(known, **changes)
    assert (verb("replay", seen).rule, verb("discard", seen).rule) == (replay, discard)
    assert verb("replay", seen).allowed == (replay in ("8i", "9d"))
    assert verb("discard", seen).allowed == (changes.get("letter") == "recorded")
    assert ("second person" in verb("discard", seen).sentence) == (discard == "9h")


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"undoable": 2}, "6e"),
        ({"undoable": 2, "doubtful": 1}, "6b"),
        ({}, "6a"),
        ({"undoable": 2, "rolling_back": True}, "run"),
        ({"undoable": 2, "run_open": False}, "run"),
    ],
)
def test_only_what_is_proven_is_undone_and_nothing_beside_an_unknown_write(changes: Any, rule: str) -> None:
    assert verb("compensate", at(**changes)).rule == rule
    assert verb("compensate", at(**changes)).allowed == (rule == "6e")


AUTHORITY = st.builds(
    lambda base, **changes: replace(base, **changes),
    base=SITUATIONS,
    awaiting_approval=st.booleans(),
    requester=st.booleans(),
    attested=st.sampled_from(["", "Alice attests that it happened (reference cr_1)"]),
    attester=st.booleans(),
    letter=st.sampled_from(["", "recorded", "in_review", "replaying", "recovered"]),
    fired=st.sampled_from([None, CEILING]),
    topped_up=st.sampled_from(["", "turn_budget_exhausted"]),
    undoable=st.integers(0, 2),
    doubtful=st.integers(0, 2),
    rolling_back=st.booleans(),
    held=st.booleans(),
    in_flight=st.booleans(),
)


@given(AUTHORITY)
def test_every_verb_that_is_allowed_is_also_shown(situation: Situation) -> None:
    acting = {one.name for one in policy.verbs(situation) if one.allowed and one.name in policy.ACTING}
    assert acting <= {one.name for one in policy.shown(situation)}


@given(AUTHORITY)
def test_no_second_person_is_the_first(situation: Situation) -> None:
    answer = policy.find(situation, "approve")
    if answer.allowed and situation.attested:
        assert not situation.attester
    elif answer.allowed:
        assert not situation.requester


@given(AUTHORITY)
def test_a_live_run_always_leaves_an_admin_a_claim_and_a_verb_that_acts(situation: Situation) -> None:
    """Every waiting state has at least one legal verb."""
    free = replace(
        situation, abilities=ALL, task_open=True, held_by=None, mine=False, run_open=True, run_state="escalated"
    )
    allowed = {one.name for one in policy.verbs(free) if one.allowed}
    assert ("claim" in allowed) != bool(free.attested), "what waits for a second person is in hands already"
    assert allowed & set(policy.ACTING)


@given(AUTHORITY)
def test_no_replay_sends_what_the_table_would_not(situation: Situation) -> None:
    if policy.find(situation, "replay").allowed:
        assert situation.evidence is not None
        granted = decide(situation.evidence._replace(attempts_left=True, gate="open"))
        assert granted.action is Action.RETRY
        assert not situation.over_threshold
