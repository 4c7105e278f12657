"""Settings, connectors: where they stand, and a test that asks something harmless and says what came of it."""

from __future__ import annotations

import ssl
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from recovery.connectors import line
from recovery.models import ConnectorCheck, Demotion, OutsideSweep
from recovery.work import checks, sweep, worker
from runs import wall
from runs.models import Circuit, Event, Workflow
from runs.querysets import read_clock
from tests import factories
from tests.console.conftest import House
from tests.console.desk import said
from tests.console.test_queue import OVERHEAD
from tests.factories import advance_clock

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]
LIST = "/settings/connectors/"
Answers = Callable[..., line.Reply]


@pytest.fixture(autouse=True)
def trusted(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.TRUSTED_ENDPOINTS = ["127.0.0.1:9"]
    monkeypatch.setattr("console.views.connectors.ring", lambda _: None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], list[Any]]:
    """The outside answers, or raises, this; the list holds every request that left."""

    def answering(answer: Any) -> list[Any]:
        seen: list[Any] = []

        def exchange(method: str, target: Any, **request: Any) -> line.Reply:
            seen.append((method, target.url, request.get("params")))
            if isinstance(answer, Exception):
                raise answer
            return line.Reply(answer, cut=False)

        monkeypatch.setattr(line, "exchange", exchange)
        return seen

    return answering


def address(house: House, name: str = "payments") -> str:
    with wall.within(house.nordlicht.pk):
        newest = Workflow.objects.filter(name="billing-case").latest("version")
    return f"{LIST}{newest.pk}/{name}/test/"


def press(client: Client, where: str, key: str = "") -> Any:
    return client.post(where, {"key": key or uuid.uuid4().hex}, follow=True)


def rows(house: House) -> list[ConnectorCheck]:
    with wall.within(house.nordlicht.pk):
        return list(ConnectorCheck.objects.order_by("id"))


def carried_out(house: House, client: Client, name: str = "payments") -> str:
    """A test from the button to its result."""
    press(client, address(house, name))
    worker.execute(rows(house)[-1].pk)
    return said(client.get(LIST))


def test_the_connectors_stand_with_what_they_do_and_that_nobody_tested_them(house: House, sign_in: SignIn) -> None:
    page = said(sign_in("bob").get(LIST))
    assert "2 connectors" in page
    assert "looks up apply_credit" in page
    assert "127.0.0.1:9" in page
    assert "Nobody has tested it yet." in page
    assert "nothing is known against it" in page


def test_a_test_asks_for_what_cannot_exist_and_its_result_is_kept(
    house: House, sign_in: SignIn, asked: Callable[[Any], list[Any]]
) -> None:
    seen = asked(httpx.Response(200, json={"items": []}))
    omar = sign_in("omar")
    page = said(press(omar, address(house)))
    assert "Requested: a test." in page
    assert "Being asked" in page
    assert seen == [], "the page itself asks nobody"
    [check] = rows(house)
    worker.execute(check.pk)
    worker.execute(check.pk)
    [(method, url, params)] = seen
    assert (method, url) == ("GET", "http://127.0.0.1:9/payments/credits")
    assert params["action_id"].startswith("check-")
    page = said(omar.get(LIST))
    assert "Answers It answered that it has nothing under a reference that does not exist." in page
    assert "Omar" in page
    [check] = rows(house)
    assert (check.outcome, check.status, check.by) == ("answers", 200, house.people["omar"])
    with wall.within(house.nordlicht.pk):
        assert Event.objects.get(kind="connector_check_asked").actor == "Omar"


def caused(wrong: Exception, cause: Exception) -> Exception:
    wrong.__cause__ = cause
    return wrong


REFUSED = caused(httpx.ConnectError("x"), ConnectionRefusedError())
NO_TLS = caused(httpx.ConnectError("x"), ssl.SSLCertVerificationError())


@pytest.mark.parametrize(
    ("answer", "outcome", "words"),
    [
        (httpx.Response(401), "credential", "the credential is missing or not accepted"),
        (httpx.Response(429), "busy", "asks for a pause"),
        (httpx.Response(503), "broken", "It answered 503: it is there, and in trouble."),
        (httpx.Response(404), "wrong", "the address or the path may be wrong"),
        (httpx.Response(200, text="<html>"), "shape", "The look-up's answer is not JSON."),
        (httpx.Response(200, json={"things": []}), "shape", "cannot be used"),
        (httpx.ReadTimeout("x"), "late", "No answer came within 10 seconds."),
        (REFUSED, "refused", "nothing listens there"),
        (NO_TLS, "tls", "Its certificate is not accepted"),
        (httpx.ConnectError("x"), "unreachable", "No connection could be made."),
        (httpx.RemoteProtocolError("x"), "unreachable", "RemoteProtocolError"),
        (RuntimeError("secret"), "broken", "RuntimeError"),
    ],
)
def test_each_failure_has_its_own_words(
    house: House, sign_in: SignIn, asked: Callable[[Any], list[Any]], answer: Any, outcome: str, words: str
) -> None:
    seen = asked(answer)
    assert words in carried_out(house, sign_in("omar"))
    assert rows(house)[0].outcome == outcome
    assert len(seen) == 1, "one request, no retry"


