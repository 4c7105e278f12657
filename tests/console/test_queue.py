"""The queue: causes with counts and money, tabs, tenants, paging, and what came since it was opened."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.builders import queue as build
from recovery.models import HumanTask
from recovery.work import decisions
from recovery.work.decisions import Order
from runs import wall
from tests import factories
from tests.console.conftest import House
from tests.console.test_task import plain
from tests.recovery.stories import ABSENT, look, script

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]

# Not the page's own: who is signed in, what they may do, opening the wall and the savepoints around it.
OVERHEAD = ("django_session", 'runs_person"."password', "guardian", "auth_group", "app.tenants", "SAVEPOINT")


def text(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200, response.content[:300]
    return response.content.decode()


def open_group(client: Client, url: str = "/") -> str:
    """The queue with its first cause open."""
    toggle = re.search(r'class="toggle" href="([^"]+)"', text(client, url))
    assert toggle
    return text(client, toggle[1].replace("&amp;", "&"))


def test_nobody_sees_a_page_without_signing_in(client: Client) -> None:
    response = client.get("/?view=mine")
    assert response.status_code == 302
    assert response.headers["Location"] == "/accounts/login/?next=/%3Fview%3Dmine"


def test_a_polling_region_of_a_signed_out_page_gets_no_sign_in_page(client: Client) -> None:
    assert client.get("/queue/news/", headers={"HX-Request": "true"}).status_code == 401


def test_tasks_of_one_cause_are_one_row_with_its_count_and_its_money(house: House, sign_in: SignIn) -> None:
    for _ in range(3):
        factories.unknown_credit(house.agent)
    html = text(sign_in("alice"), "/")
    assert html.count('class="group') == 1
    assert "apply_credit: outcome unknown after dispatch" in html
    assert "<b>3</b> tasks" in html
    assert "3 tasks in 1 cause, 360.00 EUR at risk" in html
    assert "Check all 3" in html


def test_a_cause_of_one_task_offers_its_recommended_action(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    html = text(sign_in("alice"), "/")
    assert f'href="/tasks/{case.task().pk}/reconcile/" data-sheet' in html


def test_a_check_is_offered_no_longer_than_the_page_of_the_task_allows_it(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = script(monkeypatch)
    looks.say(ABSENT)
    factories.register(house.agent, factories.billing_manifest(in_flight_seconds=None, max_looks=1))
    case = factories.open_run(house.agent)
    factories.lose_the_reply(case)
    alice = sign_in("alice")
    assert "Check what happened" in text(alice, "/")
    for _ in range(2):
        factories.advance_clock(minutes=2)
        look(case)
    queue, page = text(alice, "/"), plain(text(alice, f"/tasks/{case.task().pk}/"))
    assert "Blocked: all look-ups that the contract allows have been used." in page
    assert "Check what happened" not in queue
    assert "Check first" not in queue


def test_a_reader_is_offered_no_verb(house: House, sign_in: SignIn) -> None:
    factories.unknown_credit(house.agent)
    html = open_group(sign_in("bob"))
    assert "Check what happened" not in html
    assert "/claim/" not in html


def test_money_of_two_currencies_is_shown_side_by_side(house: House, sign_in: SignIn) -> None:
    factories.unknown_credit(house.agent)
    pounds = {**factories.ARGUMENTS["apply_credit"], "currency": "GBP", "amount_minor": 700}
    other = factories.open_run(house.agent, scope={})
    factories.report(other, factories.propose(other, "apply_credit", pounds), factories.timed_out())
    html = text(sign_in("alice"), "/")
    assert "120.00 EUR and 7.00 GBP at risk" in html
    assert html.count('class="group') == 1
    assert "<b>2</b> tasks" in html


def test_an_open_cause_shows_its_tasks_and_closes_again(house: House, sign_in: SignIn) -> None:
    factories.unknown_credit(house.agent, intent="Goodwill after the outage")
    html = open_group(sign_in("alice"))
    assert "Goodwill after the outage" in html
    assert 'aria-expanded="true"' in html
    assert 'class="toggle" href="/?"' in html


def test_a_task_repeats_nothing_that_its_cause_says(house: House, sign_in: SignIn) -> None:
    for _ in range(2):
        factories.unknown_credit(house.agent)
    html = open_group(sign_in("alice"))
    assert html.count('class="member"') == 2
    assert html.count("a write below the threshold") == 1


def test_the_more_consequential_cause_comes_first(house: House, sign_in: SignIn) -> None:
    factories.finish(factories.open_run(house.agent))
    factories.unknown_credit(house.agent)
    html = text(sign_in("alice"), "/")
    assert html.index("outcome unknown after dispatch") < html.index("A required effect is missing")


def test_the_tasks_of_a_cause_are_paged_by_key(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "MAX_ROWS", 2)
    for name in ("one", "two", "three", "four", "five"):
        factories.unknown_credit(house.agent, intent=f"Case {name}.")
    alice, seen = sign_in("alice"), []
    html = open_group(alice)
    assert "3 more tasks in this group" in html
    while True:
        seen += re.findall(r"Case (\w+)\.", html)
        more = re.search(r'<tr class="member more">.*?href="([^"]+)"', html)
        if more is None:
            break
        html = text(alice, more[1].replace("&amp;", "&"))
    assert seen == ["one", "two", "three", "four", "five"]


def order(house: House, name: str, task: HumanTask, **more: Any) -> Order:
    return Order(task.pk, house.people[name], "because", "", task.version, "a" * 32, **more)


def test_each_tab_holds_its_own_tasks_and_says_how_many(house: House, sign_in: SignIn) -> None:
    mine = factories.unknown_credit(house.agent, intent="Claimed by alice")
    factories.unknown_credit(house.agent, intent="Held by nobody")
    factories.finish(factories.open_run(house.agent, intent="Ended too early"))
    decisions.claim(order(house, "alice", mine.task()))
    alice = sign_in("alice")
    counts = dict(re.findall(r'<a href="/\?[^"]*"[^>]*>([\w ]+)<span class="n ">(\d+)', text(alice, "/")))
    assert counts == {"All": "3", "Mine": "1", "Unowned": "2", "Unknown writes": "2"}
    assert "Claimed by alice" in open_group(alice, "/?view=mine")
    assert "Held by nobody" not in open_group(alice, "/?view=mine")
    assert "A required effect is missing" not in text(alice, "/?view=unknown")


def test_a_task_past_its_due_time_is_breaching(house: House, sign_in: SignIn) -> None:
    factories.unknown_credit(house.agent)
    alice = sign_in("alice")
    assert "No task is past its time." in text(alice, "/?view=breaching")
    factories.advance_clock(hours=2)
    html = text(alice, "/?view=breaching")
    assert "Breached 1 h" in html
    assert '<span class="n bad">1</span>' in html


def test_a_count_above_a_thousand_is_not_counted_out(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.filters.CAP", 2)
    for _ in range(3):
        factories.unknown_credit(house.agent)
    assert '<span class="n ">2+</span>' in text(sign_in("alice"), "/")


def test_another_tenants_tasks_do_not_exist(house: House, sign_in: SignIn) -> None:
    factories.unknown_credit(house.neighbour, intent="Harbor's own secret")
    for name in ("alice", "ada", "nia"):
        assert "No open tasks." in text(sign_in(name), "/")
    assert "Harbor&#x27;s own secret" in open_group(sign_in("charlie"))


def test_the_switcher_offers_ones_own_tenants_only_and_narrows_the_list(house: House, sign_in: SignIn) -> None:
    alice = sign_in("alice")
    factories.unknown_credit(house.agent)
    assert "Harbor" not in text(alice, "/")
    assert "1 task in 1 cause" in text(alice, "/?tenant=nordlicht")
    assert alice.get("/?tenant=harbor").status_code == 404
    assert alice.get("/?tenant=nowhere").status_code == 404


def test_somebody_of_two_tenants_sees_both_and_may_choose(house: House, sign_in: SignIn) -> None:
    factories.permissions.grant_role(house.people["alice"], house.harbor, "viewer")
    factories.unknown_credit(house.agent)
    factories.unknown_credit(house.neighbour)
    alice = sign_in("alice")
    assert "2 tasks in 2 causes" in text(alice, "/")
    assert "1 task in 1 cause" in text(alice, "/?tenant=harbor")


def test_somebody_without_a_tenant_is_told_so(house: House) -> None:
    house.people["zoe"] = factories.make_person("zoe")
    assert "You belong to no tenant yet." in text(house.browser("zoe"), "/")


def test_the_queue_asks_at_most_six_questions_however_many_tasks(house: House, sign_in: SignIn) -> None:
    for _ in range(4):
        factories.unknown_credit(house.agent)
    alice = sign_in("alice")
    toggle = re.search(r'class="toggle" href="([^"]+)"', text(alice, "/"))
    assert toggle
    with CaptureQueriesContext(
        connection,
    ) as asked:
        text(alice, toggle[1].replace("&amp;", "&"))
    own = [one["sql"] for one in asked if not any(word in one["sql"] for word in OVERHEAD)]
    assert len(own) <= 6, "\n\n".join(own)


def test_the_title_line_answers_304_until_a_task_comes_or_moves(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    alice = sign_in("alice")
    found = re.search(r'data-etag="([^"]+)" hx-get="([^"]+)"', text(alice, "/"))
    assert found
    etag, url = found[1].replace("&quot;", '"'), found[2].replace("&amp;", "&")
    again = alice.get(url, headers={"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")
    assert re.fullmatch(r"\d\d:\d\d:\d\d", again.headers["X-Checked-At"])
    decisions.claim(order(house, "alice", case.task()))
    moved = alice.get(url, headers={"If-None-Match": etag})
    assert moved.status_code == 200
    assert "Nothing new since" in moved.content.decode()
    factories.unknown_credit(house.agent)
    fresh = alice.get(url, headers={"If-None-Match": moved.headers["ETag"]}).content.decode()
    assert "1 new task, show" in fresh
    assert "2 tasks in 1 cause, 240.00 EUR at risk" in fresh


def test_two_people_never_share_an_etag(house: House, sign_in: SignIn) -> None:
    factories.unknown_credit(house.agent)
    tags = {sign_in(name).get("/queue/news/").headers["ETag"] for name in ("alice", "omar", "bob")}
    assert len(tags) == 3


def test_a_record_that_cannot_be_shown_is_one_marked_row(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = factories.unknown_credit(house.agent, intent="Broken").task()
    factories.unknown_credit(house.agent, intent="Sound")
    whole = build.row

    def row(visit: Any, task: HumanTask) -> Any:
        if task.pk == broken.pk:
            raise LookupError("no look for the state")
        return whole(visit, task)

    monkeypatch.setattr(build, "row", row)
    html = open_group(sign_in("alice"))
    assert "Sound" in html
    assert f'title="{broken.pk}"' in html
    assert html.count("This record cannot be read") == 1


def test_what_a_customer_wrote_is_only_text(house: House, sign_in: SignIn) -> None:
    factories.unknown_credit(house.agent, intent="<script>alert(1)</script> ' \" {{ x }}")
    html = open_group(sign_in("alice"))
    assert "<script>alert(1)" not in html
    assert "&lt;script&gt;alert(1)" in html


@pytest.mark.parametrize("address", ["?view=everything", "?tenant=%00", "?view=%00"])
def test_an_address_that_names_nothing_is_not_found(house: House, sign_in: SignIn, address: str) -> None:
    assert sign_in("alice").get(f"/{address}").status_code == 404


@pytest.mark.parametrize("address", ["?open=%00", "?open=zzz", "?after=zzz", "?after=%00&open=1"])
def test_an_address_with_a_foreign_mark_shows_the_queue(house: House, sign_in: SignIn, address: str) -> None:
    factories.unknown_credit(house.agent)
    assert "1 task in 1 cause" in text(sign_in("alice"), f"/{address}")


def test_a_queue_read_by_an_ended_session_asks_to_sign_in_again(
    house: House, sign_in: SignIn, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = sign_in("alice")
    text(alice, "/")
    monkeypatch.setattr("console.access.time.time", lambda: 9e9)
    assert alice.get("/").status_code == 302
    assert alice.get("/").status_code == 302


def test_the_wall_closes_again_after_a_page(house: House, sign_in: SignIn) -> None:
    factories.unknown_credit(house.agent)
    with transaction.atomic():
        wall.open_to([])
    text(sign_in("alice"), "/")
    assert HumanTask.objects.count() == 0
    with wall.within(house.nordlicht.pk):
        assert HumanTask.objects.count() == 1


def test_an_amount_that_no_tool_declares_is_not_called_none(house: House, sign_in: SignIn) -> None:
    case = factories.open_run(house.agent)
    factories.lose_the_reply(case, "draft_reply")
    html = open_group(sign_in("alice"))
    assert html.count("amount not declared") == 3
    assert ", 1 amount not declared" in html
    assert "no money" not in html


def test_the_claim_key_has_a_form_for_a_single_task_or_a_sentence(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    alice = sign_in("alice")
    html = text(alice, "/")
    form = re.search(rf'<span hidden>.*?action="/tasks/{case.task().pk}/claim/".*?</form>', html, re.DOTALL)
    assert form
    marks = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form[0]))
    assert alice.post(f"/tasks/{case.task().pk}/claim/", marks).status_code == 303
    assert case.task().claimed_by == house.people["alice"]
    assert 'data-no-claim="You hold this already.' in text(alice, "/")
    assert 'data-no-claim="Alice holds this already."' in text(sign_in("omar"), "/")
    assert 'data-no-claim="You cannot claim here: your role does not include this."' in text(sign_in("bob"), "/")
    factories.unknown_credit(house.agent)
    assert " data-several" in text(alice, "/")


def test_an_amount_without_a_currency_is_not_declared_and_not_called_none(house: House, sign_in: SignIn) -> None:
    made = factories.billing_manifest()
    credit = next(tool for tool in made["tools"] if tool["name"] == "apply_credit")
    credit["input_schema"] = {"type": "object"}
    factories.register(house.agent, made)
    case = factories.open_run(house.agent, scope={})
    asked = {"account": factories.ACCOUNT, "invoice": factories.INVOICE, "amount_minor": 4200}
    factories.report(case, factories.propose(case, "apply_credit", asked), factories.timed_out(), "apply_credit")
    html = open_group(sign_in("alice"))
    assert ", 1 amount not declared" in html
    assert html.count("amount not declared") == 3
    assert "no money" not in html
    task = text(sign_in("alice"), f"/tasks/{case.task().pk}/")
    assert "amount not declared" in task
