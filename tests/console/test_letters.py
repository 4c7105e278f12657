"""The Dead letters page: open ones and ended ones, bounded, and never a neighbour's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.builders import letters
from tests import factories
from tests.console.conftest import House
from tests.console.desk import address, decided, press, said, sheet
from tests.console.test_task import plain, text
from tests.factories import Case, advance_clock, propose, reply, report
from tests.failures.outside import DOWN

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]


def spent(house: House, answer: Any = None) -> Case:
    """A credit that was answered with 503 three times: whether it happened is unknown."""
    case = factories.open_run(house.agent)
    for _ in range(3):
        report(case, propose(case), answer or DOWN)
        advance_clock(seconds=10)
    return case


@pytest.fixture
def letter(house: House) -> Case:
    """A credit that was refused three times, each time for a passing reason: it is certain that nothing happened."""
    return spent(house, reply({"error": "slow down"}, status=429))


def test_an_open_letter_stands_with_its_owner_its_failure_and_what_may_be_done(letter: Case, sign_in: SignIn) -> None:
    shown = plain(text(sign_in("omar"), "/letters/"))
    assert "apply_credit" in shown
    assert "Recorded generation 1" in shown
    assert "3 tries" in shown
    assert "billing-support" in shown
    assert "Replay this call once more under its own identity" in shown
    assert f"Task T-{letter.task().number}" in shown
    assert "Open 1" in shown


def test_an_ended_letter_is_not_lost(letter: Case, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    assert press(omar, letter, "discard").status_code == 303
    assert "No dead letter is open." in plain(text(omar, "/letters/"))
    ended = plain(text(omar, "/letters/?view=ended"))
    assert "Discarded" in ended
    assert "The run" in ended


def test_a_neighbours_letter_does_not_exist(letter: Case, sign_in: SignIn) -> None:
    assert "No dead letter is open." in plain(text(sign_in("charlie"), "/letters/"))


def test_the_list_is_bounded_and_goes_on(
    house: House, letter: Case, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters, "PAGE", 1)
    spent(house, reply({"error": "slow down"}, status=429))
    omar = sign_in("omar")
    html = text(omar, "/letters/")
    assert html.count("<tr data-row") == 1
    older = html[html.index("?before=") :].split('"')[0]
    assert text(omar, f"/letters/{older}").count("<tr data-row") == 1


def test_more_letters_cost_no_more_statements(house: House, letter: Case, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    omar.get("/letters/")
    with CaptureQueriesContext(
        connection,
    ) as one:
        omar.get("/letters/")
    spent(house, reply({"error": "slow down"}, status=429))
    with CaptureQueriesContext(connection) as two:
        omar.get("/letters/")
    assert len(two) == len(one)


@pytest.mark.parametrize("address", ["/letters/?view=all", "/letters/?before=x"])
def test_an_address_that_names_nothing_is_a_404(house: House, sign_in: SignIn, address: str) -> None:
    assert sign_in("omar").get(address).status_code == 404


def test_F159_two_people_who_press_replay_permit_one_more_try(letter: Case, sign_in: SignIn) -> None:
    omar, ada = sign_in("omar"), sign_in("ada")
    forms = [sheet(person, letter, "replay") for person in (omar, ada)]
    first, second = [
        person.post(address(letter, "replay"), form) for person, form in zip((omar, ada), forms, strict=True)
    ]
    assert (first.status_code, second.status_code) == (303, 409)
    assert "Your click changed and sent nothing" in said(second)
    assert len(decided(letter, verb="replay")) == 1
    report(letter, propose(letter), reply({"error": "slow down"}, status=429))
    assert propose(letter).answer == "wait"
