"""The link to the requester in the console, and the page behind it: one question, no session, nothing told."""

from __future__ import annotations

import re
import uuid
from functools import partial
from typing import Any

import pytest
from django.core import mail, signing
from django.core.cache import cache
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings
from steadyhand.contract import Observation

from runs import wall
from runs.models import Event
from tests import factories
from tests.console.conftest import House
from tests.console.desk import address, decided, press, said, sheet
from tests.factories import Case

pytestmark = pytest.mark.django_db
HOSTILE = '<script>alert(1)</script>{{ 7|add:"7" }}'


@pytest.fixture(autouse=True)
def no_limits_reached() -> None:
    cache.clear()


@pytest.fixture
def case(house: House) -> Case:
    return asked(house)


def asked(house: House, requester: str = "jo@customers.example", **properties: Any) -> Case:
    """A credit whose account the provider does not know."""
    manifest = factories.billing_manifest()
    schema = next(tool for tool in manifest["tools"] if tool["name"] == "apply_credit")["input_schema"]
    account = {"type": "string", "title": "Account number", "maxLength": 20} | properties
    schema["properties"] = schema["properties"] | {"account": account}
    factories.register(house.agent, manifest)
    case = factories.open_run(house.agent, requester=requester, scope={})
    factories.turn(case)
    wants = Observation(kind="exception", declared="needs_input", declared_field="account", message=HOSTILE)
    factories.report(case, factories.propose(case), wants)
    return case


def make_link(house: House, case: Case) -> tuple[str, HttpResponse]:
    """The path of the link, and the page that showed it."""
    response = press(house.browser("alice"), case, "request-input")
    assert response.status_code == 200
    found = re.search(r'value="http://testserver(/answer/[^"]+)"', response.content.decode())
    assert found is not None, said(response)
    return found[1], response


def form(client: Client, path: str, text: str) -> HttpResponse:
    return client.post(path, {"answer": text})


def test_the_link_is_shown_once_to_whoever_made_it(house: House, case: Case) -> None:
    alice = house.browser("alice")
    typed = sheet(alice, case, "request-input")
    first = alice.post(address(case, "request-input"), typed)
    assert (first.status_code, "/answer/" in first.content.decode()) == (200, True)
    assert first.headers["Cache-Control"] == "no-store"
    second = alice.post(address(case, "request-input"), typed)
    assert second.status_code == 303
    assert len(decided(case, verb="request_input")) == 1
    assert "/answer/" not in alice.get(address(case)).content.decode()


def test_the_page_asks_one_thing_and_tells_nothing_else(house: House, case: Case) -> None:
    path, _ = make_link(house, case)
    response = Client().get(path)
    text = said(response)
    assert "Nordlicht Energie needs one more thing" in text
    assert "Account number" in text
    assert "At most 20 characters." in text
    assert "It is about this step: Credit an account." in text
    html = response.content.decode()
    assert re.findall(r'name="(\w+)"', html[html.index("<main") :]) == ["csrfmiddlewaretoken", "answer"]
    for told in ("acct_8841", "INV-20931", "apply_credit", "12000", "alert(1)", str(case.run_id)):
        assert told not in html
    assert 'maxlength="20"' in html


def test_no_session_is_opened_and_the_policy_of_every_page_holds(house: House, case: Case) -> None:
    path, _ = make_link(house, case)
    stranger = Client()
    for response in (stranger.get(path), form(stranger, path, "acct_9907")):
        assert response.status_code == 200
        assert "steadyhand_session" not in response.cookies
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Referrer-Policy"] == "same-origin"


def test_the_answer_is_taken_once_and_a_look_takes_nothing(house: House, case: Case) -> None:
    path, _ = make_link(house, case)
    stranger = Client()
    for _ in range(3):
        assert stranger.get(path).status_code == 200
    assert "Thank you" in said(form(stranger, path, "acct_9907"))
    assert case.run.state == "executing"
    again = form(stranger, path, "acct_1")
    assert (again.status_code, stranger.get(path).status_code) == (404, 404)
    with wall.within(case.tenant.pk):
        (event,) = Event.objects.filter(run_id=case.run_id, kind="input_provided")
    assert (event.data["value"], event.actor, event.actor_kind) == ("acct_9907", "requester", "person")


def test_every_link_that_is_not_good_gets_the_same_page(house: House, case: Case) -> None:
    path, _ = make_link(house, case)
    stranger = Client()
    form(stranger, path, "acct_9907")
    bodies = set()
    for one in (path, path[:-2] + "/", "/answer/nonsense/", "/answer/a:b:c/"):
        response = stranger.get(one)
        assert response.status_code == 404
        bodies.add(re.sub(r'nonce="[^"]+"', "", response.content.decode()))
    assert len(bodies) == 1
    assert "Ask whoever sent it to you" in bodies.pop()


