"""Who is at a task: told by the page, seen by colleagues of the tenant, forgotten in half a minute; and no act."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.models import Presence
from runs import wall
from tests import factories
from tests.console.conftest import House
from tests.console.desk import address, said
from tests.console.test_queue import OVERHEAD, open_group
from tests.factories import Case
from tests.recovery import stories

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]


@pytest.fixture
def case(house: House) -> Case:
    return factories.unknown_credit(house.agent)


def beat(house: House, name: str, case: Case, doing: str = "looking", verb: str = "") -> int:
    return house.browser(name).post(f"{address(case)}here/", {"doing": doing, "verb": verb}).status_code


def present(case: Case) -> list[tuple[str, str, str]]:
    with wall.within(case.tenant.pk):
        return list(Presence.objects.order_by("person__name").values_list("person__name", "doing", "verb"))


def test_a_colleague_who_reads_is_seen_and_one_is_not_told_of_oneself(house: House, case: Case) -> None:
    assert beat(house, "omar", case) == 204
    assert "Omar is reading" in said(house.browser("alice").get(address(case)))
    assert "is reading" not in said(house.browser("omar").get(address(case)))


def test_an_open_sheet_is_deciding_on_the_page_in_the_queue_and_on_the_sheet(house: House, case: Case) -> None:
    beat(house, "omar", case, "deciding", "reconcile")
    alice = house.browser("alice")
    page = alice.get(address(case)).content.decode()
    assert "Omar is deciding" in said(alice.get(address(case)))
    assert 'class="face deciding"' in page
    assert "Omar is deciding" in said(alice.get("/"))
    assert open_group(alice).count("Omar is deciding") == 2
    assert "Omar has this sheet open since" in said(alice.get(address(case, "reconcile")))
    assert "Omar has the sheet “Check what happened” open since" in said(alice.get(address(case, "cancel")))
    assert "sheet open since" not in said(house.browser("omar").get(address(case, "cancel")))


def test_the_holder_who_decides_keeps_the_name_in_the_owner_column(house: House, case: Case) -> None:
    stories.press("claim", case, house.people["omar"])
    beat(house, "omar", case, "deciding", "reconcile")
    html = open_group(house.browser("alice"))
    row = html[html.index('<tr class="member"') :]
    assert re.search(r'face deciding".*?Omar.*?\d+ min left.*?is deciding', row, re.DOTALL)
    assert "Omar is deciding" not in re.sub("<[^>]+>", "", row)


def test_it_ends_after_half_a_minute_of_silence(house: House, case: Case) -> None:
    beat(house, "omar", case, "deciding", "reconcile")
    factories.advance_clock(seconds=29)
    assert "Omar is deciding" in said(house.browser("alice").get(address(case)))
    factories.advance_clock(seconds=2)
    assert "deciding" not in said(house.browser("alice").get(address(case)))
    assert "deciding" not in said(house.browser("alice").get("/"))


def test_the_live_region_is_drawn_again_when_somebody_comes_and_goes(house: House, case: Case) -> None:
    alice, live = house.browser("alice"), f"{address(case)}live/"
    tag = alice.get(live).headers["ETag"]
    assert alice.get(live, headers={"If-None-Match": tag}).status_code == 304
    beat(house, "omar", case, "deciding", "reconcile")
    come = alice.get(live, headers={"If-None-Match": tag})
    assert (come.status_code, "is deciding" in come.content.decode()) == (200, True)
    beat(house, "omar", case, "deciding", "reconcile")
    assert alice.get(live, headers={"If-None-Match": come.headers["ETag"]}).status_code == 304
    factories.advance_clock(seconds=31)
    gone = alice.get(live, headers={"If-None-Match": come.headers["ETag"]})
    assert (gone.status_code, "is deciding" in gone.content.decode()) == (200, False)


def test_a_sheet_that_stays_open_keeps_its_beginning_and_a_new_one_has_its_own(house: House, case: Case) -> None:
    beat(house, "omar", case, "deciding", "reconcile")
    with wall.within(case.tenant.pk):
        first = Presence.objects.get().since
    factories.advance_clock(seconds=20)
    beat(house, "omar", case, "deciding", "reconcile")
    with wall.within(case.tenant.pk):
        assert Presence.objects.get().since == first
    beat(house, "omar", case, "deciding", "cancel")
    with wall.within(case.tenant.pk):
        assert Presence.objects.get().since > first


def test_one_person_leaves_one_row_a_task_and_none_behind_where_nobody_is(house: House, case: Case) -> None:
    other = factories.unknown_credit(house.agent)
    for doing in ("looking", "deciding", "looking"):
        beat(house, "omar", case, doing)
    assert present(case) == [("Omar", "looking", "")]
    factories.advance_clock(seconds=31)
    beat(house, "omar", other)
    with wall.within(case.tenant.pk):
        assert list(Presence.objects.values_list("task_id", flat=True)) == [other.task().pk]


def test_F122_another_tenant_neither_tells_nor_sees(house: House, case: Case) -> None:
    theirs = factories.unknown_credit(house.neighbour)
    assert beat(house, "charlie", case) == 404
    assert beat(house, "charlie", theirs, "deciding", "reconcile") == 204
    factories.permissions.grant_role(house.people["charlie"], house.nordlicht, "viewer")
    beat(house, "charlie", case)
    assert present(case) == [("Charlie", "looking", "")]
    assert "is deciding" not in said(house.browser("alice").get("/"))


@pytest.mark.parametrize("form", [{}, {"doing": "sleeping"}, {"doing": "deciding", "verb": "explode"}])
def test_what_is_no_way_to_be_at_a_task_is_refused_by_name(house: House, case: Case, form: dict[str, str]) -> None:
    answer = house.browser("omar").post(f"{address(case)}here/", form)
    assert (answer.status_code, "`doing` is looking or deciding" in answer.content.decode()) == (400, True)
    assert present(case) == []


def test_a_page_that_only_tells_who_is_there_is_nobody_who_is_active(house: House, case: Case) -> None:
    """SEC-04: a forgotten page does not keep a session alive, and tells nothing once it has ended."""
    omar = house.browser("omar")
    omar.get(address(case))
    before = omar.session["seen_at"]
    asked = {"HX-Request": "true"}
    assert omar.post(f"{address(case)}here/", {"doing": "looking"}, headers=asked).status_code == 204
    assert omar.session["seen_at"] == before
    assert Client().post(f"{address(case)}here/", {"doing": "looking"}, headers=asked).status_code == 401


def test_opening_a_page_tells_nothing_by_itself(house: House, case: Case) -> None:
    house.browser("omar").get(address(case, "reconcile"))
    assert present(case) == []


def test_a_beat_costs_few_statements_and_presence_none_of_its_own_on_a_task(house: House, case: Case) -> None:
    omar = house.browser("omar")
    beat(house, "omar", case)
    path = address(case)
    with CaptureQueriesContext(connection) as asked:
        omar.post(f"{path}here/", {"doing": "looking"})
    own = [one["sql"] for one in asked if not any(word in one["sql"] for word in OVERHEAD)]
    assert len(own) <= 3, own
    with CaptureQueriesContext(connection) as asked:
        house.browser("alice").get(address(case))
    assert sum("console_presence" in one["sql"] for one in asked) == 2
