"""Help: every word that a "?" stands beside, every rule of the table, and the tour that is ended once and for all."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from console.topics import BY_SLUG, TOPICS, rules
from recovery.rules import decide
from runs.models import Person
from tests import factories
from tests.console.conftest import House
from tests.console.desk import said

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]


def test_every_rule_of_the_table_is_explained_and_no_other() -> None:
    assert list(rules()) == [rule.id for rule in decide.TABLE]
    assert all(len(words) > 20 for words in rules().values())


def test_every_topic_reads_on_at_topics_that_exist() -> None:
    assert {other for topic in TOPICS for other in topic.see} <= set(BY_SLUG)


def test_the_help_lists_every_word_and_every_rule_with_its_page(house: House, sign_in: SignIn) -> None:
    bob = sign_in("bob")
    html = bob.get("/help/").content.decode()
    for path in [f"/help/{topic.slug}/" for topic in TOPICS] + [f"/help/rules/{name}/" for name in rules()]:
        assert f'href="{path}"' in html
    assert "Rule 9e" in said(bob.get("/help/rules/9e/"))
    assert "<code>external_outcome_unknown</code>" in bob.get("/help/rules/9e/").content.decode()


@pytest.mark.parametrize("path", ["/help/nothing/", "/help/rules/99z/", "/help/rules/%3Cscript%3E/"])
def test_a_word_or_a_rule_that_does_not_exist_is_a_404(path: str, house: House, sign_in: SignIn) -> None:
    assert sign_in("alice").get(path).status_code == 404


@pytest.mark.parametrize("path", ["/help/", "/help/claim/", "/help/rules/9e/", "/search/?q=x"])
def test_help_and_search_are_for_somebody_signed_in(path: str, client: Client) -> None:
    assert client.get(path).status_code == 302


def test_a_task_explains_its_words_and_its_rules_beside_them(house: House, sign_in: SignIn) -> None:
    case = factories.unknown_credit(house.agent)
    html = sign_in("alice").get(f"/tasks/{case.task().pk}/").content.decode()
    for slug in ("evidence", "unknown-outcome", "effects", "rules"):
        assert re.search(rf'<details class="about">.*?href="/help/{slug}/">More</a>', html), slug
    named = re.findall(r'<a class="rule" href="/help/rules/([^"]+)/">([^<]+)</a>', html)
    assert named
    assert all(address == word and word in rules() for address, word in named)


@pytest.mark.parametrize("path", ["/letters/", "/circuits/", "/stops/", "/bulk/"])
def test_a_list_explains_what_it_lists(path: str, house: House, sign_in: SignIn) -> None:
    assert '<details class="about">' in sign_in("alice").get(path).content.decode()


def test_the_tour_is_shown_until_its_person_ends_it_and_can_be_started_again(house: House, sign_in: SignIn) -> None:
    alice, omar = sign_in("alice"), sign_in("omar")
    first = alice.get("/").content.decode()
    parts = re.findall(r'data-tour="(\w+)"', first)
    assert 1 < len(parts) <= 6
    assert "First steps" in first, "without script it is a card"
    factories.unknown_credit(house.agent)
    assert set(parts) <= set(re.findall(r'data-part="(\w+)"', alice.get("/").content.decode()))
    for other in ("/runs/", "/bulk/", "/views/", "/help/"):
        assert "data-tour" not in alice.get(other).content.decode(), other
    ended = alice.post("/tour/end/")
    assert (ended.status_code, ended.headers["Location"]) == (303, "/")
    assert "data-tour" not in alice.get("/").content.decode()
    assert "data-tour" not in house.browser("alice").get("/").content.decode(), "it is kept with the person"
    assert "data-tour" in omar.get("/").content.decode(), "and with nobody else"
    assert Person.objects.get(pk=house.people["alice"].pk).toured_at is not None
    assert 'action="/tour/start/"' in alice.get("/help/").content.decode()
    alice.post("/tour/start/")
    assert "data-tour" in alice.get("/").content.decode()


@pytest.mark.parametrize("path", ["/tour/end/", "/tour/start/"])
def test_looking_at_an_address_of_the_tour_changes_nothing(path: str, house: House, sign_in: SignIn) -> None:
    assert sign_in("alice").get(path).status_code == 405
    assert Person.objects.get(pk=house.people["alice"].pk).toured_at is None
