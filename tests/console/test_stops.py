"""The Stops page: who may set which switch, what stands, and how it is lifted; without script, by keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC

import pytest
from django.test import Client

from runs import wall
from runs.models import Event, Stop
from tests import factories
from tests.console.conftest import House
from tests.console.desk import said
from tests.factories import Case

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]
FORM = {
    "tenant": "nordlicht", "scope": "tool", "name": "apply_credit", "mode": "halt", "until": "",
    "reason": "Double postings at the provider.",
}  # fmt: skip


def standing(house: House) -> list[Stop]:
    with wall.within(house.nordlicht.pk):
        return list(Stop.objects.select_related("by").order_by("pk"))


def test_nothing_stands_and_the_page_says_so(house: House, sign_in: SignIn) -> None:
    page = said(sign_in("alice").get("/stops/"))
    assert "Nothing is stopped." in page
    assert re.search(r"Checked \d\d:\d\d:\d\d UTC", page)
    assert "Set a stop" in page


def test_a_stop_is_set_shown_kept_and_lifted(house: House, sign_in: SignIn) -> None:
    omar, case = sign_in("omar"), factories.open_run(house.agent)
    response = omar.post("/stops/set/", FORM)
    assert (response.status_code, response.headers["Location"]) == (303, "/stops/")
    html = omar.get("/stops/").content.decode()
    assert "Double postings at the provider." in html
    assert factories.propose(case).answer == "stop"
    [stop] = standing(house)
    lift = f"/stops/{stop.pk}/lift/"
    assert f'action="{lift}"' in html
    bare = omar.post(lift, {"lift_reason": " "})
    assert bare.status_code == 422
    assert f'id="e-{stop.pk}">Say why, in a few words.' in bare.content.decode()
    assert omar.post(lift, {"lift_reason": "It is over."}).status_code == 303
    assert factories.propose(case).answer == "execute"
    page = said(omar.get("/stops/"))
    assert "Lifted" in page
    assert "It is over." in page
    again = omar.post(lift, {"lift_reason": "Once more."}, follow=True)
    assert "This stop was lifted already." in said(again)


def test_F116_a_second_click_sets_no_second_stop(house: House, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    assert [omar.post("/stops/set/", FORM).status_code for _ in range(2)] == [303, 303]
    assert len(standing(house)) == 1


@pytest.mark.parametrize(("name", "reason"), [("ada", FORM["reason"]), ("omar", "Another reason.")])
def test_F117_who_sets_what_stands_already_reads_who_did_and_when(
    house: House, sign_in: SignIn, name: str, reason: str
) -> None:
    sign_in("omar").post("/stops/set/", FORM)
    response = sign_in(name).post("/stops/set/", {**FORM, "reason": reason})
    [stop] = standing(house)
    assert response.status_code == 422
    assert f"{stop.by} set this stop already, at {stop.set_at.astimezone(UTC):%H:%M:%S} UTC." in said(response)
    assert stop.reason == FORM["reason"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reason": " "}, "Say why, in a few words."),
        ({"name": "apply_credt"}, "No workflow declares such a tool."),
        ({"until": "tomorrow"}, "Write an end as 2026-03-14 18:30"),
        ({"until": "2020-01-01 10:00"}, "The end has passed already."),
        ({"scope": "run", "name": "x"}, "There is no such run."),
        ({"scope": "planet"}, "Use one of everything"),
        ({"name": "a\0b"}, "Null characters are not allowed."),
    ],
)
def test_an_error_stands_at_its_field_and_what_was_typed_is_kept(
    house: House, sign_in: SignIn, changes: dict[str, str], words: str
) -> None:
    response = sign_in("omar").post("/stops/set/", {**FORM, **changes})
    assert response.status_code == 422
    assert words in said(response)
    assert standing(house) == []
    if "reason" not in changes:
        assert "Double postings at the provider.</textarea>" in response.content.decode()


def test_support_stops_single_runs_only_from_the_run_itself(house: House, sign_in: SignIn) -> None:
    alice, case = sign_in("alice"), factories.open_run(house.agent)
    html = alice.get(f"/runs/{case.run_id}/").content.decode()
    [way] = re.findall(r'href="(/stops/[^"]+)"[^>]*data-verb="set_stop"', html)
    form = alice.get(way.replace("&amp;", "&")).content.decode()
    assert f'value="{case.run_id}"' in form
    assert re.findall(r'<option value="(\w+)"', form[form.index('name="scope"') : form.index('name="mode"')]) == [
        "run"
    ]
    assert alice.post("/stops/set/", {**FORM, "scope": "run", "name": str(case.run_id)}).status_code == 303
    assert factories.propose(case).answer == "stop"
    refused = alice.post("/stops/set/", FORM)
    assert refused.status_code == 403
    assert "Nothing was changed." in said(refused)
    assert len(standing(house)) == 1


@pytest.mark.parametrize("name", ["nia", "bob"])
def test_somebody_who_may_only_read_sees_the_stops_and_sets_none(house: House, sign_in: SignIn, name: str) -> None:
    sign_in("omar").post("/stops/set/", FORM)
    html = sign_in(name).get("/stops/").content.decode()
    assert "Double postings" in html
    assert "Your role does not include this." in html
    assert 'action="/stops/set/"' not in html
    assert sign_in(name).post("/stops/set/", FORM).status_code == 403
    [stop] = standing(house)
    assert sign_in(name).post(f"/stops/{stop.pk}/lift/", {"lift_reason": "Please."}).status_code == 403


def test_F122_a_foreign_stop_and_a_missing_one_answer_alike(house: House, sign_in: SignIn) -> None:
    sign_in("omar").post("/stops/set/", FORM)
    [stop] = standing(house)
    charlie, bodies = sign_in("charlie"), set()
    for stop_id in (stop.pk, "0196f5b0-0000-7000-8000-000000000009"):
        response = charlie.post(f"/stops/{stop_id}/lift/", {"lift_reason": "x"})
        assert response.status_code == 404
        bodies.add(re.sub(r'nonce="[^"]+"', "", response.content.decode()))
    assert len(bodies) == 1
    assert charlie.post("/stops/set/", FORM).status_code == 404
    assert "Double postings" not in charlie.get("/stops/").content.decode()


def test_a_get_changes_nothing_and_nobody_acts_without_signing_in(house: House, client: Client, case: Case) -> None:
    omar = house.browser("omar")
    for url in ("/stops/set/", "/stops/0196f5b0-0000-7000-8000-000000000009/lift/"):
        assert omar.get(url).status_code == 405
        assert client.post(url, FORM).status_code == 302
    assert client.get("/stops/").status_code == 302


@pytest.fixture
def case(house: House) -> Case:
    return factories.open_run(house.agent)


def test_a_form_from_another_site_is_refused(house: House) -> None:
    omar = house.browser("omar")
    omar.handler.enforce_csrf_checks = True
    assert omar.post("/stops/set/", FORM).status_code == 403
    assert standing(house) == []


def test_both_ends_of_a_stop_are_audited(house: House, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    omar.post("/stops/set/", FORM)
    omar.post(f"/stops/{standing(house)[0].pk}/lift/", {"lift_reason": "It is over."})
    with wall.within(house.nordlicht.pk):
        kept = list(
            Event.objects.filter(kind__startswith="stop_")
            .order_by(*Event.IN_ORDER)
            .values_list("kind", "actor", "reason")
        )
    assert kept == [("stop_set", "Omar", FORM["reason"]), ("stop_lifted", "Omar", "It is over.")]
