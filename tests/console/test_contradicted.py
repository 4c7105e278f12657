"""What a person reads about late evidence: what was decided before, on what, and whose bound was not kept."""

from __future__ import annotations

import re

import pytest

from tests import factories
from tests.console.conftest import House, make_house
from tests.console.test_task import address, plain, text
from tests.factories import RESULTS, advance_clock, reply
from tests.recovery.stories import ABSENT, look, script

pytestmark = pytest.mark.django_db


@pytest.fixture
def seen(db: None, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The task's page and its run's, after the reply that a final look had ruled out."""
    house: House = make_house(factories.billing_manifest(in_flight_seconds=20, lag_seconds=5))
    looks = script(monkeypatch)
    case = factories.open_run(house.agent)
    first = factories.propose(case)
    looks.say(ABSENT)
    for _ in range(3):
        advance_clock(seconds=60)
        look(case)
    factories.report(case, first, reply(RESULTS["apply_credit"]), "apply_credit")
    browser = house.browser("alice")
    return plain(text(browser, address(case))), plain(text(browser, f"/runs/{case.run_id}/"))


def test_F028_the_task_says_what_was_decided_on_what_and_whose_bound_was_not_kept(seen: tuple[str, str]) -> None:
    task, _ = seen
    assert "Decided before: sweep decided retry planned by rule 8i" in task
    assert "when the latest evidence was “absent final” from payments." in task
    assert "A declared bound was not kept. payments had said, 25 seconds or more after apply_credit was over" in task


def test_F028_the_run_says_so_in_its_history(seen: tuple[str, str]) -> None:
    _, run = seen
    assert "A declared bound was not kept." in run
    assert "New evidence contradicts what was decided about apply_credit" in run
    assert "Task reopened" in run


def test_F029_a_believed_reply_that_a_later_count_denies_is_a_conflict_while_it_is_asked_about(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    house: House = make_house(factories.billing_manifest(in_flight_seconds=20, lag_seconds=5))
    looks = script(monkeypatch)
    case = factories.open_run(house.agent)
    factories.succeed(case)
    factories.succeed(case, "draft_reply")
    factories.finish(case)
    looks.say(ABSENT)
    advance_clock(seconds=60)
    look(case)
    browser = house.browser("alice")
    page = plain(text(browser, address(case)))
    assert "The ledger no longer supports it" in page
    assert "Agrees with the ledger" not in page
    assert "Contested 120.00 EUR" in page
    assert not re.search(r"Proven [^A-Z]*120.00 EUR", page)
    assert "contradicted since" in page
    assert "Conflict: the records contradict each other" in plain(text(browser, address(case)))
    assert re.search(r"records contradict each other .{0,160} Conflict ", plain(text(browser, "/")))
    assert re.search(r"Effects 1 proven\W+1 contested", plain(text(browser, f"/runs/{case.run_id}/")))
