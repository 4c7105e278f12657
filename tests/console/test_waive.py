"""Accepting what stays, in the browser: who may, on which sheet, and that a whole undo takes two people."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from tests.console.desk import address, decided, press, said
from tests.console.test_plan import booked as booked
from tests.console.test_plan import sends as sends
from tests.factories import Case
from tests.failures.outside import REFUSED, Sends
from tests.recovery.stories import look

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]


@pytest.fixture
def stopped(booked: Case, sends: Sends, sign_in: SignIn) -> Case:
    """A rollback that stopped at an undo which its provider refused."""
    sends.say(REFUSED)
    press(sign_in("omar"), booked, "compensate")
    for _ in range(2):
        look(booked)
    return booked


def test_the_sheet_says_what_it_comes_to_and_that_a_second_person_is_needed(stopped: Case, sign_in: SignIn) -> None:
    page = said(sign_in("omar").get(address(stopped, "waive")))
    assert "A second person. Nothing is done before that." in page
    assert "Nothing leaves Steadyhand." in page


def test_a_whole_undo_is_given_up_by_two_and_nothing_before(stopped: Case, sign_in: SignIn) -> None:
    omar, ada = sign_in("omar"), sign_in("ada")
    assert press(omar, stopped, "waive", reason="They keep it.").status_code == 303
    assert stopped.task().state == "awaiting_approval"
    assert "asks to give up the undo of pay" in said(ada.get(address(stopped)))
    own = omar.post(address(stopped, "approve"), {"key": "0" * 32, "version": "1", "reason_code": "checked"})
    assert own.status_code in (403, 409)
    assert press(ada, stopped, "approve").status_code == 303
    assert [one.by.name for one in decided(stopped, verb="approve") if one.by] == ["Ada"]
    assert stopped.task().state == "resolved"


def test_the_support_desk_may_not_waive(stopped: Case, sign_in: SignIn) -> None:
    answer = sign_in("alice").get(address(stopped, "waive"))
    assert answer.status_code == 403
    assert "your role does not include this" in said(answer)


def test_a_rollback_is_taken_up_again_from_its_page(stopped: Case, sends: Sends, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    assert "It is ordered anew, and then the other 1" in said(omar.get(address(stopped)))
    assert press(omar, stopped, "resume").status_code == 303
    look(stopped)
    assert sends.tools == ["refund", "refund"]
