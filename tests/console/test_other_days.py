"""A time inside a sentence has its date where it is not of today."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from console.builders import record as records
from console.builders import remaining
from runs import wall
from runs.querysets import read_clock
from tests import factories
from tests.console.conftest import House
from tests.console.test_task import address, plain, text

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]


def test_what_is_left_to_do_says_on_which_day_it_goes_out_again(house: House) -> None:
    case, now = factories.open_run(house.agent), read_clock()
    factories.rate_limit(case)
    with wall.within(case.tenant.pk):
        case.run.actions.update(due_at=now + timedelta(days=1))
        (row, *_) = remaining.rows(records.read(case.run), now)
    assert row.words == f"The same call again from {now + timedelta(days=1):%Y-%m-%d %H:%M:%S} UTC"


def test_facts_that_are_copied_on_another_day_have_their_date(house: House, sign_in: SignIn) -> None:
    case, day = factories.unknown_credit(house.agent), read_clock()
    factories.advance_clock(days=1)
    copied = text(sign_in("alice"), address(case))
    assert re.search(rf"\(.*, {day:%Y-%m-%d} \d\d:\d\d:\d\d UTC\)", copied)


def test_the_time_axis_of_a_run_names_the_days_it_began_and_ended(house: House, sign_in: SignIn) -> None:
    case, day = factories.unknown_credit(house.agent), read_clock()
    factories.advance_clock(days=1)
    shown = text(sign_in("alice"), f"/runs/{case.run_id}/")
    assert f"The run from {day:%Y-%m-%d} " in plain(shown) + shown
