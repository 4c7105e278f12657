"""A claim on its page: what is left of it, the warning before it ends, and the note once it has gone back."""

from __future__ import annotations

import pytest

from recovery.work.sweep import sweep
from tests import factories
from tests.console.conftest import House
from tests.console.desk import address, said
from tests.factories import Case
from tests.recovery import stories

pytestmark = pytest.mark.django_db


@pytest.fixture
def claimed(house: House) -> Case:
    case = factories.unknown_credit(house.agent)
    stories.press("claim", case, house.people["alice"])
    return case


def seen(house: House, case: Case, name: str = "alice") -> str:
    return said(house.browser(name).get(address(case)))


def decay() -> None:
    factories.advance_clock(minutes=31)
    sweep(ring=lambda decision_id: None)


def test_a_claim_says_how_much_of_it_is_left(house: House, claimed: Case) -> None:
    factories.advance_clock(minutes=6, seconds=30)
    assert "23 min left, until" in seen(house, claimed)
    assert "Your claim ends" not in seen(house, claimed)


def test_its_holder_is_warned_before_it_ends_and_nobody_else(house: House, claimed: Case) -> None:
    factories.advance_clock(minutes=26)
    assert "Your claim ends in 4 minutes; then the task goes back to the queue." in seen(house, claimed)
    assert "Extend" in seen(house, claimed)
    assert "claim ends in" not in seen(house, claimed, "omar")


def test_the_live_region_brings_the_warning_by_itself(house: House, claimed: Case) -> None:
    alice, live = house.browser("alice"), f"{address(claimed)}live/"
    before = alice.get(live)
    factories.advance_clock(minutes=26)
    after = alice.get(live, headers={"If-None-Match": before.headers["ETag"]})
    assert after.status_code == 200
    assert "data-say>Your claim ends in 4 minutes" in after.content.decode()


def test_an_extended_claim_has_thirty_minutes_again(house: House, claimed: Case) -> None:
    factories.advance_clock(minutes=26)
    stories.press("claim", claimed, house.people["alice"])
    assert "30 min left, until" in seen(house, claimed)
    assert "Your claim ends" not in seen(house, claimed)


def test_a_claim_that_decayed_leaves_a_note_until_somebody_takes_the_task(house: House, claimed: Case) -> None:
    decay()
    note = "The claim of Alice ended without an act at"
    assert note in seen(house, claimed, "omar")
    assert "nobody has taken it since" in seen(house, claimed, "omar")
    stories.press("claim", claimed, house.people["omar"])
    stories.press("release", claimed, house.people["omar"])
    assert "nobody has taken it since" not in seen(house, claimed)


def test_the_tab_of_failed_undos_holds_them_and_no_other(house: House) -> None:
    factories.unknown_credit(house.agent)
    task = factories.unknown_credit(house.agent).task()
    alice = house.browser("alice")
    assert "No undo has failed." in said(alice.get("/?view=failed"))
    task.kind, task.reason_code = "compensation", "compensation_failed"
    with factories.wall.within(house.nordlicht.pk):
        task.save(update_fields=["kind", "reason_code"])
    text = said(alice.get("/?view=failed"))
    assert "1 task in 1 cause" in text
    assert "an undo failed or its outcome is unknown" in text
