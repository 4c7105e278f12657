"""Saved views of the queue: one's own and the team's, who may change which, and what an older one turns into."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console import saved
from console.models import SavedView
from runs import wall
from runs.models import Event
from tests import factories
from tests.console.conftest import House
from tests.console.desk import said
from tests.console.test_queue import OVERHEAD

pytestmark = [pytest.mark.django_db, pytest.mark.security]
QUERY = "view=unknown&tool=apply_credit"


def save(house: House, name: str, title: str, where: str = "me:nordlicht", query: str = QUERY) -> HttpResponse:
    return house.browser(name).post("/views/", {"name": title, "where": where, "query": query})


def kept(house: House, **lookup: Any) -> list[SavedView]:
    with wall.within(house.nordlicht.pk):
        return list(SavedView.objects.filter(**lookup).order_by("name"))


def pills(house: House, name: str, address: str = "/") -> str:
    html = house.browser(name).get(address).content.decode()
    found = re.search(r'aria-label="Saved views">(.*?)</div>', html, re.DOTALL)
    assert found
    return re.sub(r"\s+", " ", re.sub(r"<(?!a )[^>]+>", " ", found[1]))


def test_a_view_opens_what_it_was_saved_from_and_is_its_owners_alone(house: House) -> None:
    answer = save(house, "alice", " Billing,   mornings ")
    (view,) = kept(house)
    assert (view.name, view.query, view.by) == ("Billing, mornings", QUERY, house.people["alice"])
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/?{QUERY}&saved={view.pk}")
    page = house.browser("alice").get(answer.headers["Location"]).content.decode()
    assert "Tool: apply_credit" in page
    assert "Billing, mornings" in pills(house, "alice")
    assert "Billing, mornings" not in pills(house, "omar")


def test_a_view_of_the_team_is_everybodys_in_the_tenant_and_nobody_elses(house: House) -> None:
    save(house, "alice", "On call", "team:nordlicht")
    for name in ("alice", "omar", "bob", "nia"):
        assert "On call" in pills(house, name)
    assert "On call" not in pills(house, "charlie")
    with wall.within(house.nordlicht.pk):
        assert Event.objects.filter(kind="team_view_saved", run=None).count() == 1


def test_unsaved_stands_where_the_list_differs_from_the_view_it_came_from(house: House) -> None:
    save(house, "alice", "Credits")
    (view,) = kept(house)
    at = f"/?{QUERY}&saved={view.pk}"
    assert "unsaved" not in pills(house, "alice", at)
    assert "unsaved" not in pills(house, "alice", f"/?tool=apply_credit&open=abc&view=unknown&saved={view.pk}")
    moved = f"{at}&priority=3"
    assert re.search(r"Credits\s+unsaved", pills(house, "alice", moved))
    alice = house.browser("alice")
    form = re.search(
        r'action="(/views/[^"]+/save/)".*?name="query" value="([^"]+)"', alice.get(moved).content.decode()
    )
    assert form is not None
    assert alice.post(form[1], {"query": form[2].replace("&amp;", "&")}).status_code == 303
    assert kept(house)[0].query == f"{QUERY}&priority=3"
    assert "unsaved" not in pills(house, "alice", moved)


def test_who_may_change_a_view_of_the_team(house: House) -> None:
    save(house, "omar", "On call", "team:nordlicht")
    (view,) = kept(house)
    for name in ("alice", "bob", "nia"):
        for verb in ("save", "rename", "delete"):
            form = {"name": "Mine now", "query": "view=mine"}
            answer = house.browser(name).post(f"/views/{view.pk}/{verb}/", form)
            assert (answer.status_code, "by whoever made it, or by an admin" in said(answer)) == (403, True)
        assert "Rename" not in said(house.browser(name).get("/views/"))
    assert [(one.name, one.query) for one in kept(house)] == [("On call", QUERY)]
    assert house.browser("ada").post(f"/views/{view.pk}/rename/", {"name": "Nights"}).status_code == 303
    assert house.browser("omar").post(f"/views/{view.pk}/delete/").status_code == 303
    assert kept(house) == []


@pytest.mark.parametrize("name", ["bob", "nia"])
def test_whoever_only_reads_keeps_views_and_none_for_the_team(house: House, name: str) -> None:
    assert save(house, name, "Mine").status_code == 303
    answer = save(house, name, "Ours", "team:nordlicht")
    assert (answer.status_code, "does not include saving a view for the team" in said(answer)) == (422, True)
    assert "Everybody in" not in said(house.browser(name).get("/views/"))


def test_F122_a_foreign_view_is_a_missing_one(house: House) -> None:
    save(house, "alice", "Hers")
    save(house, "alice", "Ours", "team:nordlicht")
    forms = {"name": "x", "query": "view=mine"}
    for name, views in (("charlie", kept(house)), ("ada", kept(house, name="Hers"))):
        client = house.browser(name)
        for verb in ("save", "rename", "delete"):
            ids = [*(view.pk for view in views), uuid.uuid4()]
            answers = [client.post(f"/views/{one}/{verb}/", forms) for one in ids]
            assert {one.status_code for one in answers} == {404}
            assert len({re.sub(r'nonce="[^"]+"', "", one.content.decode()) for one in answers}) == 1
    assert len(kept(house)) == 2
    assert save(house, "charlie", "In", "team:nordlicht").status_code == 404
    assert "Hers" not in pills(house, "charlie", f"/?saved={kept(house)[0].pk}")


@pytest.mark.parametrize("address", ["/views/", "/views/{id}/save/", "/views/{id}/rename/", "/views/{id}/delete/"])
def test_SEC_11_a_look_a_stranger_and_another_site_change_nothing(house: House, address: str) -> None:
    save(house, "alice", "Hers")
    (view,) = kept(house)
    path, form = address.format(id=view.pk), {"name": "x", "where": "me:nordlicht", "query": ""}
    alice = house.browser("alice")
    assert alice.get(path).status_code == (200 if address == "/views/" else 405)
    assert Client().post(path, form).status_code == 302
    alice.handler.enforce_csrf_checks = True
    assert alice.post(path, form).status_code == 403
    assert [(one.name, one.query) for one in kept(house)] == [("Hers", QUERY)]


def test_a_name_is_there_once_for_each_person_and_once_for_the_team(house: House) -> None:
    assert save(house, "alice", "Mornings").status_code == 303
    answer = save(house, "alice", "mornings", query="view=mine")
    assert (answer.status_code, "There is a view of this name already" in said(answer)) == (422, True)
    assert 'value="mornings"' in answer.content.decode()
    assert save(house, "omar", "Mornings").status_code == 303
    assert save(house, "alice", "Mornings", "team:nordlicht").status_code == 303
    assert save(house, "omar", "MORNINGS", "team:nordlicht").status_code == 422
    save(house, "alice", "Evenings")
    evenings = kept(house, name="Evenings")[0]
    renamed = house.browser("alice").post(f"/views/{evenings.pk}/rename/", {"name": "Mornings"})
    assert (renamed.status_code, "There is a view of this name already" in said(renamed)) == (422, True)


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"name": "  "}, "Give the view a name."),
        ({"name": "x" * 61}, "A name has at most 60 characters; this one has 61."),
        ({"where": "all"}, "Say whom it is for."),
        ({"query": "view=nothing"}, "the tab that it names does not exist"),
        ({"query": "tenant=harbor"}, "the tenant that it names is not one of yours"),
        ({"query": "priority=high"}, "priority is one of 1, 2, 3, 4"),
        ({"query": "colour=red"}, "colour is no filter"),
    ],
)
def test_what_cannot_be_saved_says_what_would_be_right(house: House, form: dict[str, str], told: str) -> None:
    whole = {"name": "Fine", "where": "me:nordlicht", "query": QUERY} | form
    answer = house.browser("alice").post("/views/", whole)
    assert (answer.status_code, told in re.sub(r"\s+", " ", said(answer))) == (422, True)
    assert kept(house) == []


def test_there_are_only_so_many(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "MOST_OWN", 2)
    monkeypatch.setattr(saved, "MOST_TEAM", 1)
    for title in ("one", "two"):
        assert save(house, "alice", title).status_code == 303
    answer = save(house, "alice", "three")
    assert (answer.status_code, "There are 2 views already" in said(answer)) == (422, True)
    assert save(house, "alice", "ours", "team:nordlicht").status_code == 303
    assert save(house, "omar", "theirs", "team:nordlicht").status_code == 422
    assert save(house, "omar", "one").status_code == 303


def test_a_view_that_can_no_longer_be_read_is_one_marked_row(house: House) -> None:
    save(house, "alice", "Sound")
    save(house, "alice", "Broken", query="view=mine")
    with wall.within(house.nordlicht.pk):
        SavedView.objects.filter(name="Broken").update(query="view=was_there_once&%%%&a=%00")
    broken = kept(house, name="Broken")[0]
    assert re.search(r"Broken\s+cannot be opened", pills(house, "alice"))
    page = said(house.browser("alice").get("/views/"))
    assert "It cannot be opened: the tab that it names does not exist." in page
    assert "Unknown writes, Tool: apply_credit" in page
    assert house.browser("alice").post(f"/views/{broken.pk}/delete/").status_code == 303
    assert [one.name for one in kept(house)] == ["Sound"]


def test_the_link_stands_as_text_and_opens_the_same_list_for_a_colleague(house: House) -> None:
    factories.unknown_credit(house.agent)
    save(house, "alice", "Credits")
    html = house.browser("alice").get("/views/").content.decode()
    link = re.search(r'<input value="(http://testserver[^"]+)" readonly aria-label="Link to Credits"', html)
    assert link is not None
    assert "1 task in 1 cause" in said(house.browser("omar").get(link[1].replace("&amp;", "&")))
    listed = house.browser("alice").get("/?tool=apply_credit").content.decode()
    assert '<input id="n-link" value="http://testserver/?tool=apply_credit" readonly>' in listed


def test_saved_views_cost_the_queue_no_statement_of_their_own(house: House) -> None:
    factories.unknown_credit(house.agent)
    for number in range(3):
        save(house, "alice", f"View {number}")
    with CaptureQueriesContext(connection) as asked:
        house.browser("alice").get("/")
    own = [one["sql"] for one in asked if not any(word in one["sql"] for word in OVERHEAD)]
    assert len(own) <= 6, "\n\n".join(own)
    assert sum("console_savedview" in one for one in own) == 1


def test_hostile_names_are_only_text(house: House) -> None:
    save(house, "alice", '<script>alert(1)</script>"')
    for page in ("/", "/views/"):
        html = house.browser("alice").get(page).content.decode()
        assert "<script>alert(1)" not in html
        assert "&lt;script&gt;alert(1)" in html