def test_an_address_that_may_not_be_asked_says_why(house: House, sign_in: SignIn, settings: LazySettings) -> None:
    settings.TRUSTED_ENDPOINTS = []
    assert "would be asked without encryption" in carried_out(house, sign_in("omar"))
    assert rows(house)[0].outcome == "address"


def test_a_connector_that_knows_what_does_not_exist_is_not_believed(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def echo(method: str, target: Any, **request: Any) -> line.Reply:
        record = {"action_id": request["params"]["action_id"], "credit_id": "cr_1"}
        return line.Reply(httpx.Response(200, json={"items": [record]}), cut=False)

    monkeypatch.setattr(line, "exchange", echo)
    assert "its look-ups are not to be believed" in carried_out(house, sign_in("omar"))


def test_a_health_read_is_asked_where_one_is_declared(
    house: House, sign_in: SignIn, asked: Callable[[Any], list[Any]]
) -> None:
    manifest = factories.billing_manifest()
    manifest["connectors"]["payments"]["health"] = "/healthz"
    factories.register(house.agent, manifest)
    seen = asked(httpx.Response(204))
    assert "Its health read answered 204." in carried_out(house, sign_in("omar"))
    assert [one[1] for one in seen] == ["http://127.0.0.1:9/healthz"]


def test_F116_a_second_click_and_a_second_tab_make_one_test(house: House, sign_in: SignIn) -> None:
    omar, where, key = sign_in("omar"), address(house), uuid.uuid4().hex
    for again in (key, key, uuid.uuid4().hex):
        assert press(omar, where, again).status_code == 200
    assert len(rows(house)) == 1


def test_it_is_not_asked_again_at_once(
    house: House, sign_in: SignIn, asked: Callable[[Any], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(httpx.Response(200, json={"items": []}))
    omar = sign_in("omar")
    carried_out(house, omar)
    assert "Blocked: it was asked a moment ago" in said(press(omar, address(house)))
    advance_clock(seconds=11)
    carried_out(house, omar)
    assert len(rows(house)) == 2
    monkeypatch.setattr(checks, "MOST_AN_HOUR", 2)
    advance_clock(seconds=11)
    assert "2 tests were made in the last hour" in said(press(omar, address(house)))


@pytest.mark.parametrize("name", ["alice", "nia", "bob"])
def test_who_may_not_reads_why_and_asks_nobody(house: House, sign_in: SignIn, name: str) -> None:
    page = sign_in(name).get(LIST)
    assert "Test now" not in said(page)
    assert "Blocked: your role does not include this." in said(page)
    assert "Blocked: your role does not include this." in said(press(sign_in(name), address(house)))
    assert rows(house) == []


@pytest.mark.parametrize("name", ["omar", "ada"])
def test_who_may_test(house: House, sign_in: SignIn, name: str) -> None:
    press(sign_in(name), address(house))
    assert len(rows(house)) == 1


def test_F122_a_foreign_connector_and_a_missing_one_answer_alike(house: House, sign_in: SignIn) -> None:
    charlie, where = sign_in("charlie"), address(house)
    missing = f"{LIST}{uuid.uuid4()}/payments/test/"
    assert [charlie.post(one, {"key": uuid.uuid4().hex}).status_code for one in (where, missing)] == [404, 404]
    assert press(sign_in("omar"), address(house, "nothing")).status_code == 404
    assert sign_in("omar").get(where).status_code == 405


def test_what_cannot_be_asked_has_no_button(house: House, sign_in: SignIn) -> None:
    manifest = factories.billing_manifest()
    manifest["connectors"] |= {"till": {"kind": "manual"}, "idle": {"base_url": "http://127.0.0.1:9"}}
    factories.register(house.agent, manifest)
    page = said(sign_in("omar").get(LIST))
    assert "a person looks and attests" in page
    assert "there is nothing harmless to ask" in page
    press(sign_in("omar"), address(house, "till"))
    assert rows(house) == []


def test_a_lost_message_is_rung_again_and_a_test_that_nobody_ends_is_given_up(house: House, sign_in: SignIn) -> None:
    press(sign_in("omar"), address(house))
    [check] = rows(house)
    rung: list[uuid.UUID] = []
    assert sweep.sweep(ring=rung.append)["checks"] == 0
    advance_clock(seconds=3)
    assert sweep.sweep(ring=rung.append)["checks"] == 1
    assert check.pk in rung
    with wall.within(house.nordlicht.pk):
        ConnectorCheck.objects.filter(pk=check.pk).update(fence=checks.MOST_TAKES)
    advance_clock(seconds=3)
    sweep.sweep(ring=rung.append)
    assert [one.outcome for one in rows(house)] == ["abandoned"]


def test_a_worker_that_lost_its_lease_ends_nothing(
    house: House, sign_in: SignIn, asked: Callable[[Any], list[Any]]
) -> None:
    asked(httpx.Response(200, json={"items": []}))
    press(sign_in("omar"), address(house))
    [check] = rows(house)
    take = checks._take(house.nordlicht.pk, check.pk)
    assert take is not None
    assert checks._take(house.nordlicht.pk, check.pk) is None, "one at a time"
    with wall.within(house.nordlicht.pk):
        ConnectorCheck.objects.filter(pk=check.pk).update(fence=7)
    checks._end(take, checks.reach.Reached("answers", "late"))
    assert [one.outcome for one in rows(house)] == [""]


def test_what_is_known_against_a_connector_stands_beside_it_and_an_admin_lifts_it(
    house: House, sign_in: SignIn
) -> None:
    case = factories.unknown_credit(house.agent)
    now = read_clock()
    with wall.within(house.nordlicht.pk):
        demotion = Demotion.objects.create(
            tenant=house.nordlicht, connector="payments", workflow=case.run.workflow, run_id=case.run_id,
            action=case.action(), reason="An effect turned up late.", since=now,
        )  # fmt: skip
        Circuit.objects.create(
            tenant=house.nordlicht, name="connector:payments/north", state="open", until=now + timedelta(minutes=1)
        )
        OutsideSweep.objects.create(
            tenant=house.nordlicht, connector="payments", workflow=case.run.workflow, listed_until=now, due_at=now,
            failures=3, failure="The listing did not come in time.",
        )  # fmt: skip
    page = said(sign_in("omar").get(LIST))
    assert "An effect turned up late." in page
    assert "could not be listed 3 times since : The listing did not come in time." in page.replace(
        "since:", "since :"
    )
    assert "Open" in page
    assert "Trust it again" not in page
    where = f"/settings/demotions/{demotion.pk}/lift/"
    assert "your role does not include this" in said(
        sign_in("omar").post(where, {"lift_reason": "Mended."}, follow=True)
    )
    ada = sign_in("ada")
    assert ada.post(where, {"lift_reason": " "}).status_code == 422
    assert sign_in("charlie").post(where, {"lift_reason": "Mine."}).status_code == 404
    assert ada.post(where, {"lift_reason": "Mended."}).status_code == 303
    assert "An effect turned up late." not in said(ada.get(LIST))


def test_the_region_answers_304_until_a_test_moves(
    house: House, sign_in: SignIn, asked: Callable[[Any], list[Any]]
) -> None:
    asked(httpx.Response(200, json={"items": []}))
    omar = sign_in("omar")
    etag = omar.get(f"{LIST}live/").headers["ETag"]
    assert omar.get(f"{LIST}live/", headers={"If-None-Match": etag}).status_code == 304
    press(omar, address(house))
    moved = omar.get(f"{LIST}live/", headers={"If-None-Match": etag})
    assert moved.status_code == 200
    assert 'data-poll="1"' in moved.content.decode()
    worker.execute(rows(house)[0].pk)
    assert 'data-poll="5"' in omar.get(f"{LIST}live/").content.decode()


def test_the_page_asks_at_most_six_questions(house: House, sign_in: SignIn) -> None:
    for name in ("one", "two", "three"):
        factories.register(house.agent, factories.billing_manifest(sla_seconds=600), name=name)
    omar = sign_in("omar")
    press(omar, address(house))
    omar.get(LIST)
    with CaptureQueriesContext(connection) as questions:
        omar.get(LIST)
    own = [one["sql"] for one in questions if not any(word in one["sql"] for word in OVERHEAD)]
    assert len(own) <= 6, "\n\n".join(own)


def test_a_broken_form_asks_nobody(house: House, sign_in: SignIn) -> None:
    assert "The form was not whole" in said(press(sign_in("omar"), address(house), "no-key"))
    assert rows(house) == []