METHODS = ("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
BODIES: dict[str, tuple[str, bytes]] = {
    "json": ("application/json", b'{"answer": "acct_9907"}'),
    "text": ("text/plain", b"answer=acct_9907"),
    "no type": ("", b"answer=acct_9907"),
    "utf-7": ("application/x-www-form-urlencoded; charset=utf-7", b"answer=acct_9907"),
    "parts without a boundary": ("multipart/form-data", b"answer=acct_9907"),
    "a file": (
        "multipart/form-data; boundary=x",
        b'--x\r\nContent-Disposition: form-data; name="answer"; filename="a"\r\n\r\nacct_9907\r\n--x--\r\n',
    ),
    "too large": ("application/x-www-form-urlencoded", b"answer=" + b"a" * 3_000_000),
    "too many": ("application/x-www-form-urlencoded", b"answer=acct_9907&" * 1500),
    "two, the last one unfit": ("application/x-www-form-urlencoded", b"answer=acct_9907&answer="),
    "nul": ("application/x-www-form-urlencoded", b"answer=acct%009907"),
    "too long": ("application/x-www-form-urlencoded", b"answer=" + b"a" * 21),
}


def test_nothing_but_a_form_answers(house: House, case: Case) -> None:
    path, _ = make_link(house, case)
    stranger = Client()
    for method in METHODS:
        response = stranger.generic(method, f"{path}?answer=acct_9907", b"answer=acct_9907")
        assert response.status_code == (200 if method in ("GET", "HEAD") else 405)
    for name, (kind, body) in BODIES.items():
        cache.clear()
        response = stranger.generic("POST", path, body, content_type=kind)
        assert response.status_code in (400, 422), name
    assert (case.run.state, response.status_code) == ("escalated", 422)
    assert form(stranger, path, "acct_9907").status_code == 200


def signed_for(tenant_id: str, salt: str = "steadyhand.question") -> str:
    return f"/answer/{signing.dumps([tenant_id, uuid.uuid4().hex, 'x'], salt=salt)}/"


def test_whatever_stands_in_a_links_place_gets_the_same_page(house: House, case: Case) -> None:
    north, south = house.nordlicht.pk.hex, house.harbor.pk.hex
    odd = ["%00", "%E2%80%AE", "%ff%fe", "%ed%a0%80", "a" * 9000, ":", ":" * 3000, ".eJw:1:zz", "..", "%0d%0aX:1"]
    links = [f"/answer/{one}/" for one in odd]
    links += [signed_for(north), signed_for(south), signed_for(uuid.uuid4().hex), signed_for(north, "another")]
    bodies = set()
    for link in links:
        for send in (Client().get, partial(Client().post, data={"answer": "x"})):
            cache.clear()
            response = send(link)
            assert response.status_code == 404, link
            bodies.add(re.sub(r'nonce="[^"]+"', "", response.content.decode()))
    assert len(bodies) == 1


def test_a_link_that_ran_out_is_like_any_other_bad_one(house: House, case: Case) -> None:
    path, _ = make_link(house, case)
    factories.advance_clock(minutes=61)
    assert Client().get(path).status_code == 404
    assert form(Client(), path, "acct_9907").status_code == 404


def test_what_does_not_fit_is_said_at_the_field_and_hostile_text_stays_text(house: House, case: Case) -> None:
    path, _ = make_link(house, case)
    refused = form(Client(), path, HOSTILE)
    html = refused.content.decode()
    assert refused.status_code == 422
    assert "at most 20 characters" in said(refused)
    assert "<script>alert" not in html
    assert 'aria-invalid="true"' in html


def test_a_choice_is_offered_as_one(house: House) -> None:
    case = asked(house, enum=["acct_8841", "acct_9907"])
    path, _ = make_link(house, case)
    html = Client().get(path).content.decode()
    assert re.findall(r'<option value="(\w+)"', html) == ["acct_8841", "acct_9907"]
    assert form(Client(), path, "acct_1").status_code == 422
    assert form(Client(), path, "acct_9907").status_code == 200


def test_SEC_11_another_sites_form_answers_nothing(house: House, case: Case) -> None:
    path, _ = make_link(house, case)
    assert form(Client(enforce_csrf_checks=True), path, "acct_9907").status_code == 403
    assert case.run.state == "escalated"


def test_SEC_18_whoever_asks_too_often_waits(house: House, case: Case) -> None:
    path, _ = make_link(house, case)
    stranger = Client()
    codes = [stranger.get("/answer/nonsense/").status_code for _ in range(31)]
    assert codes[:30] == [404] * 30
    assert codes[30] == 429
    assert stranger.get(path).status_code == 429


def test_counting_makes_the_database_refuse_nothing(house: House, case: Case) -> None:
    stranger, path = Client(), "/answer/nothing/"
    stranger.get(path)
    with CaptureQueriesContext(connection) as asked:
        stranger.get(path)
    assert any("UPDATE" in one["sql"] and "console_cache" in one["sql"] for one in asked)
    assert not any("INSERT" in one["sql"] and "console_cache" in one["sql"] for one in asked)


def test_mail_takes_the_link_to_a_requester_who_is_an_address(house: House, settings: Settings) -> None:
    settings.SENDS_MAIL = True
    path, response = make_link(house, asked(house))
    (sent,) = mail.outbox
    assert sent.bcc == ["jo@customers.example"]
    assert path in sent.body
    assert "Mailed to jo@customers.example." in said(response)


@pytest.mark.parametrize(
    ("requester", "sends", "words"),
    [("Jo Tanaka", True, "no mail address"), ("jo@customers.example", False, "No mail host")],
)
def test_without_an_address_or_a_host_the_colleague_gives_it_on(
    house: House, settings: Settings, requester: str, sends: bool, words: str
) -> None:
    settings.SENDS_MAIL = sends
    _, response = make_link(house, asked(house, requester))
    assert words in said(response)
    assert mail.outbox == []


def test_a_colleague_who_was_told_the_answer_types_it_in(house: House, case: Case) -> None:
    alice = house.browser("alice")
    assert press(alice, case, "provide-input", value="x" * 21).status_code == 422
    assert press(alice, case, "provide-input", value="acct_9907").status_code == 303
    assert case.run.state == "executing"
