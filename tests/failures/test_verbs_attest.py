"""What happened, vouched for by two people with the provider's reference (F130, F131, ruling 14)."""

from __future__ import annotations

import pytest

from recovery.work import decisions
from recovery.work.decisions import Overtaken, Refused, Unusable
from runs import wall
from runs.models import Effect, Person
from tests.factories import (
    RESULTS,
    Case,
    advance_clock,
    lose_the_reply,
    make_person,
    propose,
    reply,
    report,
    turn,
)
from tests.failures.conftest import Opener
from tests.recovery.stories import (
    ABSENT,
    Looks,
    effects,
    evidence,
    kinds,
    look,
    open_tasks,
    order,
    present,
    press,
    standing,
    tries,
)

HAPPENED = {"outcome": "present", "reference": "cr_77"}
DID_NOT = {"outcome": "absent", "reference": "case 4711"}


@pytest.fixture
def lost(opened: Opener) -> Case:
    case = opened(reconcile=None)
    turn(case)
    lose_the_reply(case)
    return case


@pytest.fixture
def ada(lost: Case) -> Person:
    return make_person("ada", lost.tenant, "admin")


def test_F130_one_word_counts_for_nothing_until_a_second_person_confirms_it(
    lost: Case, alice: Person, omar: Person
) -> None:
    press("attest", lost, alice, **HAPPENED)
    assert (lost.task().state, evidence(lost), effects(lost)) == ("awaiting_approval", [], [])
    assert propose(lost).answer == "wait"
    press("approve", lost, omar)
    with wall.within(lost.tenant.pk):
        effect = Effect.objects.get(run_id=lost.run_id)
    assert (effect.external_id, effect.proven_by) == ("cr_77", "person")
    assert (lost.action().state, open_tasks(lost), standing(lost)[0]) == ("succeeded", [], "executing")
    assert len(tries(lost)) == 1


def test_F130_whoever_attests_cannot_confirm(opened: Opener, omar: Person) -> None:
    case = over_the_threshold(opened)
    press("attest", case, omar, **HAPPENED)
    with pytest.raises(Refused, match="you attested it yourself"):
        press("approve", case, omar)
    assert effects(case) == []


def test_ruling_14_below_the_threshold_the_word_of_one_who_may_approve_counts_at_once(
    lost: Case, omar: Person
) -> None:
    press("attest", lost, omar, **HAPPENED)
    with wall.within(lost.tenant.pk):
        effect = Effect.objects.get(run_id=lost.run_id)
    assert (effect.external_id, effect.proven_by) == ("cr_77", "person")
    assert (lost.action().state, open_tasks(lost), standing(lost)[0]) == ("succeeded", [], "executing")


def test_F130_a_word_without_a_reference_is_none(lost: Case, alice: Person) -> None:
    for outcome, reference, field in (("present", "  ", "reference"), ("maybe", "cr_1", "outcome")):
        with pytest.raises(Unusable) as wrong:
            press("attest", lost, alice, outcome=outcome, reference=reference)
        assert wrong.value.field == field
    assert lost.task().state == "open"


def over_the_threshold(opened: Opener) -> Case:
    """A credit that two people had to agree to, sent, and lost sight of."""
    case = opened(reconcile=None, value_threshold=11_999)
    propose(case)
    press("approve", case, make_person("ada", case.tenant, "admin"))
    lose_the_reply(case)
    return case


def test_ruling_14_one_word_that_nothing_happened_frees_the_call_for_whoever_attested(
    lost: Case, omar: Person
) -> None:
    press("claim", lost, omar)
    press("attest", lost, omar, **DID_NOT)
    assert evidence(lost) == ["absent_final"]
    assert standing(lost)[2] == "external_outcome_resolved"
    assert propose(lost).answer == "wait"
    press("retry", lost, omar)
    again = propose(lost)
    assert (again.answer, again.attempt) == ("execute", 2)


def test_ruling_14_two_words_that_nothing_happened_free_the_call_for_whoever_attested(
    lost: Case, alice: Person, omar: Person, ada: Person
) -> None:
    press("attest", lost, alice, **DID_NOT)
    press("approve", lost, ada)
    assert evidence(lost) == ["absent_final"]
    assert standing(lost)[2] == "external_outcome_resolved"
    assert propose(lost).answer == "wait"
    press("release", lost, alice)
    press("retry", lost, omar)
    again = propose(lost)
    assert (again.answer, again.attempt) == ("execute", 2)


