"""The Circuits page: what it shows, who may hold one open and release it; without script, by keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, timedelta

import pytest
from django.test import Client

from runs import wall
from runs.models import Circuit, Event
from runs.querysets import read_clock
from tests import factories
from tests.console.conftest import House
from tests.console.desk import said

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]
FORM = {"tenant": "nordlicht", "name": "connector:payments", "reason": "The provider asked for a pause."}


def circuits(house: House) -> list[Circuit]:
    with wall.within(house.nordlicht.pk):
        return list(Circuit.objects.select_related("by").order_by("pk"))


def test_nothing_is_in_trouble_and_the_page_says_what_it_is_for(house: House, sign_in: SignIn) -> None:
    page = said(sign_in("alice").get("/circuits/"))
    assert "No circuit is open." in page
    assert "wait instead of making things worse" in page


def test_a_circuit_is_held_shown_kept_and_released_to_trials(house: House, sign_in: SignIn) -> None:
    omar, case = sign_in("omar"), factories.open_run(house.agent)
    response = omar.post("/circuits/hold/", FORM)
    assert (response.status_code, response.headers["Location"]) == (303, "/circuits/")
    permit = factories.propose(case)
    assert (permit.answer, permit.error.code) == ("wait", "circuit_open")
    html = omar.get("/circuits/").content.decode()
    assert "The provider asked for a pause." in html
    assert "1 call waits" in html
    assert "never opened by itself" in html
    [circuit] = circuits(house)
    release = f"/circuits/{circuit.pk}/release/"
    assert f'action="{release}"' in html
    bare = omar.post(release, {"release_reason": " "})
    assert bare.status_code == 422
    assert f'id="e-{circuit.pk}">Say why, in a few words.' in bare.content.decode()
    assert omar.post(release, {"release_reason": "It is over."}).status_code == 303
    assert [one.state for one in circuits(house)] == ["half_open"], "nobody forces it closed"
    again = omar.post(release, {"release_reason": "Once more."}, follow=True)
    assert "Nobody holds this circuit open any more." in said(again)


def test_a_hold_and_a_release_stand_in_the_history_with_who_and_why(house: House, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    omar.post("/circuits/hold/", FORM)
    [circuit] = circuits(house)
    omar.post(f"/circuits/{circuit.pk}/release/", {"release_reason": "It is over."})
    with wall.within(house.nordlicht.pk):
        told = Event.objects.filter(kind__startswith="circuit").order_by(*Event.IN_ORDER)
        assert list(told.values_list("kind", "actor_kind", "reason")) == [
            ("circuit_held", "person", FORM["reason"]),
            ("circuit_released", "person", "It is over."),
        ]


def test_F116_a_second_click_holds_it_once(house: House, sign_in: SignIn) -> None:
    omar = sign_in("omar")
    assert [omar.post("/circuits/hold/", FORM).status_code for _ in range(2)] == [303, 303]
    assert [one.version for one in circuits(house)] == [1]


@pytest.mark.parametrize(("name", "reason"), [("ada", FORM["reason"]), ("omar", "They asked for more time.")])
def test_F117_who_holds_what_is_held_reads_who_does_and_since_when(
    house: House, sign_in: SignIn, name: str, reason: str
) -> None:
    sign_in("omar").post("/circuits/hold/", FORM)
    [before] = circuits(house)
    response = sign_in(name).post("/circuits/hold/", {**FORM, "reason": reason})
    assert response.status_code == 422
    since = before.since.astimezone(UTC)
    assert f"{before.by} holds it open already, since {since:%H:%M:%S} UTC." in said(response)
    assert reason in said(response), "what was typed is not lost"
    [after] = circuits(house)
    assert (after.by, after.reason, after.version) == (before.by, FORM["reason"], before.version)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reason": " "}, "Say why, in a few words."),
        ({"name": "connector:paymnts"}, "No workflow calls anything of that name."),
        ({"name": ""}, "Name the circuit."),
        ({"name": "a\0b"}, "Null characters are not allowed."),
    ],
)
def test_an_error_stands_at_its_field_and_nothing_is_held(
    house: House, sign_in: SignIn, changes: dict[str, str], words: str
) -> None:
    response = sign_in("omar").post("/circuits/hold/", {**FORM, **changes})
    assert response.status_code == 422
    assert words in said(response)
    assert circuits(house) == []


@pytest.mark.parametrize("name", ["alice", "nia", "bob"])
def test_somebody_who_may_not_sees_them_and_holds_none(house: House, sign_in: SignIn, name: str) -> None:
    sign_in("omar").post("/circuits/hold/", FORM)
    [circuit] = circuits(house)
    html = sign_in(name).get("/circuits/").content.decode()
    assert "Held open" in html
    assert "Your role does not include this." in html
    assert "not held by a person" not in html
    assert not re.search(r'action="/circuits/', html)
    assert sign_in(name).post("/circuits/hold/", {**FORM, "name": "connector:mail"}).status_code == 403
    released = sign_in(name).post(f"/circuits/{circuit.pk}/release/", {"release_reason": "Please."})
    assert released.status_code == 403
    assert [one.state for one in circuits(house)] == ["held_open"]


def test_F122_a_foreign_circuit_and_a_missing_one_answer_alike(house: House, sign_in: SignIn) -> None:
    sign_in("omar").post("/circuits/hold/", FORM)
    [circuit] = circuits(house)
    charlie = sign_in("charlie")
    foreign = charlie.post(f"/circuits/{circuit.pk}/release/", {"release_reason": "Mine."})
    missing = charlie.post(f"/circuits/{house.nordlicht.pk}/release/", {"release_reason": "Mine."})
    assert (foreign.status_code, missing.status_code) == (404, 404)
    assert FORM["reason"] not in charlie.get("/circuits/").content.decode()
    assert charlie.post("/circuits/hold/", FORM).status_code == 404


def test_F115_the_task_says_that_its_look_up_waits_for_the_circuit(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    sign_in("omar").post("/circuits/hold/", FORM)
    page = said(sign_in("alice").get(f"/tasks/{case.task().pk}/"))
    assert "The look-up waits for the circuit." in page
    assert "The provider asked for a pause. A person holds it open. The clock of this task runs on." in page


def test_a_trial_of_another_day_is_said_with_its_date(house: House, sign_in: SignIn) -> None:
    case, tomorrow = factories.unknown_credit(house.agent), read_clock() + timedelta(days=1)
    omar = sign_in("omar")
    omar.post("/circuits/hold/", FORM)
    [held] = circuits(house)
    omar.post(f"/circuits/{held.pk}/release/", {"release_reason": "It is over."})
    with wall.within(house.nordlicht.pk):
        Circuit.objects.filter(pk=held.pk).update(until=tomorrow)
    page = said(sign_in("alice").get(f"/tasks/{case.task().pk}/"))
    assert f"A trial is made from {tomorrow:%Y-%m-%d %H:%M:%S} UTC on." in page


def test_a_run_says_that_its_call_waits_for_the_circuit(house: House, sign_in: SignIn) -> None:
    case = factories.open_run(house.agent)
    sign_in("omar").post("/circuits/hold/", FORM)
    factories.propose(case)
    page = said(sign_in("alice").get(f"/runs/{case.run_id}/"))
    assert "the circuit of what it calls, asked again at" in page


def test_a_circuit_that_a_trial_opened_again_counts_that_trial_and_never_more_faults_than_calls(
    house: House, sign_in: SignIn
) -> None:
    now = read_clock()
    with wall.within(house.nordlicht.pk):
        circuit = Circuit.objects.create(
            tenant=house.nordlicht, name="connector:payments", state="open", volume=1, trips=3, faults=[now] * 16,
            reason="A trial met the same trouble.", until=now + timedelta(minutes=1),
        )  # fmt: skip
    assert "1 fault among 1 call, opened 3 times" in said(sign_in("alice").get("/circuits/"))
    with wall.within(house.nordlicht.pk):
        Circuit.objects.filter(pk=circuit.pk).update(volume=20)
    assert "16 faults among 20 calls, opened 3 times" in said(sign_in("alice").get("/circuits/"))


def test_a_closed_circuit_does_not_name_an_old_trouble_as_if_it_were_there(house: House, sign_in: SignIn) -> None:
    with wall.within(house.nordlicht.pk):
        Circuit.objects.create(
            tenant=house.nordlicht, name="connector:payments", state="closed", trips=1, closed_at=read_clock(),
            reason="The look-up answered 503.",
        )  # fmt: skip
    page = said(sign_in("alice").get("/circuits/"))
    assert "Trials went well. Last noted: The look-up answered 503." in page
