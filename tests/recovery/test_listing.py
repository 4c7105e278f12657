"""Listing what a system did, over HTTP and by a host product's endpoint: whole, or not at all (DESIGN 5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pytest_django.fixtures import Settings
from steadyhand.manifest import Connector, Listing

from recovery.connectors import listing
from recovery.connectors.base import Whom
from recovery.connectors.listing import CannotList, Interval
from tests.sdk.counting_server import Counted, counting, cut, drop, plainly

SINCE = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
HTTP: dict[str, Any] = {
    "path": "/effects", "query": {"from": "{since}", "to": "{until}", "page": "{cursor}"}, "items": "items",
    "reference": "ref", "cursor": "next",
}  # fmt: skip


class Remote:
    """Pages in order; what was asked, as the other side saw it."""

    def __init__(self) -> None:
        self.pages: list[Any] = []
        self.answer: Any = None
        self.asked: list[dict[str, Any]] = []

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.body  # type: ignore[attr-defined]
        query = {name: value[0] for name, value in parse_qs(urlsplit(handler.path).query).items()}
        self.asked.append(json.loads(body) if body else query)
        if self.answer is not None:
            return self.answer(handler)
        page = self.pages[min(len(self.asked), len(self.pages)) - 1]
        return plainly(200, body=json.dumps(page).encode())(handler)


@pytest.fixture
def remote() -> Remote:
    return Remote()


@pytest.fixture
def served(remote: Remote, settings: Settings) -> Iterator[Counted]:
    with counting(answer=remote) as counted:
        settings.TRUSTED_ENDPOINTS = (counted.url.removeprefix("http://"),)
        yield counted


def interval(served: Counted, kind: str = "http", **how: Any) -> Interval:
    lists = Listing.model_validate((HTTP if kind == "http" else {}) | how)
    connector = Connector(kind=kind, base_url=served.url, timeout_seconds=1, lists=lists)  # type: ignore[arg-type]
    whom = Whom("ledger", "tenant-1", (b"s" * 32,))
    return Interval(connector, lists, whom, SINCE, SINCE + timedelta(hours=1))


def effect(number: int, minutes: float = 1) -> dict[str, Any]:
    at = (SINCE + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")
    return {"id": f"cr_{number}", "at": at, "ref": f"a{number}"}


def test_pages_are_followed_to_the_last_and_each_is_asked_for_once(served: Counted, remote: Remote) -> None:
    remote.pages = [{"items": [effect(1)], "next": "p2"}, {"items": [effect(2)], "next": None}]
    found = listing.effects(interval(served))
    assert [(one.external_id, one.reference) for one in found] == [("cr_1", "a1"), ("cr_2", "a2")]
    assert [asked.get("page") for asked in remote.asked] == [None, "p2"]
    assert remote.asked[0]["from"] == "2026-03-14T09:00:00+00:00"
    assert served.arrivals == 2


def test_what_lies_outside_of_the_interval_is_left_out(served: Counted, remote: Remote) -> None:
    remote.pages = [{"items": [effect(1, -1), effect(2, 0), effect(3, 60)]}]
    assert [one.external_id for one in listing.effects(interval(served))] == ["cr_2"]


@pytest.mark.parametrize(
    "answered",
    [
        {}, {"items": None}, {"items": "none"}, [], {"items": [{"at": "2026-03-14T09:01:00Z"}]},
        {"items": [{"id": "cr_1"}]}, {"items": [{"id": "cr_1", "at": "yesterday"}]},
        {"items": [{"id": "cr_1", "at": "2026-03-14T09:01:00"}]}, {"items": [], "has_more": True},
        {"items": [], "next": "p1"}, {"items": [{"id": {"a": 1}, "at": "2026-03-14T09:01:00Z"}]},
        {"items": [{"id": True, "at": "2026-03-14T09:01:00Z"}]}, {"items": [], "next": {"page": 2}},
        {"items": [{"id": " ", "at": "2026-03-14T09:01:00Z"}]},
    ],
)  # fmt: skip
def test_a_page_that_cannot_be_read_or_is_not_the_last_is_no_listing(
    served: Counted, remote: Remote, answered: Any
) -> None:
    remote.pages = [answered]
    with pytest.raises(CannotList):
        listing.effects(interval(served))


@pytest.mark.parametrize("kind", ["http", "webhook"])
@pytest.mark.parametrize("answer", [drop, cut, plainly(500), plainly(503), plainly(200, body=b"<html>")])
def test_F107_a_system_in_trouble_is_asked_once_and_has_not_done_nothing(
    served: Counted, remote: Remote, kind: str, answer: Any
) -> None:
    remote.answer = answer
    with pytest.raises(CannotList):
        listing.effects(interval(served, kind))
    assert served.arrivals == 1


def test_an_endpoint_is_asked_for_the_interval_and_may_go_on(served: Counted, remote: Remote) -> None:
    told = {"external_id": "cr_1", "at": "2026-03-14T09:01:00Z", "reference": "a1"}
    remote.pages = [{"effects": [told], "cursor": "2"}, {"effects": [], "complete": True}]
    assert [one.reference for one in listing.effects(interval(served, "webhook"))] == ["a1"]
    assert [asked["cursor"] for asked in remote.asked] == ["", "2"]
    first = remote.asked[0]
    assert (first["ask"], first["connector"], first["since"]) == ("list_effects", "ledger", SINCE.isoformat())


@pytest.mark.parametrize(
    "answered",
    [
        {"effects": [], "complete": False}, {"effects": None}, {"effects": [{"external_id": ""}]}, [],
        {"effects": [{"external_id": " ", "at": "2026-03-14T09:01:00Z"}]},
    ],
)  # fmt: skip
def test_an_endpoint_that_says_it_is_not_whole_has_listed_nothing(
    served: Counted, remote: Remote, answered: Any
) -> None:
    remote.pages = [answered]
    with pytest.raises(CannotList):
        listing.effects(interval(served, "webhook"))