def test_a_statement_that_is_not_confirmed_counts_for_nothing(lost: Case, alice: Person, omar: Person) -> None:
    press("attest", lost, alice, **HAPPENED)
    press("reject", lost, omar)
    assert (lost.task().state, lost.task().claimed_by_id, evidence(lost)) == ("claimed", alice.pk, [])
    press("attest", lost, alice, **DID_NOT)


def test_F117_the_second_of_two_statements_is_told_of_the_first(lost: Case, alice: Person, omar: Person) -> None:
    forms = [order(lost, alice, **HAPPENED), order(lost, omar, **DID_NOT)]
    decisions.attest(forms[0])
    with pytest.raises(Overtaken, match="Alice chose “Attest what happened”"):
        decisions.attest(forms[1])
    with pytest.raises(Refused, match="waits for a second person"):
        press("attest", lost, omar, **DID_NOT)
    with pytest.raises(Refused, match="a second person confirms or rejects it"):
        press("claim", lost, omar)


def test_a_look_that_finds_it_settles_it_while_the_statement_waits(
    opened: Opener, looks: Looks, alice: Person
) -> None:
    case = opened()
    lose_the_reply(case)
    press("attest", case, alice, **DID_NOT)
    looks.say(present("cr_9"))
    advance_clock(seconds=6)
    look(case)
    assert (effects(case), open_tasks(case)) == (["apply_credit"], [])


def test_nothing_is_sent_while_a_statement_waits(opened: Opener, looks: Looks, alice: Person) -> None:
    case = opened(in_flight_seconds=20, lag_seconds=5, idempotency=KEY)
    lose_the_reply(case)
    press("attest", case, alice, **HAPPENED)
    advance_clock(minutes=5)
    assert propose(case).answer == "wait"
    assert len(tries(case)) == 1


KEY = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": 86_400, "compares_arguments": True}


def test_F131_a_late_reply_that_contradicts_two_words_opens_a_task_and_keeps_the_history(
    lost: Case, omar: Person, alice: Person
) -> None:
    press("attest", lost, alice, **DID_NOT)
    press("approve", lost, omar)
    report_late(lost)
    assert ("decide_next", "conflicting_evidence") in open_tasks(lost)
    assert evidence(lost)[0] == "absent_final"
    assert {"verb_attest", "verb_approve"} <= set(kinds(lost))


def report_late(case: Case) -> None:
    attempt = tries(case)[-1]
    permit = propose(case).model_copy(update={"attempt_id": str(attempt.pk), "fence": attempt.fence})
    report(case, permit, reply(RESULTS["apply_credit"]), tool="apply_credit")


def test_a_call_that_surely_did_nothing_is_not_attested(opened: Opener, omar: Person, looks: Looks) -> None:
    case = opened(in_flight_seconds=20, lag_seconds=5)
    lose_the_reply(case)
    press("claim", case, omar)
    looks.say(ABSENT)
    advance_clock(seconds=25)
    look(case)
    with pytest.raises(Refused, match="certain already that nothing happened"):
        press("attest", case, omar, **HAPPENED)


def test_over_the_threshold_the_second_person_frees_one_more_try(opened: Opener, omar: Person) -> None:
    """Above the threshold the one who holds the task may not decide alone that a proven nothing is sent again."""
    case = opened(reconcile=None, value_threshold=11_999)
    ada, mia = make_person("ada", case.tenant, "admin"), make_person("mia", case.tenant, "oncall")
    propose(case)
    press("approve", case, ada)
    lose_the_reply(case)
    press("attest", case, omar, **DID_NOT)
    press("approve", case, ada)
    with pytest.raises(Refused, match="a second person has to approve it"):
        press("retry", case, omar)
    with pytest.raises(Refused, match="you act on this run yourself"):
        press("approve", case, omar)
    assert propose(case).answer == "wait"
    press("approve", case, mia)
    assert (propose(case).answer, len(tries(case))) == ("execute", 2)
