"""The sheets of the verbs that spend a person's authority: approve, reject, top up, attest, replay, discard, undo."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from tests import factories
from tests.console.conftest import House
from tests.console.desk import address, decided, press, refusals, said, sheet
from tests.factories import Case, billing_manifest

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]


def manifest(**promises: object) -> dict[str, object]:
    made = billing_manifest()
    next(tool for tool in made["tools"] if tool["name"] == "apply_credit").update(promises)
    return made


@pytest.fixture
def waits(house: House) -> Case:
    """A credit that waits for an approval."""
    review = {"summary": "A credit to a customer.", "context": ["invoice"], "reject_codes": ["wrong_account"]}
    factories.register(house.agent, manifest(requires_approval=True, review=review))
    case = factories.open_run(house.agent, requester="Jo Tanaka")
    factories.propose(case)
    return case


@pytest.fixture
def spent(house: House) -> Case:
    """A run that used all its turns."""
    factories.register(house.agent, billing_manifest(budgets={"max_turns": 4}))
    case = factories.open_run(house.agent)
    for _ in range(5):
        factories.turn(case)
    return case


@pytest.fixture
def letter(house: House) -> Case:
    """A credit that was refused for now three times: nothing happened, and its tries are used."""
    case = factories.open_run(house.agent)
    for _ in range(3):
        factories.rate_limit(case, "apply_credit", retry_after=0)
        factories.advance_clock(minutes=1)
    return case


# --- every one of them ----------------------------------------------------------------------------------------

NEW = ("approve", "reject", "replay", "discard", "top_up", "attest", "compensate")
TYPED = {"amount": "1", "outcome": "present", "reference": "cr_1"}


@pytest.mark.parametrize("verb", NEW)
def test_F123_a_verb_that_a_reader_was_never_offered_is_refused_and_audited(
    waits: Case, sign_in: SignIn, verb: str
) -> None:
    marks = sheet(sign_in("omar"), waits, "approve") | TYPED | {"reason_code": "other", "reason": "Because."}
    for name in ("bob", "nia"):
        response = sign_in(name).post(address(waits, verb), marks)
        assert response.status_code == 403
        assert "Blocked: your role does not include this. Nothing was sent." in said(response)
    assert [mark.data["verb"] for mark in refusals(waits)] == [verb, verb]
    assert decided(waits) == []


@pytest.mark.parametrize("verb", NEW)
def test_F122_a_foreign_task_and_a_missing_one_answer_alike(waits: Case, sign_in: SignIn, verb: str) -> None:
    marks = sheet(sign_in("omar"), waits, "approve") | TYPED | {"reason_code": "other", "reason": "Because."}
    charlie, bodies = sign_in("charlie"), set()
    for url in (address(waits, verb), f"/tasks/0196f5b0-0000-7000-8000-000000000009/{address(waits, verb)[44:]}"):
        for response in (charlie.post(url, marks), charlie.get(url)):
            assert response.status_code == 404
            bodies.add(re.sub(r'nonce="[^"]+"', "", response.content.decode()))
    assert len(bodies) == 1
    assert decided(waits) == []


@pytest.mark.parametrize("verb", NEW)
def test_nobody_acts_without_signing_in_or_from_another_site(house: House, waits: Case, verb: str) -> None:
    assert Client().post(address(waits, verb), {}).status_code == 302
    omar = house.browser("omar")
    omar.handler.enforce_csrf_checks = True
    assert omar.post(address(waits, verb), {"key": "a" * 32, "version": 0}).status_code == 403
    assert decided(waits) == []


@pytest.mark.parametrize("verb", NEW)
def test_a_sheet_is_only_read_and_a_broken_form_changes_nothing(waits: Case, sign_in: SignIn, verb: str) -> None:
    omar, before = sign_in("omar"), (waits.run.version, waits.task().version)
    page = omar.get(address(waits, verb))
    assert page.status_code == 200
    steps = ["What will be sent", "Facts relied on", "Worst case", "Who else must agree", "Reason", "Key"]
    assert [said(page).index(step) for step in steps] == sorted(said(page).index(step) for step in steps)
    assert omar.post(address(waits, verb), {"key": "x"}).status_code == 400
    assert (waits.run.version, waits.task().version) == before


# --- approvals ------------------------------------------------------------------------------------------------


def test_the_task_shows_exactly_what_would_be_sent_and_who_may_decide(waits: Case, sign_in: SignIn) -> None:
    page = said(sign_in("omar").get(address(waits)))
    for part in ("Waits for an approval", "acct_8841", "120.00 EUR", "Jo Tanaka", "A credit to a customer."):
        assert part in page
    assert "On-call and admins of Nordlicht Energie, but not whoever asked for it" in page
    assert re.search(r"Until \d\d:\d\d:\d\d ; then it is void", page)
    assert "No action is recommended." in page


def test_an_approval_is_one_sheet_and_sends_nothing_by_itself(waits: Case, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    page = said(omar.get(address(waits, "approve")))
    assert waits.action().action_id in page
    assert "You are the second person" in page
    assert press(omar, waits, "approve").status_code == 303
    assert waits.action().state == "approved"
    assert "Recorded: approve." in said(omar.get(address(waits)))
    assert factories.propose(waits).answer == "execute"


def test_F116_a_second_click_on_approve_gets_the_first_result(waits: Case, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    marks = sheet(omar, waits, "approve")
    assert [omar.post(address(waits, "approve"), marks).status_code for _ in range(3)] == [303] * 3
    assert len(decided(waits, verb="approve")) == 1


def test_F117_the_second_approver_reads_who_decided(waits: Case, sign_in: SignIn) -> None:
    omar, ada = sign_in("omar"), sign_in("ada")
    marks = sheet(ada, waits, "approve")
    press(omar, waits, "approve")
    response = ada.post(address(waits, "approve"), marks)
    assert response.status_code == 409
    assert re.search(r"already decided: Omar chose “Approve” at \d\d:\d\d:\d\d UTC", said(response))
    assert [one.actor for one in refusals(waits)] == ["Ada"]
    assert len(decided(waits, verb="approve")) == 1


def test_a_rejection_may_carry_a_code_that_the_tool_declares(waits: Case, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    assert "Told to the agent" in said(omar.get(address(waits, "reject")))
    wrong = press(omar, waits, "reject", code="because")
    assert wrong.status_code == 422
    assert "Use one of wrong_account." in said(wrong)
    assert press(omar, waits, "reject", code="wrong_account").status_code == 303
    assert (waits.action().state, waits.action().reason_code) == ("rejected", "policy_denied")


def test_F124_the_requester_reads_why_the_button_is_blocked(house: House, sign_in: SignIn) -> None:
    factories.register(house.agent, manifest(requires_approval=True))
    case = factories.open_run(house.agent, requester="omar@people.example")
    factories.propose(case)
    omar = sign_in("omar")
    assert "Blocked: you asked for this run; somebody else approves it." in said(omar.get(address(case)))
    response = omar.post(address(case, "approve"), sheet(omar, case, "approve"))
    assert response.status_code == 403
    assert case.action().state == "awaiting_approval"


# --- budgets --------------------------------------------------------------------------------------------------


def test_a_top_up_is_bounded_on_the_sheet_and_done_once(spent: Case, sign_in: SignIn) -> None:
    alice = sign_in("alice")
    assert "Raises the ceiling of 4 turns once, by at most 2." in said(alice.get(address(spent)))
    for amount, words in (("3", "Add 1 to 2 turns."), ("", "Say how much to add."), ("x", "Write a whole number.")):
        response = press(alice, spent, "top_up", amount=amount, reason="My words")
        assert response.status_code == 422
        assert words in said(response)
        assert "My words</textarea>" in response.content.decode()
    assert spent.run.max_turns == 4
    assert press(alice, spent, "top_up").status_code == 303
    assert (spent.run.max_turns, spent.run.state) == (6, "executing")
    assert "Added 2 turns." in said(alice.get(address(spent)))


# --- statements -----------------------------------------------------------------------------------------------


def test_F130_an_attestation_wants_a_reference_and_a_second_person(house: House, sign_in: SignIn) -> None:
    case, alice, omar = factories.unknown_credit(house.agent), sign_in("alice"), sign_in("omar")
    bare = press(alice, case, "attest", outcome="present", reference=" ")
    assert bare.status_code == 422
    assert "A word without the provider's reference proves nothing." in said(bare)
    assert "Say whether it happened or not." in said(press(alice, case, "attest", reference="cr_7"))
    assert press(alice, case, "attest", outcome="present", reference="cr_7").status_code == 303
    page = said(omar.get(address(case)))
    assert "Alice attests that it happened (reference cr_7)." in page
    assert "It counts for nothing until a second person confirms it." in page
    assert alice.post(address(case, "approve"), sheet(omar, case, "approve")).status_code == 403
    assert press(omar, case, "approve").status_code == 303
    assert case.action().state == "succeeded"
    assert "A person's attestation" in said(omar.get(address(case)))


# --- dead letters ---------------------------------------------------------------------------------------------


def test_a_dead_letter_shows_its_history_and_what_is_left(letter: Case, sign_in: SignIn) -> None:
    page = said(sign_in("omar").get(address(letter)))
    for part in ("Dead letter", "Recorded", "Generation 1", "billing-support", "Every try", "provider_rate_limited"):
        assert part in page
    assert re.search(r"3 \d\d:\d\d:\d\d 429 rate limited \(provider_rate_limited\)", page)


def test_a_replay_permits_one_more_try_and_a_second_click_none(letter: Case, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    marks = sheet(omar, letter, "replay")
    assert [omar.post(address(letter, "replay"), marks).status_code for _ in range(2)] == [303, 303]
    assert len(decided(letter, verb="replay")) == 1
    permit = factories.propose(letter, "apply_credit")
    assert (permit.answer, permit.attempt) == ("execute", 4)
    busy = factories.reply({"error": "busy"}, status=429, headers={"retry-after": "0"})
    factories.report(letter, permit, busy)
    factories.advance_clock(minutes=1)
    assert factories.propose(letter, "apply_credit").answer == "wait"
    assert "Generation 2" in said(omar.get(address(letter)))


def test_a_discarded_letter_is_over_and_the_run_goes_on(letter: Case, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    assert press(omar, letter, "discard", reason_code="other", reason=" ").status_code == 422
    assert press(omar, letter, "discard").status_code == 303
    assert (letter.action().state, letter.task().state) == ("void", "resolved")
    assert factories.propose(letter, "apply_credit").answer == "deny"


def test_support_may_not_replay_or_discard(letter: Case, sign_in: SignIn) -> None:
    for verb in ("replay", "discard"):
        response = sign_in("alice").get(address(letter, verb))
        assert response.status_code == 403
        assert "your role does not include this" in said(response)


# --- undoing --------------------------------------------------------------------------------------------------


def test_an_undo_is_blocked_while_a_write_is_unknown(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    page = said(sign_in("alice").get(address(case)))
    assert "Blocked: a write may have happened; it is settled first, and then undone." in page


def test_the_sheet_of_an_undo_lists_what_is_taken_back(house: House, sign_in: SignIn) -> None:
    case, alice = factories.open_run(house.agent), sign_in("alice")
    factories.succeed(case)
    factories.finish(case)
    page = said(alice.get(address(case, "compensate")))
    assert re.search(
        r"apply_credit void_credit cr_1, 120.00 EUR, until .*, The manifest does not say how to send", page
    )
    assert press(alice, case, "compensate").status_code == 303
    assert case.run.goal == "rollback"
