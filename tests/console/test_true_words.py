"""The pages say what happened, and not what usually happens."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from steadyhand.contract import Observation

from recovery.rules import paging
from tests import factories
from tests.console.conftest import House
from tests.console.desk import address as sheet_of
from tests.console.desk import press
from tests.console.desk import said as read
from tests.console.test_task import address, plain, text
from tests.factories import Case, billing_manifest, propose, report

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]
BUG = Observation(kind="exception", exc_type="KeyError", message="'id'")


@pytest.fixture
def read_letter(house: House) -> Case:
    """A read whose tool broke three times: twice with an answer of the provider, once in its own code."""
    case = factories.open_run(house.agent)
    for came in (factories.reply({"error": "down"}, status=500), factories.reply({}, status=500), BUG):
        report(case, propose(case, "load_invoice"), came, tool="load_invoice")
        factories.advance_clock(minutes=5)
    return case


def test_F105_the_letter_of_a_read_names_each_failure_and_calls_trying_again_safe(
    read_letter: Case, sign_in: SignIn
) -> None:
    said = plain(text(sign_in("omar"), address(read_letter))).replace("&#x27;", "'")
    assert "imed out" not in said
    assert "500 the provider failed" in said
    assert "The tool's own code raised KeyError" in said
    assert "It only reads, so it changed nothing." in said
    assert (
        "It only reads, so nothing can happen twice, but all its tries are used; a replay gives it one more." in said
    )
    assert "The provider refused it" not in said


def test_the_second_word_on_a_statement_sends_no_call_and_its_sheet_says_so(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    press(sign_in("alice"), case, "attest", outcome="present", reference="cr_1")
    shown = read(sign_in("ada").get(sheet_of(case, "approve")))
    assert "Confirm the statement" in shown
    assert "It counts as evidence" in shown
    assert "The call may be sent" not in shown
    assert "Approve this call now" not in shown


def test_a_sheet_names_no_threshold_that_nobody_declared(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    shown = read(sign_in("ada").get(sheet_of(case, "attest")))
    assert "below the threshold" not in shown
    assert "declares no threshold" in shown


def test_the_queue_offers_no_check_where_no_look_up_is_declared(house: House, sign_in: SignIn) -> None:
    made = billing_manifest()
    credit = next(tool for tool in made["tools"] if tool["name"] == "apply_credit")
    credit.pop("reconcile")
    factories.register(house.agent, made)
    case = factories.unknown_credit(house.agent)
    queue = plain(text(sign_in("omar"), "/"))
    assert "Check first" not in queue
    assert "Check what happened" not in queue
    assert "Unknown No 1 task" in queue
    assert "no look-up is declared" in plain(text(sign_in("omar"), address(case)))


def test_an_empty_tab_says_what_it_would_hold(house: House, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    assert "You hold no task." in text(omar, "/?view=mine")
    assert "No task is past its time." in text(omar, "/?view=breaching")


def test_a_page_does_not_speak_of_look_ups_that_nobody_declared() -> None:
    why = paging.pages(paging.Question("external_outcome_unknown", "write", True, False, False, False))
    assert why == "A write may or may not have happened, and nothing will tell by itself."
