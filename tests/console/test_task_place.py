"""Where a task stands, as people read it: its priority in words, its clock, whose it is, the tabs of the queue."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from steadyhand.contract import Observation

from recovery.work.sweep import sweep
from runs.querysets import read_clock
from tests import factories
from tests.console.conftest import House
from tests.console.desk import address, press, said
from tests.factories import Case
from tests.recovery import stories

pytestmark = pytest.mark.django_db
ASKED = Observation(kind="exception", declared="needs_input", declared_field="account")


def lost(house: House, **manifest: Any) -> Case:
    """An unknown write under a manifest with some of its words changed."""
    more = {name: manifest.pop(name) for name in ("sla_pauses", "sla_hours") if name in manifest}
    factories.register(house.agent, factories.billing_manifest(**manifest) | more)
    return factories.unknown_credit(house.agent)


def tabs(house: House, name: str = "alice") -> dict[str, str]:
    """The queue's tabs with their counts."""
    html = house.browser(name).get("/").content.decode()
    found = re.search(r'<nav class="tabs".*?</nav>', html, re.DOTALL)
    assert found
    return dict(re.findall(r">([A-Z][\w ]+?)(?:<span class=\"n[^>]*>(\d+))?(?:</span>)?</a>", found[0]))


def listed(house: House, view: str, name: str = "alice") -> int:
    text = said(house.browser(name).get(f"/?view={view}"))
    return text.count("external_outcome_unknown")


def test_a_task_says_why_it_is_urgent_on_both_pages(house: House) -> None:
    case = lost(house, irreversible=True)
    alice = house.browser("alice")
    assert "Priority: it cannot be undone." in said(alice.get(address(case)))
    assert "it cannot be undone" in said(alice.get("/"))


def test_a_snoozed_task_stands_in_its_own_tab_only(house: House) -> None:
    case = lost(house)
    press(house.browser("alice"), case, "snooze", minutes="60")
    assert tabs(house)["Snoozed"] == "1"
    assert (tabs(house)["All"], tabs(house)["Unknown writes"]) == ("", "")
    assert (listed(house, "snoozed"), listed(house, "all")) == (1, 0)
    assert "Snoozed until" in said(house.browser("alice").get(address(case)))


def at_once(house: House, name: str, case: Case, verb: str) -> HttpResponse:
    """Press a button of the task's page that is sent without a sheet."""
    client = house.browser(name)
    html = client.get(address(case)).content.decode()
    form = html[html.index(f'action="{address(case, verb)}"') :]
    marks = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form[: form.index("</form>")]))
    return client.post(address(case, verb), marks)


def test_an_offered_task_waits_for_the_receivers_yes_with_its_facts(house: House) -> None:
    case = lost(house)
    omar = house.people["omar"]
    press(house.browser("alice"), case, "assign", to=str(omar.pk), reason="He knows the provider.")
    theirs, mine, others = (said(house.browser(name).get(address(case))) for name in ("omar", "alice", "ada"))
    assert "Alice offers you this task until" in theirs
    assert "He knows the provider." in theirs
    assert "Did anything change Unknown: this call may have happened." in theirs
    assert "Accept the handover" in theirs
    assert "Decline the handover" in theirs
    assert "You offer Omar this task until" in mine
    assert "Take the offer back" in mine
    assert "Alice offers Omar this task until" in others
    assert "Take the offer back" not in others
    assert "Accept the handover" not in others
    assert (tabs(house, "omar")["Offered to me"], tabs(house, "ada")["Offered to me"]) == ("1", "")
    assert listed(house, "offered", "omar") == 1
    assert at_once(house, "omar", case, "accept").status_code == 303
    text = said(house.browser("alice").get(address(case)))
    assert "Owned by Omar of billing-support." in text
    assert "Omar accepted it from Alice." in text
    assert (tabs(house, "omar")["Mine"], tabs(house, "omar")["Offered to me"]) == ("1", "")


