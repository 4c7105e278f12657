"""What a stop looks like to those who did not set it: on the queue, on the task that it opened, and as it is set."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from console.builders.stops import SCOPES
from recovery.work import stops
from runs.models import Stop
from tests import factories
from tests.console.conftest import House
from tests.console.desk import press, said
from tests.console.test_stops import FORM
from tests.console.test_task import address, plain, text
from tests.factories import Case
from tests.recovery.stories import panel

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]
WHY = "Double postings."


def stop(house: House, **changes: str) -> Stop:
    asked = {"scope": "workflow", "name": factories.WORKFLOW, "mode": "quarantine", "reason": WHY, **changes}
    return stops.set_stop(house.people["omar"], house.nordlicht.pk, **asked)


@pytest.fixture
def quarantined(house: House) -> tuple[Case, Stop]:
    """A run that was handed to a person because its workflow is stopped."""
    case, switch = factories.open_run(house.agent), stop(house)
    factories.propose(case)
    return case, switch


def test_the_task_names_who_stopped_what_why_and_at_which_call(
    quarantined: tuple[Case, Stop], sign_in: SignIn
) -> None:
    page = plain(text(sign_in("alice"), address(quarantined[0])))
    assert f"Omar stopped workflow {factories.WORKFLOW}" in page
    assert "Double postings" in page
    assert "It was about to call apply_credit" in page


def test_the_run_goes_on_only_once_the_switch_is_lifted(quarantined: tuple[Case, Stop], house: House) -> None:
    case, switch = quarantined
    alice = house.people["alice"]
    before = panel(case, alice).verb("resume")
    assert (before.allowed, before.rule) == (False, "stop")
    stops.lift_stop(house.people["omar"], house.nordlicht.pk, switch.pk, reason="Over.")
    assert panel(case, alice).verb("resume").allowed


def test_the_queue_says_that_a_switch_stands(house: House, sign_in: SignIn) -> None:
    assert "stop switch" not in text(sign_in("alice"), "/")
    stop(house, mode="halt")
    page = plain(text(sign_in("alice"), "/"))
    assert "1 stop switch stands." in page
    assert "Stops 1" in page
    assert "stop switch" not in text(sign_in("charlie"), "/")


def test_a_form_left_as_it_was_stops_no_whole_tenant(house: House, sign_in: SignIn) -> None:
    assert list(SCOPES)[-1] == "everything"
    bare = said(sign_in("omar").post("/stops/set/", {**FORM, "scope": "workflow", "name": ""}))
    assert "Name the workflow that is to be stopped." in bare
    odd = said(sign_in("omar").post("/stops/set/", {**FORM, "scope": "workflow", "name": "biling"}))
    assert "No workflow of that name is registered." in odd


def test_the_notice_names_what_was_stopped(house: House, sign_in: SignIn) -> None:
    page = said(sign_in("omar").post("/stops/set/", FORM, follow=True))
    assert "Recorded: a stop is set. One tool apply_credit" in page


def test_a_letter_whose_replay_is_granted_says_what_is_next(house: House, sign_in: SignIn) -> None:
    case = factories.open_run(house.agent)
    for _ in range(3):
        factories.rate_limit(case, "apply_credit", retry_after=0)
        factories.advance_clock(minutes=1)
    press(sign_in("omar"), case, "replay")
    page = plain(text(sign_in("omar"), address(case)))
    assert "The replay is granted: the agent sends the call once it is resumed." in page
    assert "Recommended: retry the same call." not in page


def test_a_call_that_was_approved_no_longer_waits_for_an_approval(house: House, sign_in: SignIn) -> None:
    made = factories.billing_manifest()
    next(tool for tool in made["tools"] if tool["name"] == "apply_credit")["requires_approval"] = True
    factories.register(house.agent, made)
    case = factories.open_run(house.agent)
    factories.propose(case)
    press(sign_in("omar"), case, "approve")
    page = plain(text(sign_in("omar"), address(case)))
    assert "It is approved, and is sent once the agent proposes it again." in page
    assert "It waits for an approval" not in page
