"""Dead letters that are whole or not written, and what of them takes a second person (F105, F158, F159)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from recovery.models import DeadLetter
from recovery.work import dead_letters, stops
from recovery.work.decisions import Refused
from runs import wall
from runs.models import Action, Person
from runs.record import Actor
from tests.factories import LETTER, Case, advance_clock, make_person, propose, reply, report, succeed
from tests.failures.conftest import Opener
from tests.failures.outside import DOWN
from tests.recovery.stories import kinds, open_tasks, panel, press, standing, tries

KEYED: Any = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"}


@pytest.fixture
def ada(tenant: Any) -> Person:
    return make_person("ada", tenant, "admin")


def spent(opened: Opener, answer: Any = DOWN, **promises: Any) -> Case:
    """A keyed credit that came back with the same answer until its tries were used."""
    case = opened(**{"idempotency": KEYED, "reconcile": None, **promises})
    succeed(case, "load_invoice")
    for _ in range(3):
        permit = propose(case)
        if permit.answer != "execute":
            break
        report(case, permit, answer)
        advance_clock(seconds=10)
    return case


def letter(case: Case) -> DeadLetter:
    with wall.within(case.tenant.pk):
        return DeadLetter.objects.get(run_id=case.run_id)


# --- whole, or not written ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("request", {}),
        ("request", []),
        ("request", {**LETTER["request"], "arguments_hash": ""}),
        ("request", {"payload": {"amount": 1}}),
        ("attempts", []),
        ("attempts", {}),
        ("completed_effects", {}),
        ("failure_class", ""),
        ("next_action", ""),
        ("identity", ""),
        ("owner_team", ""),
        ("generation", 0),
    ],
)
def test_F158_the_database_takes_no_letter_that_lacks_something(opened: Opener, field: str, value: Any) -> None:
    case = opened()
    propose(case)
    with wall.within(case.tenant.pk):
        action = Action.objects.get(run_id=case.run_id)
        whole = {"tenant": case.tenant, "run_id": case.run_id, "action": action, "identity": "x", **LETTER}
        with pytest.raises(IntegrityError), transaction.atomic():
            DeadLetter.objects.create(**{**whole, field: value})


def test_a_letter_is_owned_by_a_team_or_by_a_person(opened: Opener, omar: Person) -> None:
    case = opened()
    propose(case)
    with wall.within(case.tenant.pk):
        action = Action.objects.get(run_id=case.run_id)
        whole = {"tenant": case.tenant, "run_id": case.run_id, "action": action, "identity": "x", **LETTER}
        assert DeadLetter.objects.create(**{**whole, "owner_team": "", "owner": omar}).owner == omar


def test_F158_a_letter_that_does_not_hold_its_call_is_not_replayed(opened: Opener, omar: Person) -> None:
    case = spent(opened)
    with wall.within(case.tenant.pk):
        kept = letter(case)
        bare = {**kept.request, "arguments_hash": "f" * 64}
        DeadLetter.objects.filter(pk=kept.pk).update(request=bare)
    with pytest.raises(Refused, match="does not hold the call"):
        press("replay", case, omar)
    assert letter(case).state == "recorded"


def test_F158_a_replay_is_authorized_anew(opened: Opener, omar: Person, ada: Person) -> None:
    case = spent(opened)
    stop = stops.set_stop(
        ada, case.tenant.pk, scope="tool", name="apply_credit", mode="halt", reason="Wrong credits."
    )
    with pytest.raises(Refused, match="stop switch"):
        press("replay", case, omar)
    stops.lift_stop(ada, case.tenant.pk, stop.pk, reason="Found.")
    press("replay", case, omar)
    assert letter(case).state == "replay_requested"


def test_F158_a_replay_outside_the_scope_of_its_run_is_refused(opened: Opener, omar: Person) -> None:
    case = spent(opened)
    with wall.within(case.tenant.pk):
        run = case.run
        type(run).objects.filter(pk=run.pk).update(scope={**run.scope, "tools": ["load_invoice"]})
    with pytest.raises(Refused, match="may not do this any more"):
        press("replay", case, omar)


def test_the_letter_says_what_may_be_done_next(opened: Opener) -> None:
    unknown = letter(spent(opened))
    assert unknown.next_action.startswith("Find out whether it took effect.")


def test_the_letter_of_a_call_that_did_nothing_may_simply_be_given_up(opened: Opener) -> None:
    assert letter(spent(opened, reply({}, status=429))).next_action.startswith("Replay this call once more")


# --- a second person ----------------------------------------------------------------------------------------


def over(opened: Opener, ada: Person) -> Case:
    """A credit above the threshold, approved, sent and answered with 429 until its tries were used."""
    case = opened(idempotency=KEYED, reconcile=None, value_threshold_minor=100)
    succeed(case, "load_invoice")
    propose(case)
    press("approve", case, ada)
    for _ in range(3):
        report(case, propose(case), reply({}, status=429))
        advance_clock(seconds=10)
    return case


def test_F159_above_the_threshold_a_replay_takes_two(opened: Opener, omar: Person, ada: Person) -> None:
    case = over(opened, ada)
    assert "once a second person agrees" in panel(case, omar).verb("replay").sentence
    press("replay", case, omar)
    assert (letter(case).state, case.task().state) == ("recorded", "awaiting_approval")
    assert propose(case).answer == "wait"
    with pytest.raises(Refused, match="you asked for it yourself"):
        press("approve", case, omar)
    press("approve", case, ada)
    found = letter(case)
    assert (found.state, found.owner_id) == ("replay_requested", omar.pk)
    permit = propose(case)
    assert (permit.answer, permit.attempt) == ("execute", 4)
    assert permit.action_id == found.identity
    assert kinds(case).count("dead_letter_replayed") == 1


def test_F159_a_wish_about_another_generation_is_worth_nothing(opened: Opener, omar: Person, ada: Person) -> None:
    case = over(opened, ada)
    press("replay", case, omar)
    with wall.within(case.tenant.pk):
        DeadLetter.objects.filter(run_id=case.run_id).update(generation=2)
    with pytest.raises(Refused, match="has changed since"):
        press("approve", case, ada)
    assert letter(case).state == "recorded"


def test_a_declined_replay_permits_nothing(opened: Opener, omar: Person, ada: Person) -> None:
    case = over(opened, ada)
    press("replay", case, omar)
    press("reject", case, ada)
    assert (letter(case).state, case.task().state) == ("recorded", "claimed")
    assert len(tries(case)) == 3


def test_what_may_have_happened_is_discarded_by_two_and_stays_a_question(
    opened: Opener, omar: Person, ada: Person
) -> None:
    case = spent(opened)
    press("discard", case, omar, reason="The customer withdrew.")
    assert (letter(case).state, case.task().state) == ("recorded", "awaiting_approval")
    press("approve", case, ada)
    assert letter(case).state == "discarded"
    assert open_tasks(case) == [("reconcile_write", "external_outcome_unknown")]
    assert standing(case)[0] == "escalated"
    assert case.action().state == "held"
    assert propose(case).answer == "wait"


def test_what_did_nothing_is_discarded_by_one(opened: Opener, omar: Person) -> None:
    case = spent(opened, reply({}, status=429))
    press("discard", case, omar)
    assert letter(case).state == "discarded"


def test_the_two_functions_refuse_what_the_buttons_refuse(opened: Opener, omar: Person) -> None:
    case = spent(opened)
    with wall.within(case.tenant.pk, by="person"), pytest.raises(dead_letters.NotNow, match="takes a second person"):
        dead_letters.discard(letter(case), by=omar, actor=Actor("person", str(uuid.uuid4())), reason="x")