def test_a_declined_offer_says_why_on_the_page_of_its_giver(house: House) -> None:
    case = lost(house)
    press(house.browser("alice"), case, "assign", to=str(house.people["omar"].pk))
    answer = press(house.browser("omar"), case, "decline", reason="I leave in a minute.")
    assert answer.status_code == 303
    text = said(house.browser("alice").get(address(case)))
    assert "Omar declined it:" in text
    assert "I leave in a minute." in text
    assert "offers" not in text


def test_a_giver_takes_the_offer_back(house: House) -> None:
    case = lost(house)
    press(house.browser("alice"), case, "assign", to=str(house.people["omar"].pk))
    assert at_once(house, "alice", case, "withdraw").status_code == 303
    assert "Alice took the offer to Omar back." in said(house.browser("omar").get(address(case)))


def test_somebody_of_another_tenant_is_no_receiver(house: House) -> None:
    case = lost(house)
    html = house.browser("alice").get(address(case, "assign")).content.decode()
    assert "Omar" in html
    assert "Charlie" not in html
    assert "Bob" not in html
    charlie = house.people["charlie"]
    assert press(house.browser("alice"), case, "assign", to=str(charlie.pk)).status_code == 422


def test_a_clock_that_stands_still_says_so_and_is_not_breaching(house: House) -> None:
    factories.register(house.agent, factories.billing_manifest(sla_seconds=600) | {"sla_pauses": ["requester"]})
    case = factories.open_run(house.agent, scope={})
    factories.turn(case)
    factories.report(case, factories.propose(case), ASKED)
    factories.advance_clock(minutes=20)
    text = said(house.browser("alice").get(address(case)))
    assert "Paused" in text
    assert "The clock stands still: waits for the requester. 10 min are left." in text
    assert "Paused" in said(house.browser("alice").get("/"))
    assert tabs(house)["Breaching"] == ""


def test_a_task_is_due_soon_and_then_breaching(house: House) -> None:
    lost(house, sla_seconds=3600)
    assert (tabs(house)["Due soon"], tabs(house)["Breaching"]) == ("", "")
    factories.advance_clock(minutes=46)
    assert (tabs(house)["Due soon"], tabs(house)["Breaching"]) == ("1", "")
    factories.advance_clock(minutes=15)
    assert (tabs(house)["Due soon"], tabs(house)["Breaching"]) == ("", "1")
    sweep(ring=lambda decision_id: None)
    assert (tabs(house)["Due soon"], tabs(house)["Breaching"]) == ("", "1")


def test_a_resolved_task_can_be_asked_again_from_its_page(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    case = lost(house, in_flight_seconds=20, lag_seconds=5)
    looks = stories.script(monkeypatch)
    looks.say(stories.present())
    factories.advance_clock(seconds=6)
    stories.look(case)
    alice = house.browser("alice")
    assert "Reopen" in said(alice.get(address(case)))
    assert press(alice, case, "reopen").status_code == 303
    assert "Reopened" in said(alice.get(address(case)))


def test_how_often_an_approval_was_asked_for_again_is_shown(house: House) -> None:
    factories.register(house.agent, factories.billing_manifest(requires_approval=True) | {"approval_seconds": 3600})
    case = factories.open_run(house.agent)
    factories.propose(case)
    factories.advance_clock(minutes=31)
    sweep(ring=lambda decision_id: None)
    assert "Asked for again 1 time, last at" in said(house.browser("omar").get(address(case)))


def test_a_sleep_has_to_be_one_of_the_times(house: House) -> None:
    case = lost(house)
    assert press(house.browser("alice"), case, "snooze", minutes="7").status_code == 422
    assert case.task().snoozed_until is None
    press(house.browser("alice"), case, "snooze", minutes="1440")
    until = case.task().snoozed_until
    assert until is not None
    assert abs(until - read_clock() - timedelta(days=1)) < timedelta(minutes=1)
