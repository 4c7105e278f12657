"""Pages cost the same with ten times the runs behind them: statements, memory read, and PostgreSQL's own time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.conf import settings
from django.db import connections
from django.test import Client
from pytest_django import DjangoDbBlocker

from benchmarks import history
from console import filters
from console.builders import causes
from console.builders.causes import Mark
from console.embedded.places import SUPER_ROLE
from recovery.models import HumanTask
from runs import wall
from tests import factories
from tests.conftest import ALIASES, point_at
from tests.console.conftest import House, make_house
from tests.growth.measuring import Page, measured
from tests.postgres import Cluster

SMALL, LARGE = 10_000, 100_000
WORKFLOWS = ("refund-case", "dunning")
MOST_STATEMENTS = 6
MOST_MS = 1.0
GREW, SOME = 1.5, 64
"""A plan may touch half as much again, for trees grow a level; and a few pages more whatever it was."""
CAPPED = 4 * (filters.CAP + 1)
"""What "1000+" in the frame and the tabs may read until it knows, and a list that follows the clock row by row."""
PAGES = {
    "the queue": "/",
    "one tenant": "/?tenant=nordlicht",
    "an open cause": "{open}",
    "beyond the first causes": "{beyond}",
    "mine": "/?view=mine",
    "unowned": "/?view=unowned",
    "unknown writes": "/?view=unknown",
    "waiting for approval": "/?view=approval",
    "dead letters of the queue": "/?view=letters",
    "due soon": "/?view=soon",
    "breaching": "/?view=breaching",
    "failed undos": "/?view=failed",
    "snoozed": "/?view=snoozed",
    "news": "{news}",
    "letters that ended": "/letters/?view=ended",
    "circuits": "/circuits/",
    "stops": "/stops/",
}


@dataclass
class Grown:
    """Every page at both sizes."""

    small: dict[str, Page]
    large: dict[str, Page]


@pytest.fixture(scope="module")
def grown(cluster: Cluster, template: str, django_db_blocker: DjangoDbBlocker) -> Iterator[Grown]:
    name = cluster.clone(template)
    before = {alias: settings.DATABASES[alias]["NAME"] for alias in ALIASES}
    point_at(cluster, name)
    with django_db_blocker.unblock():
        house = make_house()
        factories.permissions.grant_role(house.people["alice"], house.harbor, "support")
        for agent in (house.agent, house.neighbour):
            for workflow in WORKFLOWS:
                factories.register(agent, None, workflow)
        dsn = cluster.dsn(SUPER_ROLE, name)
        history.fill(dsn, runs=SMALL)
        small = opened(house)
        history.fill(dsn, runs=LARGE, already=SMALL)
        yield Grown(small, opened(house))
        connections.close_all()
    point_at(cluster, before["default"])
    cluster.drop(name)


def opened(house: House) -> dict[str, Page]:
    alice = house.browser("alice")
    places = addresses(house, alice)
    tenants = [house.nordlicht, house.harbor]
    return {name: measured(alice, name, url.format(**places), tenants) for name, url in PAGES.items()}


def addresses(house: House, client: Client) -> dict[str, str]:
    """Where the first cause opens, the middle of it, the next causes, and what the title line polls."""
    html = client.get("/").content.decode()
    found = {
        "open": r'class="toggle" href="([^"]+)"',
        "beyond": r'href="([^"]+)">More causes',
        "news": r'hx-get="([^"]+)"',
    }
    places = {name: re.findall(pattern, html)[0].replace("&amp;", "&") for name, pattern in found.items()}
    with wall.within(house.nordlicht.pk, house.harbor.pk):
        heap = places["open"].partition("open=")[2]
        members = HumanTask.objects.filter(heap=heap, state="open", snoozed_until=None)
        middle = members.order_by("-consequence", "due_at", "pk")[members.count() // 2]
    return {**places, "deep": f"{places['open']}&after={Mark.of(middle).text}"}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_reads_no_more_of_a_table_ten_times_as_long(grown: Grown, name: str) -> None:
    small, large = grown.small[name], grown.large[name]
    assert (small.status, large.status) == (200, 200)
    for before, after in zip(small.costs, large.costs, strict=True):
        some = CAPPED if "AS capped" in after.sql or f"LIMIT {causes.MOST_READ + 1}" in after.sql else SOME
        assert after.buffers <= before.buffers * GREW + some, after.sql
        assert after.rows <= before.rows * GREW + some, after.sql


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_at_most_six_questions_of_a_millisecond_each(grown: Grown, name: str) -> None:
    for page in (grown.small[name], grown.large[name]):
        assert len(page.costs) <= MOST_STATEMENTS, [cost.sql[:200] for cost in page.costs]
        slow = [(cost.ms, cost.sql) for cost in page.costs if cost.ms > MOST_MS]
        assert slow == []


def test_the_pages_show_something_to_measure(grown: Grown) -> None:
    """A page without rows would be fast for nothing."""
    for name, page in grown.large.items():
        rows = page.html.count("data-row")
        assert rows or name in ("news", "circuits", "stops"), name
