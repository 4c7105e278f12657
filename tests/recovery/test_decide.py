"""The decision table by example: one per rule, then the places where two rules compete."""

from pathlib import Path

import pytest

from recovery.rules.decide import TABLE, TABLE_VERSION, Action, NextAction, decide, first_match
from recovery.rules.evidence import VALUES, EvidenceError, parse
from tests.recovery.evidence_space import evidence

READ = {"effect": "read"}
UNKNOWN = {"observation": "unknown"}
NOBODY_TO_ASK = {"reconcilable": False}
LIVE = {"observation": "unknown", "key": "live", "reconcilable": False}
ROLLBACK = {"goal": "rollback"}
PART = {"observation": "unknown", "verdict": "partial_final", "goal": "rollback"}
THERE = {"observation": "unknown", "verdict": "present_final", "goal": "rollback"}
CLAIMED = {"observation": "ok_valid", "verdict": "absent"}

EXAMPLES = [
    ("1", UNKNOWN | {"verdict": "conflict"}, Action.HUMAN, "conflicting_evidence"),
    ("2a", READ | {"goal": "cancel"}, Action.CLOSE_CANCELLED, "cancelled_by_user"),
    ("2b", READ | ROLLBACK, Action.CLOSE_NO_EFFECT, "nothing_to_undo"),
    ("2c", READ | {"observation": "ok_valid"}, Action.CLOSE_OK, "completed"),
    ("2d", READ | {"observation": "permanent_reject"}, Action.FATAL, "permanent_reject"),
    ("2d", READ | {"observation": "policy_denied"}, Action.FATAL, "policy_denied"),
    ("2d", READ | {"observation": "ok_invalid"}, Action.FATAL, "invalid_tool_result"),
    ("2e", READ | {"past_deadline": True}, Action.HUMAN, "deadline_exceeded"),
    ("2f", READ | {"budget_left": False}, Action.HUMAN, "budget_exhausted"),
    ("2g", READ | {"attempts_left": False}, Action.HUMAN, "retry_exhausted"),
    ("2h", READ | {"circuit": "shut"}, Action.WAIT, "circuit"),
    ("2i", READ | UNKNOWN, Action.RETRY, "read_again"),
    ("3a", ROLLBACK | {"undo": "done"}, Action.CLOSE_NO_EFFECT, "compensated"),
    ("3b", ROLLBACK | {"undo": "pending"}, Action.WAIT, "undo"),
    ("3c", ROLLBACK | {"undo": "held"}, Action.HUMAN, "compensation_failed"),
    ("4a", {"verdict": "present"}, Action.HUMAN, "conflicting_evidence"),
    ("4b", {"observation": "ok_valid", "verdict": "absent_final"}, Action.HUMAN, "conflicting_evidence"),
    ("5a", UNKNOWN | {"verdict": "partial"}, Action.PROBE, "partial_effect"),
    ("5a", UNKNOWN | {"verdict": "partial", "looks": "spent"}, Action.HUMAN, "partial_effect"),
    ("5b", PART | {"gate": "shut"}, Action.ASK_APPROVAL, "approval_required"),
    ("5c", PART | {"circuit": "half_slot", "key": "live"}, Action.WAIT, "circuit"),
    ("5d", PART, Action.COMPENSATE, "undo_effect"),
    ("5e", PART | {"compensable": False}, Action.HUMAN, "partial_effect"),
    ("6a", THERE | {"compensable": False}, Action.HUMAN, "not_compensable"),
    ("6b", THERE | {"verdict": "present"}, Action.PROBE, "external_outcome_unknown"),
    ("6c", THERE | {"gate": "shut"}, Action.ASK_APPROVAL, "approval_required"),
    ("6d", THERE | {"circuit": "half_slot", "key": "live"}, Action.WAIT, "circuit"),
    ("6e", THERE, Action.COMPENSATE, "undo_effect"),
    ("7a", {"observation": "ok_valid"}, Action.CLOSE_OK, "completed"),
    ("7b", {"observation": "ok_valid", "goal": "cancel"}, Action.CLOSE_CANCELLED, "cancelled_with_effects"),
    ("7c", {"observation": "ok_valid", "proof": "look"}, Action.PROBE, "postcondition_unproven"),
    ("8a", {"goal": "cancel"}, Action.CLOSE_CANCELLED, "cancelled_by_user"),
    ("8b", ROLLBACK, Action.CLOSE_NO_EFFECT, "not_applied"),
    ("8c", {"observation": "permanent_reject"}, Action.FATAL, "permanent_reject"),
    ("8c", {"observation": "policy_denied"}, Action.FATAL, "policy_denied"),
    ("8d", {"past_deadline": True, "budget_left": False}, Action.HUMAN, "deadline_exceeded"),
    ("8e", {"budget_left": False, "attempts_left": False}, Action.HUMAN, "budget_exhausted"),
    ("8f", {"attempts_left": False, "gate": "shut"}, Action.HUMAN, "retry_exhausted"),
    ("8g", {"gate": "shut", "circuit": "shut"}, Action.ASK_APPROVAL, "approval_required"),
    ("8h", {"circuit": "half_slot"}, Action.WAIT, "circuit"),
    ("8i", {"observation": "transient_reject"}, Action.RETRY, "proven_no_effect"),
    ("8i", UNKNOWN | {"verdict": "absent_final", "key": "expired"}, Action.RETRY, "proven_no_effect_next_key"),
    ("9a", UNKNOWN, Action.PROBE, "external_outcome_unknown"),
    ("9a", UNKNOWN | {"circuit": "shut"}, Action.WAIT, "circuit"),
    ("9a", UNKNOWN | {"looks": "later"}, Action.WAIT, "look_due"),
    ("9b", UNKNOWN | {"verdict": "processing"}, Action.PROBE, "external_outcome_unknown"),
    ("9c", LIVE | {"circuit": "shut"}, Action.WAIT, "circuit"),
    ("9d", LIVE, Action.RETRY, "same_key"),
    ("9e", UNKNOWN | {"verdict": "absent"}, Action.PROBE, "external_outcome_unknown"),
    ("9f", LIVE | {"gate": "shut"}, Action.ASK_APPROVAL, "approval_required"),
    ("9g", LIVE | {"attempts_left": False}, Action.HUMAN, "retry_exhausted"),
    ("9h", UNKNOWN | NOBODY_TO_ASK, Action.HUMAN, "external_outcome_unknown"),
]


