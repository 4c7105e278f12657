"""Tags of a task: a few short words, put on and taken off by whoever may comment, and a filter of the queue."""

from __future__ import annotations

import uuid

import pytest
from django.db import IntegrityError, connection, transaction

from recovery.models import HumanTask
from runs import wall
from tests import factories
from tests.console.conftest import House
from tests.console.desk import address, said
from tests.factories import Case
from tests.recovery.stories import kinds

pytestmark = pytest.mark.django_db


@pytest.fixture
def case(house: House) -> Case:
    return factories.unknown_credit(house.agent)


def tag(house: House, name: str, case: Case, **form: str) -> tuple[int, str]:
    answer = house.browser(name).post(f"{address(case)}tags/", form)
    return answer.status_code, said(answer)


def tags(case: Case) -> list[str]:
    with wall.within(case.tenant.pk):
        return HumanTask.objects.get(pk=case.task().pk).tags


def test_a_tag_is_put_on_found_by_and_taken_off(house: House, case: Case) -> None:
    factories.unknown_credit(house.agent)
    version = case.task().version
    assert tag(house, "alice", case, add=" Incident-5521 ")[0] == 303
    assert tag(house, "omar", case, add="vip")[0] == 303
    assert tags(case) == ["incident-5521", "vip"]
    assert case.task().version == version
    page = said(house.browser("alice").get(address(case)))
    assert "incident-5521 take this tag off" in page
    assert "Tag added. vip." in page
    assert "1 task in 1 cause" in said(house.browser("alice").get("/?tag=vip"))
    assert "No task passes the filters." in said(house.browser("alice").get("/?tag=other"))
    assert tag(house, "alice", case, remove="vip")[0] == 303
    assert tags(case) == ["incident-5521"]
    assert kinds(case)[-3:] == ["tagged", "tagged", "untagged"]


def test_the_same_tag_twice_and_one_that_is_gone_change_nothing(house: House, case: Case) -> None:
    for _ in range(2):
        tag(house, "alice", case, add="vip")
    tag(house, "alice", case, remove="other")
    assert (tags(case), kinds(case).count("tagged"), kinds(case).count("untagged")) == (["vip"], 1, 0)


@pytest.mark.parametrize("word", ["", "two words", "x" * 25, "-x", "<b>", "_"])
def test_what_is_no_word_is_refused_with_what_is(house: House, case: Case, word: str) -> None:
    code, text = tag(house, "alice", case, add=word)
    assert (code, "A tag is one word of at most 24" in text, tags(case)) == (422, True, [])


def test_a_secret_is_no_tag(house: House, case: Case) -> None:
    code, text = tag(house, "alice", case, add="4111111111111111")
    assert (code, "looks like a secret" in text, tags(case)) == (422, True, [])


def test_there_are_only_eight_and_the_database_says_so_too(house: House, case: Case) -> None:
    for number in range(8):
        assert tag(house, "alice", case, add=f"t{number}")[0] == 303
    code, text = tag(house, "alice", case, add="t8")
    assert (code, "at most 8 tags" in text, len(tags(case))) == (422, True, 8)
    with wall.within(case.tenant.pk), pytest.raises(IntegrityError), transaction.atomic():
        HumanTask.objects.filter(pk=case.task().pk).update(tags=[str(number) for number in range(9)])


@pytest.mark.parametrize("name", ["bob", "nia"])
def test_whoever_only_reads_sees_tags_and_changes_none(house: House, case: Case, name: str) -> None:
    tag(house, "alice", case, add="vip")
    html = house.browser(name).get(address(case)).content.decode()
    assert ("vip" in html, 'name="add"' in html) == (True, False)
    assert tag(house, name, case, add="mine")[0] == 403
    assert tag(house, name, case, remove="vip")[0] == 403
    assert tags(case) == ["vip"]


def test_F122_a_foreign_task_is_a_missing_one(house: House, case: Case) -> None:
    charlie = house.browser("charlie")
    for pk in (case.task().pk, uuid.uuid4()):
        assert charlie.post(f"/tasks/{pk}/tags/", {"add": "x"}).status_code == 404
    assert tags(case) == []


def test_the_filter_by_tag_has_an_index(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'task_by_tag'")
        assert "USING gin (tags)" in cursor.fetchone()[0]
