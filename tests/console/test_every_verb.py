"""Every address that acts, found in the list of addresses: closed to strangers, to other sites and to a mere look."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from console.urls import urlpatterns
from runs import wall
from tests import factories
from tests.console.conftest import House
from tests.factories import Case

pytestmark = [pytest.mark.django_db, pytest.mark.security]
VERBS = sorted(
    match[1] for one in urlpatterns if (match := re.fullmatch(r"tasks/<uuid:task_id>/([a-z-]+)/", str(one.pattern)))
)
VERBS.remove("live")
PAGES = ["/tasks/{task}/", "/tasks/{task}/live/", "/runs/{run}/", "/runs/{run}/live/"]
MARKS = {"version": "1", "evidence_hash": "0" * 64, "key": uuid.uuid4().hex}
MORE = {"reason": "x", "reason_code": "other", "text": "x", "reference": "x", "outcome": "absent", "amount": "1"}
FORM = {**MARKS, **MORE}


@pytest.fixture
def case(house: House) -> Case:
    return factories.unknown_credit(house.agent)


def facts(case: Case) -> list[Any]:
    """What a verb would change."""
    tables = ("runs_run", "runs_action", "runs_event", "recovery_humantask", "recovery_decision")
    with wall.within(case.tenant.pk), connection.cursor() as cursor:
        found = []
        for table in tables:
            cursor.execute(f"SELECT count(*), md5(string_agg(t::text, '' ORDER BY id)) FROM {table} t")
            found.append(cursor.fetchone())
        return found


def test_the_list_of_addresses_has_verbs() -> None:
    assert {"approve", "reject", "replay", "discard", "top-up", "attest", "compensate"} < set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_F122_a_foreign_task_is_a_missing_one_for_every_verb(house: House, case: Case, verb: str) -> None:
    charlie, before = house.browser("charlie"), facts(case)
    answers = [charlie.post(f"/tasks/{ident}/{verb}/", FORM) for ident in (case.task().pk, uuid.uuid4())]
    assert [one.status_code for one in answers] == [404, 404]
    assert len({re.sub(r'nonce="[^"]+"', "", one.content.decode()) for one in answers}) == 1
    assert facts(case) == before


@pytest.mark.parametrize("verb", VERBS)
def test_SEC_11_another_sites_form_and_a_look_change_nothing(house: House, case: Case, verb: str) -> None:
    omar, path, before = house.browser("omar"), f"/tasks/{case.task().pk}/{verb}/", facts(case)
    assert omar.get(path).status_code in (200, 302, 405)
    omar.handler.enforce_csrf_checks = True
    assert omar.post(path, FORM).status_code == 403
    assert Client().post(path, FORM).status_code == 302
    assert facts(case) == before


@pytest.mark.parametrize("page", PAGES)
def test_F122_a_foreign_page_is_a_missing_one(house: House, case: Case, page: str) -> None:
    charlie = house.browser("charlie")
    ours, nobodys = {"task": case.task().pk, "run": case.run_id}, {"task": uuid.uuid4(), "run": uuid.uuid4()}
    answers = [charlie.get(page.format(**ids)) for ids in (ours, nobodys)]
    assert [one.status_code for one in answers] == [404, 404]
    assert len({re.sub(r'nonce="[^"]+"', "", one.content.decode()) for one in answers}) == 1
