"""A run that was taken back says so: its badge, its effects, and what its customer was told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from steadyhand.contract import Rollback

from recovery import intake
from tests import factories
from tests.console.conftest import House
from tests.console.test_task import plain, text
from tests.factories import Case, advance_clock, propose, reply, report
from tests.failures.outside import script_sends, stand_manifest
from tests.recovery.stories import look

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]
RESULTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "reserve": ({"stand": "A7"}, {"reservation_id": "rs_1"}),
    "pay": ({"amount_minor": 5000}, {"payment_id": "p_50"}),
}


@pytest.fixture
def undone(house: House, monkeypatch: pytest.MonkeyPatch) -> Case:
    """Reserved and paid for, and both taken back."""
    sends = script_sends(monkeypatch)
    factories.register(house.agent, stand_manifest())
    case = factories.open_run(house.agent, scope={})
    for tool, (asked, answer) in RESULTS.items():
        report(case, propose(case, tool, asked), reply(answer, status=201), tool=tool)
    sends.say(reply({"undo_id": "un_1"}))
    intake.rollback(case.agent.who, case.run_id, Rollback(reason="No fair."), request_id="t")
    for _ in range(4):
        look(case)
    return case


def test_a_run_that_was_taken_back_is_rolled_back_and_not_failed(undone: Case, sign_in: SignIn) -> None:
    assert undone.run.state == "failed"
    advance_clock(minutes=5)
    said = plain(text(sign_in("omar"), f"/runs/{undone.run_id}/"))
    assert "Rolled back" in said
    assert "Effects 0 standing, 2 undone" in said
    assert "What had been done was taken back." in said
    assert "We could not do this" not in said
    assert "now 0" not in said


def test_the_list_says_the_same(undone: Case, sign_in: SignIn) -> None:
    said = plain(text(sign_in("omar"), "/runs/"))
    assert "Rolled back" in said
    assert "0 standing, 2 undone" in said


def test_the_record_says_it_to_whoever_reads_it(undone: Case) -> None:
    run = undone.run
    assert run.customer_message == "What had been done was taken back."
    assert run.operator_detail == "Rolled back"