@pytest.mark.parametrize(
    ("rule", "changes", "action", "reason"),
    [pytest.param(*example, id=f"{example[0]}-{example[3]}") for example in EXAMPLES],
)
def test_an_example_of_each_rule(rule: str, changes: dict[str, object], action: Action, reason: str) -> None:
    assert decide(evidence(**changes)) == NextAction(action, rule, reason)


def rule_for(**changes: object) -> str:
    return decide(evidence(**changes)).rule


def test_the_table_has_a_version_that_a_decision_can_record() -> None:
    assert TABLE_VERSION == 3


def test_a_table_without_an_answer_says_so() -> None:
    with pytest.raises(LookupError, match="no rule answers"):
        first_match([], evidence())


def test_a_conflict_outranks_everything_even_for_a_read_or_after_an_undo() -> None:
    assert rule_for(effect="read", observation="ok_valid", verdict="conflict") == "1"
    assert rule_for(verdict="conflict", goal="rollback", undo="done") == "1"


def test_an_undo_under_way_outranks_a_contradiction() -> None:
    assert rule_for(verdict="present", goal="rollback", undo="pending") == "3b"


def test_a_policy_denial_is_a_refusal_that_a_sighting_contradicts() -> None:
    assert rule_for(observation="policy_denied", verdict="processing") == "4a"


def test_a_cancelled_read_is_closed_even_where_its_reply_was_valid() -> None:
    assert rule_for(effect="read", observation="ok_valid", goal="cancel") == "2a"


@pytest.mark.parametrize(("key", "rule"), [("live", "6e"), ("none", "6b"), ("expired", "6b")])
def test_a_rollback_trusts_an_early_sighting_only_under_a_live_key(key: str, rule: str) -> None:
    assert rule_for(observation="unknown", verdict="present", goal="rollback", key=key) == rule


@pytest.mark.parametrize(
    ("verdict", "rule"), [("none", "6e"), ("probe_failed", "6e"), ("absent", "6b"), ("processing", "6b")]
)
def test_a_rollback_takes_a_valid_reply_only_where_nobody_can_be_asked(verdict: str, rule: str) -> None:
    changes = {"observation": "ok_valid", "goal": "rollback", "verdict": verdict}
    assert rule_for(**changes, reconcilable=False) == rule
    assert rule_for(**changes, reconcilable=True) == "6b"


def test_a_lost_reply_is_never_undone_unseen() -> None:
    assert rule_for(observation="unknown", goal="rollback", **NOBODY_TO_ASK) == "9h"


@pytest.mark.parametrize(
    ("proof", "key", "rule"),
    [
        ("reply", "none", "7a"),
        ("look", "none", "7a"),
        ("look_final", "none", "7c"),
        ("look_final", "expired", "7c"),
        ("look_final", "live", "7a"),
    ],
)
def test_an_early_sighting_proves_what_the_contract_says(proof: str, key: str, rule: str) -> None:
    assert rule_for(observation="unknown", verdict="present", proof=proof, key=key) == rule


