"""The plan of a rollback as a document of its own (UX: compensation)."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from tests import factories
from tests.console.conftest import House
from tests.console.desk import press
from tests.console.test_plan import FEE, RESULTS
from tests.console.test_task import plain, text
from tests.factories import Case, finish, propose, reply, report
from tests.failures.outside import REFUSED, Sends, script_sends, stand_manifest
from tests.recovery.stories import look

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> Sends:
    return script_sends(monkeypatch)


@pytest.fixture
def booked(house: House) -> Case:
    """Reserved and paid for, with the payment's undo at a price; what the run still needed is missing."""
    factories.register(house.agent, stand_manifest(required_effects=["furnish"], pay={"compensate": FEE}))
    case = factories.open_run(house.agent, scope={})
    for tool, (asked, answer) in RESULTS.items():
        report(case, propose(case, tool, asked), reply(answer, status=201), tool=tool)
    finish(case)
    return case


def document(client: Client, case: Case) -> str:
    return plain(text(client, f"/runs/{case.run_id}/plan/"))


def test_before_anything_is_ordered_it_says_what_would_be_undone_last_effect_first(
    booked: Case, sign_in: SignIn
) -> None:
    page = document(sign_in("omar"), booked)
    assert "Nothing is being undone. This is what would be" in page
    assert page.index("1 pay") < page.index("2 reserve")
    assert "50.00 EUR 2.50 EUR" in page
    assert "Reversible" in page
    assert "Nobody has decided anything about it." in page
    assert "Undo what was done" in page, "the verb leads to the one sheet that orders it"


def test_it_says_who_ordered_which_plan_and_where_it_stopped_with_the_exact_rest(
    booked: Case, sends: Sends, sign_in: SignIn
) -> None:
    omar = sign_in("omar")
    sends.say(REFUSED)
    press(omar, booked, "compensate", reason="The customer withdrew.")
    for _ in range(2):
        look(booked)
    page = document(omar, booked)
    assert "This run is taken back." in page
    assert re.search(r"Omar Undo what was done \w{4}…\w{4} the plan as it is now .*The customer withdrew", page)
    assert "Remaining pay, reserve" in page
    assert re.search(r"refund Refused", page)
    assert "Partly compensated" not in page


def test_an_effect_that_nobody_can_undo_says_so(house: House, sign_in: SignIn) -> None:
    factories.register(house.agent, stand_manifest(required_effects=["furnish"], pay={"compensate": None}))
    case = factories.open_run(house.agent, scope={})
    for tool, (asked, answer) in RESULTS.items():
        report(case, propose(case, tool, asked), reply(answer, status=201), tool=tool)
    finish(case)
    page = document(sign_in("bob"), case)
    assert "No undo" in page
    assert "No undo is declared for it." in page


def test_an_unknown_write_stands_in_it_as_one_to_check_first(house: House, sign_in: SignIn) -> None:
    page = document(sign_in("bob"), factories.unknown_credit(house.agent))
    assert "Check first" in page
    assert "It may have happened." in page


def test_a_run_without_writes_has_an_empty_plan_that_says_what_one_is(house: House, sign_in: SignIn) -> None:
    page = document(sign_in("bob"), factories.open_run(house.agent))
    assert "Nothing is to be undone." in page
    assert "Nobody has decided anything about it." in page


def test_the_live_part_answers_304_until_something_happens(booked: Case, sends: Sends, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    etag = re.search(r'data-etag="([^"]+)"', text(omar, f"/runs/{booked.run_id}/plan/"))
    assert etag
    known = {"If-None-Match": etag[1].replace("&quot;", '"')}
    assert omar.get(f"/runs/{booked.run_id}/plan/live/", headers=known).status_code == 304
    press(omar, booked, "compensate")
    answer = omar.get(f"/runs/{booked.run_id}/plan/live/", headers=known)
    assert answer.status_code == 200
    assert "This run is taken back." in answer.content.decode()


@pytest.mark.parametrize("part", ["plan/", "plan/live/"])
def test_a_plan_of_another_tenant_is_not_found(booked: Case, sign_in: SignIn, part: str) -> None:
    assert sign_in("charlie").get(f"/runs/{booked.run_id}/{part}").status_code == 404
