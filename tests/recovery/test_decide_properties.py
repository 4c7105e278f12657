"""Each property of the decision table over every combination, and a planted bug for each property."""

import pytest

from recovery.rules.decide import TABLE, Action, decide
from tests.recovery.evidence_space import SIZE, everything, sample
from tests.recovery.planted import Decide, before, changed, without
from tests.recovery.properties import PROPERTIES, RULES, Survey, survey


@pytest.fixture(scope="module")
def whole() -> Survey:
    return survey(decide, everything())


@pytest.mark.parametrize("name", PROPERTIES)
def test_over_every_combination(whole: Survey, name: str) -> None:
    assert whole.asked[name] > 0, "no answer was ever tested"
    assert not whole.broken[name], f"the first: {whole.broken[name][0]}"


def test_every_combination_is_answered(whole: Survey) -> None:
    assert not whole.broken["every_combination_is_answered"]
    assert whole.rules.total() == SIZE


def test_every_rule_is_reached(whole: Survey) -> None:
    assert set(whole.rules) == RULES


def test_the_table_has_each_rule_once_and_in_order() -> None:
    ids = [rule.id for rule in TABLE]
    assert ids == sorted(RULES)


BUGS: list[tuple[str, Decide, str]] = [
    ("the last line is missing", without("9h"), "every_combination_is_answered"),
    (
        "a reason nobody knows",
        changed("5e", action=Action.HUMAN),
        "every_answer_is_one_of_the_words_of_the_table",
    ),
    ("conflict is overlooked", without("1"), "a_contradiction_is_always_a_persons"),
    ("refused yet present is overlooked", without("4a"), "a_contradiction_is_always_a_persons"),
    ("ok yet finally absent is overlooked", without("4b"), "a_contradiction_is_always_a_persons"),
    ("reads ignore the circuit", without("2h"), "no_remote_call_while_the_circuit_is_shut"),
    ("writes ignore the circuit", without("8h"), "no_remote_call_while_the_circuit_is_shut"),
    (
        "a half-open slot takes any write",
        changed("8h", when=lambda e: e.observation == "not_sent" and e.circuit == "shut"),
        "a_half_open_slot_takes_only_reads_looks_and_keyed_writes",
    ),
    ("undo in a half-open slot", without("6d"), "a_half_open_slot_takes_only_reads_looks_and_keyed_writes"),
    ("the attempt ceiling is forgotten", without("8f"), "nothing_is_sent_past_attempts_budget_or_deadline"),
    ("the budget is forgotten", without("8e"), "nothing_is_sent_past_attempts_budget_or_deadline"),
    ("the deadline is forgotten", without("8d"), "nothing_is_sent_past_attempts_budget_or_deadline"),
    (
        "a lost reply is sent again without a key",
        changed("9d", when=lambda e: e.goal == "forward" and e.observation == "unknown"),
        "an_unsettled_write_is_sent_again_only_under_a_live_key",
    ),
    (
        "not found at once counts as not done",
        before("8i", lambda e: e.verdict == "absent", Action.RETRY),
        "an_unsettled_write_is_sent_again_only_under_a_live_key",
    ),
    (
        "a broken reply is sent again under its key",
        before("9c", lambda e: e.key == "live" and e.circuit == "closed", Action.RETRY),
        "a_broken_reply_to_a_write_is_never_sent_again_by_itself",
    ),
    (
        "what is present is sent again",
        without("7a", "7b", "7c"),
        "nothing_is_sent_again_where_an_effect_was_seen",
    ),
    (
        "what is processing is sent again",
        without("9b"),
        "nothing_is_sent_again_where_an_effect_was_seen",
    ),
    ("a permanent refusal is tried again", without("8c"), "a_permanent_refusal_is_never_sent_again"),
    ("an expired key goes out", changed("8i", action=Action.RETRY), "nothing_is_sent_with_an_expired_key"),
    ("the gate is ignored for a retry", without("8g"), "the_gate_holds_for_writes"),
    ("the gate is ignored for an undo", without("5b"), "the_gate_holds_for_writes"),
    ("a rollback sends the write again", without("8b"), "a_write_is_sent_again_only_to_go_forward"),
    (
        "any valid reply is proof",
        changed("7a", when=lambda e: e.goal == "forward" and e.observation == "ok_valid"),
        "no_ok_without_the_proof_the_contract_demands",
    ),
    (
        "any sight of it is proof",
        changed("7a", when=lambda e: e.goal == "forward" and e.verdict == "present"),
        "no_ok_without_the_proof_the_contract_demands",
    ),
    (
        "cancel closes what is unknown",
        before("9a", lambda e: e.goal == "cancel", Action.CLOSE_CANCELLED, "cancelled_by_user"),
        "no_unknown_write_is_closed",
    ),
    ("unknown is called fatal", changed("9h", action=Action.FATAL), "no_close_hides_an_effect"),
    (
        "a kept effect is called none",
        changed("7b", action=Action.CLOSE_NO_EFFECT, reason="not_applied"),
        "no_close_hides_an_effect",
    ),
    ("undo of what was not proven", without("6b"), "an_undo_is_asked_for_possible_and_proven"),
    ("undo of what cannot be undone", without("6a"), "an_undo_is_asked_for_possible_and_proven"),
    ("undo that is already under way", without("3b"), "nothing_is_undone_twice"),
    ("no look before a person", without("9a"), "no_person_is_asked_where_a_look_will_still_settle_it"),
    (
        "looks never stop",
        changed("9b", action=Action.PROBE),
        "looks_stop_at_their_ceiling_and_keep_their_time",
    ),
    (
        "waiting for a circuit that is closed",
        changed("2h", when=lambda e: e.effect == "read"),
        "every_wait_is_for_something_that_will_come",
    ),
    (
        "approval without attempts",
        changed("9h", action=Action.ASK_APPROVAL),
        "approval_is_asked_only_where_it_would_let_something_be_sent",
    ),
    (
        "what cannot be undone is sent again",
        changed("6a", action=Action.RETRY),
        "taking_something_away_never_starts_a_remote_write",
    ),
    (
        "the ceiling holds only while the circuit is up",
        before("9g", lambda e: e.circuit == "shut", Action.HUMAN, "external_outcome_unknown"),
        "a_circuit_only_delays",
    ),
]


@pytest.mark.parametrize(("bug", "property_name"), [pytest.param(b, p, id=i) for i, b, p in BUGS])
def test_a_planted_bug_breaks_its_property(bug: Decide, property_name: str) -> None:
    assert survey(bug, sample()).broken[property_name]


def test_every_property_has_a_planted_bug() -> None:
    assert {name for _, _, name in BUGS} == {*PROPERTIES, "every_combination_is_answered"}


def test_the_sample_itself_finds_no_fault_in_the_table() -> None:
    assert not any(survey(decide, sample()).broken.values())


def test_a_line_in_the_wrong_place_leaves_a_rule_unreached() -> None:
    too_early = before("9f", lambda e: True, Action.HUMAN, "external_outcome_unknown")
    assert RULES - set(survey(too_early, sample()).rules) == {"9g", "9h"}