@pytest.mark.parametrize("verdict", ["absent", "processing"])
def test_a_valid_reply_is_not_proof_beside_a_look_that_disagrees(verdict: str) -> None:
    assert rule_for(observation="ok_valid", verdict=verdict) == "7c"


@pytest.mark.parametrize("proof", ["look", "look_final"])
def test_a_live_key_does_not_turn_a_reply_into_proof(proof: str) -> None:
    assert rule_for(observation="ok_valid", proof=proof, key="live") == "7c"


def test_a_broken_reply_is_never_sent_again_by_itself() -> None:
    assert rule_for(**LIVE | {"observation": "ok_invalid"}) == "9h"


def test_a_broken_reply_that_is_finally_absent_may_be_sent_again() -> None:
    assert rule_for(observation="ok_invalid", verdict="absent_final") == "8i"


def test_a_look_comes_before_a_send_under_the_same_key_unless_it_was_made() -> None:
    asked = {"observation": "unknown", "key": "live"}
    assert rule_for(**asked) == "9a"
    assert rule_for(**asked, verdict="absent") == "9d"
    assert rule_for(**asked, verdict="absent", circuit="half_slot") == "9d"


def test_a_look_that_remains_comes_before_a_person_who_would_have_to_approve() -> None:
    assert rule_for(observation="unknown", key="live", verdict="absent", gate="shut") == "9e"


@pytest.mark.parametrize("circuit", ["closed", "half_slot", "shut"])
def test_approval_and_the_fired_ceiling_do_not_depend_on_the_circuit(circuit: str) -> None:
    assert rule_for(**LIVE, gate="shut", circuit=circuit) == "9f"
    assert rule_for(**LIVE, attempts_left=False, circuit=circuit) == "9g"


@pytest.mark.parametrize("stop", [{"budget_left": False}, {"past_deadline": True}])
def test_an_unknown_write_stays_unknown_when_budget_or_time_is_gone(stop: dict[str, object]) -> None:
    assert rule_for(**LIVE | stop) == "9h"


def test_neither_attempts_nor_approval_leaves_the_effect_the_question() -> None:
    assert rule_for(**LIVE, attempts_left=False, gate="shut") == "9h"


def test_looks_go_on_after_the_deadline_and_without_budget() -> None:
    spent = {"past_deadline": True, "budget_left": False, "attempts_left": False, "gate": "shut"}
    assert decide(evidence(observation="unknown", **spent)).action is Action.PROBE


def test_evidence_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        evidence().gate = "open"  # type: ignore[misc]


def test_evidence_has_exactly_the_fields_of_the_table() -> None:
    assert " ".join(VALUES) == (
        "effect observation key reconcilable verdict looks proof compensable undo goal attempts_left"
        " budget_left past_deadline circuit gate"
    )


@pytest.mark.parametrize("field", VALUES)
@pytest.mark.parametrize("value", [None, 1, 0, 1.0, "true", "", "Read", [], {}, "none "])
def test_a_value_outside_the_table_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(EvidenceError, match=rf"{field} must be \w+") as refusal:
        parse(evidence()._asdict() | {field: value})
    assert refusal.value.field == field


@pytest.mark.parametrize("field", VALUES)
def test_a_missing_field_is_refused_by_name(field: str) -> None:
    rest = {name: value for name, value in evidence()._asdict().items() if name != field}
    with pytest.raises(EvidenceError, match="is missing") as refusal:
        parse(rest)
    assert refusal.value.field == field


def test_a_misspelt_field_is_named_rather_than_the_one_it_replaces() -> None:
    fields = evidence()._asdict()
    fields["circut"] = fields.pop("circuit")
    with pytest.raises(EvidenceError, match="unknown field") as refusal:
        parse(fields)
    assert refusal.value.field == "circut"


@pytest.mark.parametrize("goal", ["forward", "cancel"])
@pytest.mark.parametrize("undo", ["pending", "done", "held"])
def test_an_undo_without_a_rollback_is_refused(goal: str, undo: str) -> None:
    with pytest.raises(EvidenceError, match="rollback") as refusal:
        parse(evidence()._asdict() | {"goal": goal, "undo": undo})
    assert refusal.value.field == "undo"


def test_every_rule_id_is_an_anchor_of_the_page_that_explains_it() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "decisions.md").read_text()
    assert [text[4:] for text in page.splitlines() if text.startswith("### ")] == [rule.id for rule in TABLE]
