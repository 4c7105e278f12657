"""The queue's filters: each narrows the list by its address, is shown as a token, and a wrong one is named."""

from __future__ import annotations

import re

import pytest
from django.db import connection

from recovery.models import HumanTask
from runs import wall
from tests import factories
from tests.console.conftest import House
from tests.console.desk import said
from tests.recovery import stories

pytestmark = pytest.mark.django_db


@pytest.fixture
def two(house: House) -> House:
    """An unknown credit of 120.00 EUR, and a run that ended too early."""
    factories.unknown_credit(house.agent)
    factories.finish(factories.open_run(house.agent))
    return house


def shown(house: House, query: str) -> str:
    return said(house.browser("alice").get(f"/?{query}"))


FITTING = [
    "tool=apply_credit", "reason=external_outcome_unknown", "priority=2", "above=119.99&currency=EUR",
    "workflow=resolve_billing_case&tool=apply_credit", "view=unknown&team=billing-support",
]  # fmt: skip


@pytest.mark.parametrize("query", FITTING)
def test_a_filter_leaves_what_fits(two: House, query: str) -> None:
    with wall.within(two.nordlicht.pk):
        name = HumanTask.objects.latest("id").workflow_name
    text = shown(two, query.replace("resolve_billing_case", name))
    assert "1 task in 1 cause, 120.00 EUR at risk" in text
    assert "remove this filter" in text


@pytest.mark.parametrize(
    "query",
    ["tool=other", "reason=nothing", "priority=4", "above=120&currency=EUR", "above=1&currency=GBP", "team=x"],
)
def test_a_filter_that_nothing_fits_says_how_much_there_is_without_it(two: House, query: str) -> None:
    text = shown(two, query)
    assert "No task passes the filters." in text
    assert "2 tasks in this tab without the filters." in text
    assert "Remove the filters" in text


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("priority=high", "priority is one of 1, 2, 3, 4"),
        ("above=lots&currency=EUR", "above is an amount like 250.00"),
        ("above=250", "above and currency go together"),
        ("above=250&currency=euro", "currency is three capitals like EUR"),
        (f"tool={'x' * 121}", "tool has at most 120 characters"),
    ],
)
def test_a_filter_that_cannot_be_used_is_named_and_narrows_nothing(two: House, query: str, told: str) -> None:
    text = re.sub(r"\s+", " ", shown(two, query))
    assert "A filter of this address cannot be used." in text
    assert told in text
    assert "2 tasks in 2 causes" in text


def test_a_token_takes_its_own_filter_away_and_no_other(two: House) -> None:
    html = two.browser("alice").get("/?tool=apply_credit&above=1&currency=EUR").content.decode()
    tokens = {label: url for url, label in re.findall(r'<a class="pill" href="([^"]+)">([^<]+)<svg', html)}
    assert tokens["Tool: apply_credit"] == "/?above=1&amp;currency=EUR"
    assert tokens["Amount: above 1 EUR"] == "/?tool=apply_credit"


def test_an_open_cause_and_the_live_title_keep_the_filters(two: House) -> None:
    alice = two.browser("alice")
    html = alice.get("/?tool=apply_credit").content.decode()
    toggle, live = re.search(r'class="toggle" href="([^"]+)"', html), re.search(r'hx-get="([^"]+)"', html)
    assert toggle is not None
    assert live is not None
    assert "tool=apply_credit" in toggle[1]
    assert "1 task in 1 cause" in said(alice.get(live[1].replace("&amp;", "&")))


def test_amounts_are_read_with_the_digits_of_their_currency(house: House) -> None:
    yen = {**factories.ARGUMENTS["apply_credit"], "currency": "JPY", "amount_minor": 700}
    case = factories.open_run(house.agent, scope={})
    factories.report(case, factories.propose(case, "apply_credit", yen), factories.timed_out())
    assert "1 task in 1 cause" in shown(house, "above=699&currency=JPY")
    assert "No task passes the filters." in shown(house, "above=700&currency=JPY")


@pytest.mark.parametrize("column", ["workflow_name", "reason_code", "tool", "owner_team", "currency"])
def test_every_filter_that_is_offered_has_an_index_over_open_tasks(db: None, column: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'recovery_humantask'")
        found = [row[0] for row in cursor.fetchall()]
    assert [one for one in found if f"(tenant_id, {column}" in one and "WHERE" in one]


def test_the_way_back_from_a_filter_is_the_tab(two: House) -> None:
    stories.press("claim", factories.unknown_credit(two.agent), two.people["alice"])
    assert "1 task in 1 cause" in shown(two, "view=mine&tool=apply_credit")
