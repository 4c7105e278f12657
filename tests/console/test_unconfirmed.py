"""A settled call that nobody could confirm: what its page says, and the one thing that it points at (F042)."""

from __future__ import annotations

import pytest

from recovery.models import HumanTask
from runs import wall
from tests import factories
from tests.console.conftest import House
from tests.console.test_task import address, plain, text
from tests.factories import Case, advance_clock
from tests.recovery.stories import SILENT, look, script

pytestmark = pytest.mark.django_db


@pytest.fixture
def unconfirmed(house: House, monkeypatch: pytest.MonkeyPatch) -> Case:
    """A credit whose reply came, and whose every later count was asked in vain."""
    script(monkeypatch).say(SILENT)
    factories.register(house.agent, factories.billing_manifest(in_flight_seconds=20, lag_seconds=5))
    case = factories.open_run(house.agent)
    factories.succeed(case, "apply_credit")
    for _ in range(9):
        advance_clock(minutes=6)
        look(case)
    return case


def test_F042_the_page_says_what_is_not_confirmed_and_points_at_one_more_check(
    unconfirmed: Case, house: House
) -> None:
    said = plain(text(house.browser("omar"), address(unconfirmed)))
    assert "apply_credit: the reply is not yet confirmed" in said
    assert "Believed, not confirmed: one apply_credit of 120.00 EUR 7 look-ups made." in said
    assert "exists once" not in said
    assert "Recommended: check what happened. Asks the provider for the effect of apply_credit" in said
    assert "Nobody could confirm apply_credit. apply_credit counts as done, and 7 look-ups could not" in said
    assert "Owned by billing-support" in said


def test_F042_the_queue_does_not_count_it_as_a_proven_change(unconfirmed: Case, house: House) -> None:
    with wall.within(unconfirmed.tenant.pk):
        asked = HumanTask.objects.get(run_id=unconfirmed.run_id)
    assert (asked.reason_code, asked.answer) == ("postcondition_unproven", "unknown")
