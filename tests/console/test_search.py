"""Search: every form by which a thing is known, only among one's own tenants, and by an index each."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.http import urlencode

from console import finding
from console.builders import search as build
from recovery import permissions
from recovery.models import DeadLetter, Decision
from runs import wall
from runs.models import Action, Effect
from tests import factories
from tests.console.conftest import House
from tests.console.desk import said
from tests.console.test_letters import spent
from tests.console.test_queue import OVERHEAD
from tests.factories import Case
from tests.recovery.stories import press

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]


def find(client: Client, text: str, **more: str) -> str:
    """The page that a search for the text opens, as a browser sends it."""
    response = client.get("/search/?" + urlencode({"q": text, **more}))
    assert response.status_code == 200, response.content[:300]
    return response.content.decode()


def rows(html: str) -> list[str]:
    """Where the rows of a result lead."""
    return re.findall(r'<a href="([^"]+)" data-open>', html)


def straight(client: Client, text: str) -> str:
    """Where a search leads without a page in between."""
    response = client.get("/search/?" + urlencode({"q": text}))
    assert response.status_code == 302, response.content[:300]
    return response.headers["Location"]


def run_of(case: Case) -> str:
    return f"/runs/{case.run_id}/"


def one(case: Case, model: type[Any], **lookup: Any) -> Any:
    with wall.within(case.tenant.pk):
        return model.objects.filter(run_id=case.run_id, **lookup).latest("id")


# --- the forms ------------------------------------------------------------------------------------------------


def test_the_whole_id_of_a_run_a_call_or_a_task_leads_straight_to_it(house: House, sign_in: SignIn) -> None:
    case, alice = factories.unknown_credit(house.agent), sign_in("alice")
    task = case.task()
    assert straight(alice, str(case.run_id)) == run_of(case)
    assert straight(alice, f" {case.run_id} ") == run_of(case), "pasted with blanks around it"
    assert straight(alice, str(case.run_id).upper()) == run_of(case)
    assert straight(alice, case.action().action_id) == run_of(case)
    for number in (f"#{task.number}", f"T-{task.number}", f"t{task.number}", str(task.pk)):
        assert straight(alice, number) == f"/tasks/{task.pk}/"


def test_the_beginning_of_an_id_lists_the_runs_that_begin_so(house: House, sign_in: SignIn) -> None:
    case = factories.open_run(house.agent)
    html = find(sign_in("alice"), str(case.run_id)[:13])
    assert run_of(case) in rows(html)
    assert f"<mark>{str(case.run_id)[:13]}</mark>" in html
    assert rows(find(sign_in("alice"), str(case.run_id)[:7])) == [], "seven characters are no beginning yet"


def test_a_bare_number_is_a_task_and_may_be_something_else(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    number = str(case.task().number)
    other = factories.open_run(house.agent, customer_ref=number)
    assert set(rows(find(sign_in("alice"), number))) == {f"/tasks/{case.task().pk}/", run_of(other)}


def test_an_external_id_finds_the_call_that_made_the_effect(house: House, sign_in: SignIn) -> None:
    case = factories.open_run(house.agent)
    factories.succeed(case)
    external = one(case, Effect).external_id
    html = find(sign_in("alice"), external)
    assert rows(html) == [run_of(case)]
    assert f"<mark>{external}</mark>" in html
    assert "Proven" in said(sign_in("alice").get("/search/", {"q": external}))


def test_a_dead_letter_and_a_decision_are_found_by_their_ids(house: House, sign_in: SignIn) -> None:
    case = spent(house, factories.reply({"error": "slow down"}, status=429))
    letter = one(case, DeadLetter)
    assert straight(sign_in("alice"), str(letter.pk)) == f"/tasks/{case.task().pk}/"
    other = factories.unknown_credit(house.agent)
    press("claim", other, house.people["alice"])
    assert one(other, Decision) is not None
    found = straight(sign_in("alice"), str(one(other, Decision).pk))
    assert found == f"/tasks/{other.task().pk}/"


HARD = [
    "cust/88",
    "50%",
    'it\'s "so"',
    "with  two blanks".replace("  ", " "),
    "😀 Ünïcode",
    "a&b=c#d?e",
    "%2F",
    "x'; --",
    "{{ 7 }}",
]


@pytest.mark.parametrize("reference", HARD)
def test_U17_a_reference_of_any_signs_opens_from_the_field_and_from_a_pasted_link(
    reference: str, house: House, sign_in: SignIn
) -> None:
    case = factories.open_run(house.agent, customer_ref=reference)
    assert rows(find(sign_in("alice"), reference)) == [run_of(case)]
    named = factories.open_run(house.agent, ref=f"{reference} 2")
    assert rows(find(sign_in("alice"), f"{reference} 2")) == [run_of(named)]


@pytest.mark.parametrize(
    ("intent", "typed"),
    [
        ("Refund INV-20931 for Anna Müller", "müller"),
        ("Refund INV-20931 for Anna Müller", "20931"),
        ("Refund INV-20931 for Anna Müller", "inv-209"),
        ("Refund INV-20931 for Anna Müller", "anna refund"),
        ("Возврат денег клиенту", "возвр"),
        ("返金 請求書", "請求"),
        ("mail anna@example.com about it", "anna@example"),
        ("it's broken\\here", "it's"),
    ],
)
def test_words_of_an_intent_find_its_run_in_every_language(
    intent: str, typed: str, house: House, sign_in: SignIn
) -> None:
    case, other = factories.open_run(house.agent, intent=intent), factories.open_run(house.agent, intent="Nothing")
    found = rows(find(sign_in("alice"), typed))
    assert found == [run_of(case)]
    assert run_of(other) not in found


def test_all_words_must_be_there(house: House, sign_in: SignIn) -> None:
    factories.open_run(house.agent, intent="Refund for Anna")
    assert rows(find(sign_in("alice"), "refund berta")) == []


@pytest.mark.parametrize("typed", ["!", "'", ":*", "& | !", "''':*'''", "(", "\\", "%", "😀"])
def test_signs_alone_are_no_words_and_find_nothing(typed: str, house: House, sign_in: SignIn) -> None:
    factories.open_run(house.agent, intent="Refund for Anna")
    assert rows(find(sign_in("alice"), typed)) == []


# --- the page -------------------------------------------------------------------------------------------------


def test_results_stand_by_kind_with_state_tenant_and_age(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    number = case.task().number
    factories.open_run(house.agent, customer_ref=str(number), intent="Another one")
    page = said(sign_in("alice").get("/search/", {"q": str(number)}))
    assert page.index("Tasks 1") < page.index("Runs 1")
    assert "Open" in page
    assert "Nordlicht Energie" in page
    assert "customer reference" in page


def test_what_fits_is_marked_and_hostile_text_stays_text(house: House, sign_in: SignIn) -> None:
    factories.open_run(house.agent, intent="<img src=x onerror=alert(1)> refund & more")
    html = find(sign_in("alice"), "img refund")
    assert "&lt;<mark>img</mark> src=x onerror=alert(1)&gt; <mark>refund</mark> &amp; more" in html
    hostile = find(sign_in("alice"), '"><script>alert(1)</script>')
    assert "<script>alert" not in hostile
    assert "&quot;&gt;&lt;script&gt;" in hostile


def test_a_long_intent_is_cut_around_what_fits(house: House, sign_in: SignIn) -> None:
    factories.open_run(house.agent, intent=f"{'before ' * 60} needle {'after ' * 60}")
    html = find(sign_in("alice"), "needle")
    assert re.search(r">…[^<]*<mark>needle</mark>[^<]*…<", html)


def test_the_first_twenty_of_a_kind_are_listed_and_the_page_says_that_there_are_more(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (finding, build):
        monkeypatch.setattr(module, "MOST", 2)
    cases = [factories.open_run(house.agent, customer_ref="cust") for _ in range(4)]
    html = find(sign_in("alice"), "cust")
    assert rows(html) == [run_of(case) for case in reversed(cases[2:])]
    assert "The first 2, newest first. There are more: add a word, or choose a tenant." in html


def test_an_empty_search_teaches_what_can_be_looked_for_and_so_does_one_without_a_result(
    house: House, sign_in: SignIn
) -> None:
    for typed in ("", "nobody said this"):
        page = said(sign_in("alice").get("/search/", {"q": typed}))
        assert "What can be looked for" in page
        assert "T-12 or #12" in page
    assert "Nothing in your tenants is named or said so." in page


def test_a_record_that_cannot_be_read_does_not_take_the_others_with_it(
    house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = factories.open_run(house.agent, customer_ref="cust")
    whole = factories.open_run(house.agent, customer_ref="cust")
    read = build.look_of_run
    monkeypatch.setattr(build, "look_of_run", lambda run: read(run) if run.pk == whole.run_id else 1 / 0)
    html = find(sign_in("alice"), "cust")
    assert rows(html) == [run_of(whole)]
    assert f'title="{broken.run_id}"' in html


def test_every_page_has_the_field_and_keeps_the_chosen_tenant(house: House, sign_in: SignIn) -> None:
    for path in ("/", "/runs/", "/letters/", "/stops/", "/circuits/", "/search/"):
        html = sign_in("alice").get(path, {"tenant": "nordlicht"}).content.decode()
        form = re.search(r'<form action="/search/" role="search">.*?</form>', html, re.DOTALL)
        assert form, path
        assert 'name="tenant" value="nordlicht"' in form[0]
        assert "data-search" in form[0]


# --- the wall -------------------------------------------------------------------------------------------------


def forms_of(case: Case) -> list[str]:
    """Everything by which a case is known."""
    return [
        str(case.run_id), str(case.run_id)[:12], case.action().action_id, f"#{case.task().number}",
        str(case.task().pk), case.run.client_ref, "cust_9", "Zebra", str(one(case, Decision).pk),
    ]  # fmt: skip


def test_U19_what_another_tenant_has_is_found_as_little_as_what_nobody_has(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent, intent="Zebra crossing", customer_ref="cust_9")
    press("claim", case, house.people["alice"])
    charlie = sign_in("charlie")
    blank = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}")
    nothing = blank.sub("", said(charlie.get("/search/", {"q": "nobody has this"}))).replace("nobody has this ·", "·")
    for text in forms_of(case):
        foreign = charlie.get("/search/", {"q": text})
        assert foreign.status_code == 200
        assert blank.sub("", said(foreign)).replace(f"{text} ·", "·") == nothing


def test_U19_a_chosen_tenant_narrows_and_a_foreign_one_does_not_exist(house: House, sign_in: SignIn) -> None:
    permissions.grant_role(house.people["alice"], house.harbor, "support")
    here = factories.open_run(house.agent, customer_ref="cust", intent="Zebra")
    there = factories.open_run(house.neighbour, customer_ref="cust", intent="Zebra")
    for typed in ("cust", "zebra"):
        assert set(rows(find(sign_in("alice"), typed))) == {run_of(here), run_of(there)}
        assert rows(find(sign_in("alice"), typed, tenant="harbor")) == [run_of(there)]
    assert sign_in("charlie").get("/search/", {"q": "cust", "tenant": "nordlicht"}).status_code == 404


def test_U19_the_words_of_another_tenant_are_behind_the_wall_in_the_database_itself(house: House) -> None:
    factories.open_run(house.agent, intent="Zebra")
    asked = "SELECT count(DISTINCT found) FROM app_runs_saying('zebra', %s, 20) found"
    with wall.within(house.harbor.pk), connection.cursor() as cursor:
        cursor.execute(asked, [[house.nordlicht.pk, house.harbor.pk]])
        assert cursor.fetchone() == (0,)
    with wall.within(house.nordlicht.pk), connection.cursor() as cursor:
        cursor.execute(asked, [[house.nordlicht.pk, house.harbor.pk]])
        assert cursor.fetchone() == (1,)


# --- its cost -------------------------------------------------------------------------------------------------


def test_a_search_asks_at_most_six_questions(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    text = str(case.run_id)
    factories.open_run(house.agent, customer_ref=text, intent=f"Look at {text}")
    with wall.within(house.nordlicht.pk):
        Action.objects.filter(pk=one(case, Action, settled_at__isnull=True).pk).update(external_id=text)
    alice = sign_in("alice")
    alice.get("/search/")
    with CaptureQueriesContext(connection) as asked:
        html = find(alice, text)
    assert len(rows(html)) == 3
    own = [one["sql"] for one in asked if not any(part in one["sql"] for part in OVERHEAD)]
    assert len(own) <= 6, own
