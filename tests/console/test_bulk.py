"""Bulk operations in a browser: chosen in the queue, frozen, looked at, started, moved; without script."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from recovery.models import BulkItem, BulkOperation
from recovery.work import bulk_run, looks
from runs import wall
from runs.querysets import read_clock
from tests import factories
from tests.console.conftest import House
from tests.console.desk import said
from tests.console.test_queue import OVERHEAD, open_group, text
from tests.factories import Case
from tests.recovery.stories import Looks, present, press, script, waiting

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]


@pytest.fixture(autouse=True)
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """No broker stands behind these tests: the sweep would find what is due."""
    monkeypatch.setattr("console.views.bulk.ring", lambda operation_id: None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Looks:
    found = script(monkeypatch)
    found.say(present())
    return found


def unknown(house: House, many: int) -> list[Case]:
    return [factories.unknown_credit(house.agent) for _ in range(many)]


def fields(html: str, action: str) -> dict[str, str]:
    """The marks and the typed fields of the form that posts to this address."""
    start = html.index(f'action="{action}"')
    form = html[start : html.index("</form>", start)]
    found = dict(re.findall(r'<input[^>]* name="(\w+)" value="([^"]*)"', form))
    codes = re.findall(r'<option value="(\w+)"', form)
    return {**found, **({"reason_code": codes[0]} if codes and "reason_code" not in found else {}), "reason": ""}


def freeze(client: Client, query: str = "?verb=reconcile", **typed: str) -> HttpResponse:
    html = text(client, f"/bulk/new/{query}")
    form = re.search(r'<form method="post" action="(/bulk/new/[^"]*)"', html)
    assert form, said(client.get(f"/bulk/new/{query}"))
    action = form[1]
    return client.post(action.replace("&amp;", "&"), {**fields(html, action), **typed})


def frozen(client: Client, query: str = "?verb=reconcile", **typed: str) -> str:
    response = freeze(client, query, **typed)
    assert response.status_code == 303, said(response)
    return response.headers["Location"]


def start(client: Client, url: str, **typed: str) -> HttpResponse:
    return client.post(f"{url}start/", {**fields(text(client, url), f"{url}start/"), **typed})


def begun(client: Client, url: str, **typed: str) -> None:
    assert start(client, url, **typed).status_code == 303


def move(client: Client, url: str, what: str) -> HttpResponse:
    return client.post(f"{url}{what}/", fields(text(client, url), f"{url}{what}/"))


def pass_on(house: House, url: str, passes: int = 1) -> None:
    for _ in range(passes):
        bulk_run.execute(uuid.UUID(url.split("/")[2]), ring=lambda _: None)
        looks.execute_many(waiting(house.nordlicht.pk))
        factories.advance_clock(seconds=6)


def operations(house: House) -> list[BulkOperation]:
    with wall.within(house.nordlicht.pk):
        return list(BulkOperation.objects.order_by("pk"))


def items(house: House) -> list[BulkItem]:
    with wall.within(house.nordlicht.pk):
        return list(BulkItem.objects.order_by("operation", "place"))


# --- from the queue ------------------------------------------------------------------------------------------


def test_a_cause_is_done_for_all_and_the_confirmation_says_what_and_how_many(house: House, sign_in: SignIn) -> None:
    unknown(house, 3)
    factories.finish(factories.open_run(house.agent))
    omar = sign_in("omar")
    [url] = re.findall(r'href="(/bulk/new/\?verb=reconcile[^"]*)"', text(omar, "/"))
    page = said(omar.get(url.replace("&amp;", "&")))
    assert "Check what happened: 3 tasks" in page
    assert "Every open task of the cause “apply_credit: outcome unknown after dispatch” in billing-case." in page
    assert "Nordlicht Energie" in page
    assert "billing-case v1 (3)" in page
    assert "It reads only; nothing is sent again." in page
    where = frozen(omar, url.replace("&amp;", "&").removeprefix("/bulk/new/"))
    assert len(items(house)) == 3
    assert "3 = 0 done + 0 skipped + 0 failed + 3 pending." in said(omar.get(where))


def test_U01_a_filter_of_the_queue_goes_along_to_the_list_that_is_frozen(house: House, sign_in: SignIn) -> None:
    unknown(house, 1)
    dear = {**factories.ARGUMENTS["apply_credit"], "amount_minor": 15_000}
    for _ in range(2):
        case = factories.open_run(house.agent)
        factories.report(case, factories.propose(case, "apply_credit", dear), factories.timed_out())
    omar = sign_in("omar")
    [url] = re.findall(r'href="(/bulk/new/[^"]*)"', text(omar, "/?above=130&currency=EUR"))
    page = said(omar.get(url.replace("&amp;", "&")))
    assert "Check what happened: 2 tasks" in page
    assert "(Amount: above 130 EUR)" in page
    frozen(omar, url.replace("&amp;", "&").removeprefix("/bulk/new/"))
    assert case.task().pk in {item.task_id for item in items(house)}
    assert len(items(house)) == 2


def test_tasks_are_ticked_one_by_one_without_script(house: House, sign_in: SignIn) -> None:
    cases = unknown(house, 3)
    omar = sign_in("omar")
    html = open_group(omar)
    boxes = re.findall(r'type="checkbox" name="task" value="([^"]+)" form="chosen"', html)
    assert set(boxes) == {str(case.task().pk) for case in cases}
    assert '<form id="chosen" action="/bulk/new/">' in html
    assert re.findall(r'<option value="(\w+)"', html[html.index('id="chosen"') :])[0] == "reconcile"
    page = said(omar.get(f"/bulk/new/?tenant=&verb=claim&task={boxes[0]}&task={boxes[2]}"))
    assert "Claim: 2 tasks" in page
    assert "2 tasks chosen one by one." in page
    frozen(omar, f"?verb=claim&task={boxes[0]}&task={boxes[2]}")
    assert {str(item.task_id) for item in items(house)} == {boxes[0], boxes[2]}


def test_somebody_who_may_only_read_is_offered_nothing(house: House, sign_in: SignIn) -> None:
    unknown(house, 2)
    bob = sign_in("bob")
    assert "checkbox" not in open_group(bob)
    assert "/bulk/new/" not in open_group(bob)
    page = said(bob.get("/bulk/new/?verb=reconcile"))
    assert "Your role does not include this." in page
    assert "Freeze" not in page


# --- the selection -------------------------------------------------------------------------------------------


def test_U06_nothing_is_closed_without_a_filter(house: House, sign_in: SignIn) -> None:
    unknown(house, 2)
    omar = sign_in("omar")
    assert "Nothing is closed without a filter." in said(omar.get("/bulk/new/?verb=cancel"))
    assert "Nothing is closed without a filter." in said(omar.get("/bulk/new/?verb=cancel&tenant=nordlicht"))
    assert omar.post("/bulk/new/?verb=cancel", {"key": "a" * 32}).status_code == 422
    assert operations(house) == []
    assert "“Unknown writes”." in said(omar.get("/bulk/new/?verb=cancel&view=unknown"))
    frozen(omar, "?verb=cancel&view=unknown")


def test_U06_it_takes_exactly_the_filter(house: House, sign_in: SignIn) -> None:
    early, late = unknown(house, 1)[0], None
    factories.advance_clock(minutes=30)
    late = unknown(house, 1)[0]
    moment = (read_clock() - timedelta(minutes=10)).isoformat().replace("+", "%2B")
    omar = sign_in("omar")
    frozen(omar, f"?verb=claim&connector=payments&until={moment}")
    frozen(omar, f"?verb=claim&connector=payments&since={moment}")
    assert [item.task_id for item in items(house)] == [early.task().pk, late.task().pk]
    page = said(omar.get("/bulk/new/?verb=claim&connector=nobody"))
    assert "There is no open task in this selection now." in page


def test_a_selection_over_two_tenants_makes_the_person_choose_one(house: House, sign_in: SignIn) -> None:
    factories.permissions.grant_role(house.people["omar"], house.harbor, "oncall")
    unknown(house, 2)
    factories.unknown_credit(house.neighbour)
    omar = sign_in("omar")
    page = said(omar.get("/bulk/new/?verb=claim&view=unknown"))
    assert "An operation belongs to one tenant. Choose whose tasks are meant:" in page
    assert "Nordlicht Energie: 2 tasks" in page
    assert "Harbor Travel: 1 task" in page
    assert omar.post("/bulk/new/?verb=claim&view=unknown", {"key": "a" * 32}).status_code == 422
    frozen(omar, "?verb=claim&view=unknown&tenant=harbor")
    assert operations(house) == []


def test_U25_tasks_of_several_workflow_versions_make_the_person_choose_and_the_choice_is_kept(
    house: House, sign_in: SignIn
) -> None:
    unknown(house, 1)
    factories.register(house.agent, factories.billing_manifest(sla_seconds=1800))
    unknown(house, 1)
    omar = sign_in("omar")
    assert "billing-case v1 (1), billing-case v2 (1)" in said(omar.get("/bulk/new/?verb=claim"))
    bare = freeze(omar, "?verb=claim", versions="")
    assert bare.status_code == 422
    assert "Say which you mean." in said(bare)
    [second] = re.findall(r'<option value="([^"]+)">Only billing-case v2', text(omar, "/bulk/new/?verb=claim"))
    url = frozen(omar, "?verb=claim", versions=second)
    assert len(items(house)) == 1
    assert "Workflow versions billing-case v2" in said(omar.get(url))


@pytest.mark.parametrize("verb", ["compensate", "attest", "waive", "approve"])
def test_what_is_never_done_in_bulk_says_why(house: House, sign_in: SignIn, verb: str) -> None:
    unknown(house, 2)
    ada = sign_in("ada")
    page = said(ada.get(f"/bulk/new/?verb={verb}"))
    assert "Never in bulk:" in page
    assert ada.post(f"/bulk/new/?verb={verb}", {"key": "a" * 32}).status_code == 422
    assert operations(house) == []


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("?verb=fly", 404, ""),
        ("?verb=claim&view=fly", 404, ""),
        ("?verb=claim&task=nobody", 404, ""),
        ("?verb=claim&tenant=harbor", 404, ""),
        ("?verb=claim&since=yesterday", 400, "since: write a moment with its offset"),
        ("?verb=claim&colour=red", 200, "This list does not know"),
    ],
)
def test_an_address_that_cannot_be_read_says_what_would_be_right(
    house: House, sign_in: SignIn, query: str, status: int, words: str
) -> None:
    response = sign_in("omar").get(f"/bulk/new/{query}")
    assert response.status_code == status
    assert words in said(response)


# --- one operation -------------------------------------------------------------------------------------------


def test_a_whole_operation_from_the_dry_run_to_its_end(house: House, sign_in: SignIn, asked: Looks) -> None:
    cases = unknown(house, 4)
    press("claim", cases[3], house.people["alice"])
    omar = sign_in("omar")
    url = frozen(omar, "?verb=reconcile&view=unknown")
    page = said(omar.get(url))
    assert "Not started" in page
    assert re.search(r"Will run 3 .*Blocked 1 Alice holds this task until", page)
    assert "Check what happened: start with 3" in page
    begun(omar, url, canary="2", rate="600", reason="The outage is over.")
    pass_on(house, url, 4)
    page = said(omar.get(url))
    assert "4 = 3 done + 1 skipped + 0 failed + 0 pending." in page
    assert "Partly done" in page
    assert "One record is ours: cr_1." in page
    assert "canary, present" in page
    assert "Started by Omar at" in page
    assert "Resume" not in page
    assert "Take the 1 left as a selection" in page


def test_U07_a_double_click_makes_one_operation_and_starts_it_once(house: House, sign_in: SignIn) -> None:
    unknown(house, 2)
    omar = sign_in("omar")
    html = text(omar, "/bulk/new/?verb=claim")
    marks = fields(html, "/bulk/new/?verb=claim")
    first, second = (omar.post("/bulk/new/?verb=claim", marks).headers["Location"] for _ in range(2))
    assert first == second
    form = {**fields(text(omar, first), f"{first}start/"), "canary": "0"}
    assert [omar.post(f"{first}start/", form).status_code for _ in range(2)] == [303, 303]
    assert [one.state for one in operations(house)] == ["running"]


def test_a_field_that_cannot_be_used_keeps_what_was_typed(house: House, sign_in: SignIn) -> None:
    unknown(house, 1)
    omar = sign_in("omar")
    url = frozen(omar)
    for typed, words in (
        ({"rate": "0"}, "Write at least 1."),
        ({"rate": "9000"}, "Write a rate from 1 to 3,000 a minute."),
        ({"canary": "some"}, "Write a whole number."),
        ({"reason_code": "other"}, "Say why in words"),
    ):
        response = start(omar, url, **{"reason": "", **typed})
        assert (response.status_code, words in said(response)) == (422, True), said(response)
    assert 'value="0"' in start(omar, url, rate="0").content.decode()
    assert [one.state for one in operations(house)] == ["created"]


def test_U09_after_a_post_the_page_shows_the_stored_state_and_what_can_be_done(house: House, sign_in: SignIn) -> None:
    unknown(house, 3)
    omar = sign_in("omar")
    url = frozen(omar, "?verb=claim")
    begun(omar, url, canary="0", rate="12")
    pass_on(house, url)
    assert move(omar, url, "suspend").status_code == 303
    page = said(omar.get(url))
    assert re.search(r"Omar suspended it at \d\d:\d\d:\d\d UTC", page)
    assert "2 items are pending and nothing is begun." in page
    assert "10 s at least, after resume" in page
    assert '<button class="btn fill">' in text(omar, url)
    assert move(omar, url, "resume").status_code == 303
    assert move(omar, url, "stop").status_code == 303
    page = said(omar.get(url))
    assert "Stopped" in page
    assert "3 = 1 done + 0 skipped + 0 failed + 2 pending." in page


def test_F117_the_loser_of_a_race_reads_who_was_faster(house: House, sign_in: SignIn) -> None:
    unknown(house, 2)
    omar, alice = sign_in("omar"), sign_in("alice")
    url = frozen(omar, "?verb=claim")
    begun(omar, url, canary="0")
    late = fields(text(alice, url), f"{url}suspend/")
    move(omar, url, "stop")
    response = alice.post(f"{url}suspend/", late)
    assert response.status_code == 409
    assert "Omar stopped it at" in said(response)


def test_the_leftovers_become_a_selection_of_their_own(house: House, sign_in: SignIn) -> None:
    cases = unknown(house, 3)
    omar = sign_in("omar")
    url = frozen(omar, "?verb=claim")
    begun(omar, url, canary="0", rate="12")
    pass_on(house, url)
    move(omar, url, "stop")
    [link] = re.findall(r'href="(/bulk/new/[^"]*from=[^"]*)"', text(omar, url))
    page = said(omar.get(link.replace("&amp;", "&")))
    assert "Claim: 2 tasks" in page
    assert "What another operation left: its items that were not done." in page
    frozen(omar, link.replace("&amp;", "&").removeprefix("/bulk/new/"))
    second = operations(house)[1]
    with wall.within(house.nordlicht.pk):
        assert {item.task_id for item in second.items.all()} == {case.task().pk for case in cases[1:]}


def test_what_joined_since_is_counted_and_not_included(house: House, sign_in: SignIn) -> None:
    unknown(house, 2)
    omar = sign_in("omar")
    url = frozen(omar, "?verb=claim&view=unknown")
    assert "joined this selection" not in said(omar.get(url))
    unknown(house, 1)
    assert "1 task joined this selection since and are not included." in said(omar.get(url))
    assert len(items(house)) == 2


def test_items_are_filtered_and_paged_by_their_place(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.builders.bulk.PAGE", 2)
    cases = unknown(house, 5)
    press("claim", cases[0], house.people["alice"])
    omar = sign_in("omar")
    url = frozen(omar, "?verb=claim")
    numbers = [f"T-{case.task().number}" for case in cases]
    first = text(omar, url)
    assert re.findall(r'class="under">(T-\d+)', first) == numbers[:2]
    [later] = re.findall(r'href="([^"]*after=2[^"]*)#items"', first)
    assert re.findall(r'class="under">(T-\d+)', text(omar, later.replace("&amp;", "&"))) == numbers[2:4]
    assert re.findall(r'class="under">(T-\d+)', text(omar, f"{url}?kind=blocked")) == numbers[:1]
    assert "No item is so." in text(omar, f"{url}?state=failed")
    assert omar.get(f"{url}?state=odd").status_code == 404


def test_F122_an_operation_of_another_tenant_and_a_missing_one_answer_alike(house: House, sign_in: SignIn) -> None:
    unknown(house, 1)
    url = frozen(sign_in("omar"), "?verb=claim")
    charlie, missing = sign_in("charlie"), f"/bulk/{uuid.uuid4()}/"
    form = {"version": "0", "key": "a" * 32}
    for path in ("", "live/"):
        assert charlie.get(url + path).status_code == charlie.get(missing + path).status_code == 404
    for path in ("start/", "suspend/", "resume/", "stop/"):
        assert charlie.post(url + path, form).status_code == charlie.post(missing + path, form).status_code == 404
    assert "No bulk operation is under way." in said(charlie.get("/bulk/"))
    left = charlie.get(f"/bulk/new/?verb=claim&from={url.split('/')[2]}")
    assert "There is no open task in this selection now." in said(left)


@pytest.mark.parametrize("name", ["bob", "nia"])
def test_SEC_06_a_reader_sees_it_and_moves_nothing(house: House, sign_in: SignIn, name: str) -> None:
    unknown(house, 2)
    url = frozen(sign_in("omar"), "?verb=claim")
    reader = sign_in(name)
    assert "2 = 0 done + 0 skipped + 0 failed + 2 pending." in said(reader.get(url))
    assert not re.search(r'action="/bulk/', text(reader, url).split('id="reason-title"')[0])
    for what in ("suspend", "stop", "resume"):
        assert reader.post(f"{url}{what}/", {"version": "0", "key": "a" * 32}).status_code in (403, 409)
    assert [one.state for one in operations(house)] == ["created"]


def test_the_live_part_answers_304_until_something_moves(house: House, sign_in: SignIn) -> None:
    unknown(house, 2)
    omar = sign_in("omar")
    url = frozen(omar, "?verb=claim")
    begun(omar, url, canary="0")
    found = re.search(r'id="bulk" data-poll="(\d)" data-etag="([^"]+)" hx-get="([^"]+)"', text(omar, url))
    assert found
    assert found[1] == "1", "once a second while it runs"
    etag, live = found[2].replace("&quot;", '"'), found[3].replace("&amp;", "&")
    assert omar.get(live, headers={"If-None-Match": etag}).status_code == 304
    pass_on(house, url)
    moved = omar.get(live, headers={"If-None-Match": etag})
    assert moved.status_code == 200
    assert "2 = 2 done + 0 skipped + 0 failed + 0 pending." in said(moved)


def test_the_list_shows_what_runs_first_and_what_ended_apart(house: House, sign_in: SignIn) -> None:
    unknown(house, 2)
    omar = sign_in("omar")
    assert "No bulk operation is under way." in said(omar.get("/bulk/"))
    running, waits = frozen(omar, "?verb=claim"), frozen(omar, "?verb=comment")
    begun(omar, running, canary="0")
    page = text(omar, "/bulk/")
    assert page.index(running) < page.index(waits)
    pass_on(house, running)
    assert running not in text(omar, "/bulk/")
    assert "2 done" in said(omar.get("/bulk/?view=ended"))
    assert 'href="/bulk/' in text(omar, "/")


@pytest.mark.parametrize("where", ["/bulk/", "/bulk/new/?verb=claim&view=unknown", "operation"])
def test_each_page_asks_at_most_six_questions(house: House, sign_in: SignIn, where: str) -> None:
    unknown(house, 3)
    omar = sign_in("omar")
    url = frozen(omar, "?verb=reconcile&view=unknown")
    begun(omar, url)
    text(omar, url)
    with CaptureQueriesContext(connection) as asked:
        text(omar, url if where == "operation" else where)
    own: list[Any] = [one["sql"] for one in asked if not any(word in one["sql"] for word in OVERHEAD)]
    assert len(own) <= 6, "\n\n".join(own)


def test_hostile_words_stay_words(house: House, sign_in: SignIn) -> None:
    factories.unknown_credit(house.agent, intent="<script>alert(1)</script>")
    omar = sign_in("omar")
    html = text(omar, frozen(omar, "?verb=claim"))
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)" in html
