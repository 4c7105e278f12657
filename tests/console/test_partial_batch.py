"""A call that carried many items, of which some were refused: what its page says, and how it comes to an end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from steadyhand.contract import Cancel

from recovery import intake
from tests import factories
from tests.console.conftest import House
from tests.console.test_task import address, plain, text
from tests.factories import Case, report
from tests.failures.test_batches import CLOSED, DONE, answered, manifest, send
from tests.recovery.invariants import broken
from tests.recovery.stories import open_tasks, panel, standing

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]


@pytest.fixture
def partial(house: House) -> Case:
    """Three of five items are done, the other two were refused."""
    factories.register(house.agent, manifest())
    case = factories.open_run(house.agent, scope={})
    report(case, send(case), answered(DONE, CLOSED, DONE, CLOSED, DONE), tool="set_prices")
    return case


def cancel(case: Case) -> None:
    intake.cancel(case.agent.who, case.run_id, Cancel(reason="Enough."), request_id="t")


def test_F049_the_page_says_which_items_are_done_and_that_no_other_world_is_possible(
    partial: Case, sign_in: SignIn
) -> None:
    said = plain(text(sign_in("omar"), address(partial)))
    assert "Done: S1, S3, S5. Refused: S2, S4." in said
    assert "Never happened Ruled out" in said
    assert "Partial Proven" in said
    assert "set_prices: 207 a part is done" in said
    assert "timed out" not in said
    assert "Only a part of it happened" in said
    assert "{&quot;" in said
    assert "{&#x27;" not in said


def test_F049_the_history_names_each_item(partial: Case, sign_in: SignIn) -> None:
    said = plain(text(sign_in("omar"), f"/runs/{partial.run_id}/"))
    assert "prices:S1 is done" in said
    assert "prices:S2 was refused" in said


def test_F049_nobody_is_asked_to_vouch_for_one_of_two_untruths(partial: Case, house: House) -> None:
    verbs = {verb.name: verb for verb in panel(partial, house.people["omar"]).verbs}
    assert not verbs["attest"].allowed
    assert "only a part happened" in verbs["attest"].sentence


def test_F135_the_cancel_of_a_partial_batch_does_not_call_it_unknown(partial: Case, house: House) -> None:
    (verb,) = [one for one in panel(partial, house.people["omar"]).verbs if one.name == "cancel"]
    assert verb.allowed
    assert "that are proven stay" in verb.sentence
    assert "unknown" not in verb.sentence


def test_F049_after_a_cancel_nothing_is_in_question(partial: Case, house: House) -> None:
    cancel(partial)
    assert open_tasks(partial) == []
    assert standing(partial) == ("cancelled", "cancelled", "cancelled_with_effects")
    assert broken(house.nordlicht.pk) == {}


def test_F135_an_item_without_an_end_keeps_the_task_of_a_cancelled_run(house: House) -> None:
    factories.register(house.agent, manifest())
    case = factories.open_run(house.agent, scope={})
    report(case, send(case), answered(DONE, DONE, CLOSED), tool="set_prices")
    cancel(case)
    assert len(open_tasks(case)) == 1
    assert standing(case)[2] == "cancelled_effect_unknown"
