"""The plan of a rollback on its pages and on the sheet that orders it (UX: compensation, F140, F142)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from recovery.models import HumanTask
from runs import wall
from runs.querysets import read_clock
from tests import factories
from tests.console.conftest import House
from tests.console.desk import address, decided, press, said, sheet
from tests.console.test_task import plain, text
from tests.factories import Case, finish, propose, reply, report, timed_out
from tests.failures.outside import LOST, REFUSED, Sends, script_sends, stand_manifest
from tests.recovery.stories import look

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]
RESULTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "reserve": ({"stand": "A7"}, {"reservation_id": "rs_1"}),
    "pay": ({"amount_minor": 5000}, {"payment_id": "p_50"}),
}
FEE = {"tool": "refund", "arguments": {"payment": "payment_id"}, "cost_minor": 250}


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> Sends:
    return script_sends(monkeypatch)


@pytest.fixture
def booked(house: House) -> Case:
    """Reserved and paid for; the furniture that the run needed is missing, so a person is asked."""
    factories.register(house.agent, stand_manifest(required_effects=["furnish"], pay={"compensate": FEE}))
    case = factories.open_run(house.agent, scope={})
    for tool, (asked, answer) in RESULTS.items():
        report(case, propose(case, tool, asked), reply(answer, status=201), tool=tool)
    finish(case)
    return case


def test_the_sheet_shows_the_plan_before_anything_is_ordered(booked: Case, sends: Sends, sign_in: SignIn) -> None:
    page = said(sign_in("omar").get(address(booked, "compensate")))
    assert page.index("pay refund") < page.index("reserve release")
    assert "50.00 EUR, costs 2.50 EUR" in page
    assert "Nobody. This workflow declares no threshold" in page
    assert (sends.sent, booked.run.goal) == ([], "forward")


@pytest.mark.parametrize(
    ("stuck", "said_of_it"),
    [
        ("pay", "It stops at pay, before anything is undone: two people have to accept what stays first; "
                "then 1 undo more can be begun."),
        ("reserve", "It stops at reserve, after 1 undo: two people have to accept what stays first."),
    ],
)  # fmt: skip
def test_the_sheet_says_where_its_plan_stops(house: House, sign_in: SignIn, stuck: str, said_of_it: str) -> None:
    made = stand_manifest(required_effects=["furnish"])
    next(tool for tool in made["tools"] if tool["name"] == stuck)["compensate"] = None
    factories.register(house.agent, made)
    case = factories.open_run(house.agent, scope={})
    for tool, (asked, answer) in RESULTS.items():
        report(case, propose(case, tool, asked), reply(answer, status=201), tool=tool)
    finish(case)
    assert said_of_it in said(sign_in("omar").get(address(case, "compensate")))


def test_a_plan_that_nothing_stops_says_of_no_stop(booked: Case, sign_in: SignIn) -> None:
    assert "It stops at" not in said(sign_in("omar").get(address(booked, "compensate")))


def test_an_undo_that_was_refused_for_good_is_not_recommended_again(
    booked: Case, sends: Sends, sign_in: SignIn
) -> None:
    omar = sign_in("omar")
    sends.say(REFUSED)
    press(omar, booked, "compensate")
    look(booked)
    page = said(omar.get(address(booked)))
    assert "Recommended" not in page
    assert "was refused for good: it will be again, unless something changed there" in page


def test_what_a_keyed_undo_waits_for_is_another_try_of_the_worker(
    booked: Case, sends: Sends, sign_in: SignIn
) -> None:
    omar = sign_in("omar")
    sends.say(LOST)
    press(omar, booked, "compensate")
    assert "pay:undo : the worker, to send it." in plain(text(omar, f"/runs/{booked.run_id}/"))
    look(booked)
    shown = plain(text(omar, f"/runs/{booked.run_id}/"))
    assert re.search(r"pay:undo : next try not before [\d:]{8} UTC\.", shown)
    with wall.within(booked.tenant.pk):
        booked.run.actions.filter(role="undo").update(due_at=read_clock())
    assert "pay:undo : the worker, to send it again." in plain(text(omar, f"/runs/{booked.run_id}/"))


def test_a_moment_of_another_day_is_said_with_its_date(booked: Case, sign_in: SignIn) -> None:
    omar, tomorrow = sign_in("omar"), read_clock() + timedelta(days=1)
    with wall.within(booked.tenant.pk):
        HumanTask.objects.filter(run_id=booked.run_id).update(snoozed_until=tomorrow, snoozed_at=read_clock())
    slept = f"{tomorrow:%Y-%m-%d %H:%M:%S} UTC"
    assert f"Snoozed until {slept}, or until something new is learned." in said(omar.get(address(booked)))


def test_the_sheet_says_on_which_day_the_provider_stops_taking_it_back(house: House, sign_in: SignIn) -> None:
    undo = {"tool": "refund", "arguments": {"payment": "payment_id"}, "window_seconds": 2 * 86400}
    factories.register(house.agent, stand_manifest(required_effects=["furnish"], pay={"compensate": undo}))
    case = factories.open_run(house.agent, scope={})
    asked, answer = RESULTS["pay"]
    report(case, propose(case, "pay", asked), reply(answer, status=201), tool="pay")
    finish(case)
    day = read_clock() + timedelta(days=2)
    assert f"until {day:%Y-%m-%d} " in said(sign_in("omar").get(address(case, "compensate")))


def test_F140_beside_an_unknown_write_the_button_is_blocked_and_the_post_is_403(
    booked: Case, sign_in: SignIn
) -> None:
    omar = sign_in("omar")
    form = sheet(omar, booked, "compensate")
    press(omar, booked, "resume")
    report(booked, propose(booked, "furnish", {"stand": "A7"}), timed_out(), tool="furnish")
    page = omar.get(address(booked))
    assert f'href="{address(booked, "compensate")}"' not in page.content.decode()
    assert "a write may have happened; it is settled first" in said(page)
    late = omar.post(address(booked, "compensate"), {**sheet(omar, booked, "compensate"), "key": form["key"]})
    assert late.status_code == 403
    assert "a write may have happened; it is settled first" in said(late)
    assert (booked.run.goal, decided(booked, verb="compensate")) == ("forward", [])


def test_the_run_and_the_task_show_how_far_the_plan_has_come_and_what_remains(
    booked: Case, sends: Sends, sign_in: SignIn
) -> None:
    omar = sign_in("omar")
    sends.say(REFUSED)
    press(omar, booked, "compensate")
    for _ in range(2):
        look(booked)
    for page in (f"/runs/{booked.run_id}/", address(booked)):
        shown = plain(text(omar, page))
        assert "Plan of what is undone" in shown
        assert "1 undo stopped, 1 remaining" in shown
        assert "Remaining pay, reserve" in shown
        assert "its undo stopped; a person decides" in shown
        assert "Partly compensated" not in shown, "the undo was refused: nothing was taken back"
        assert "no end" in shown
    task = plain(text(omar, address(booked)))
    assert "No call is open. What is left of the undoing stands in its plan." in task
    assert "Every step is settled" not in task


def test_F142_a_rest_is_shown_and_a_partly_compensated_run_is_never_green(
    booked: Case, sends: Sends, sign_in: SignIn
) -> None:
    omar = sign_in("omar")
    sends.say(reply({"undo_id": "un_1"}))
    press(omar, booked, "compensate")
    for _ in range(4):
        look(booked)
    shown = plain(text(omar, address(booked)))
    assert "2.50 EUR the declared cost of the undo; nobody has accepted it yet" in shown
    assert "0 standing, 1 undone in part, 1 undone" in plain(text(omar, f"/runs/{booked.run_id}/"))
    assert "no end" not in shown, "what is over has no time left"
    assert press(omar, booked, "waive").status_code == 303
    html = text(omar, f"/runs/{booked.run_id}/")
    assert 'badge warn"' in html[: html.index("Plan of what is undone")]
    assert "Rolled back<" not in html
    assert "accepted" in plain(html)
    assert "Partly compensated" in plain(text(omar, "/runs/"))
    assert "0 standing, 1 undone in part, 1 undone" in plain(text(omar, "/runs/"))


def test_a_run_that_goes_forward_shows_no_plan(booked: Case, sign_in: SignIn) -> None:
    assert "Plan of what is undone" not in text(sign_in("omar"), f"/runs/{booked.run_id}/")


def test_what_was_given_up_is_not_called_partly_compensated(house: House, sends: Sends, sign_in: SignIn) -> None:
    factories.register(house.agent, stand_manifest(required_effects=["furnish"], pay={"compensate": None}))
    case = factories.open_run(house.agent, scope={})
    for tool, (asked, answer) in RESULTS.items():
        report(case, propose(case, tool, asked), reply(answer, status=201), tool=tool)
    finish(case)
    sends.say(reply({"undo_id": "un_1"}))
    press(sign_in("omar"), case, "compensate")
    assert press(sign_in("omar"), case, "waive").status_code == 303
    press(sign_in("ada"), case, "approve")
    for _ in range(4):
        look(case)
    shown = plain(text(sign_in("omar"), f"/runs/{case.run_id}/"))
    ledger = shown[shown.index("Effects ledger") :]
    assert "Given up" in ledger
    assert "Partly compensated" not in ledger


def test_a_question_about_a_whole_run_counts_its_effects_and_says_no_more(booked: Case, sign_in: SignIn) -> None:
    shown = plain(text(sign_in("alice"), address(booked)))
    assert "Yes, proven Effects of this run: 2 proven." in shown
    assert "exists once" not in shown
    assert "nothing can have changed" not in shown
