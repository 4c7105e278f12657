"""Calls that need a person first, and calls whose amount asks for more proof (DECISIONS 2: gate, proof)."""

from tests.factories import advance_clock, lose_the_reply, propose, succeed
from tests.failures.conftest import Opener
from tests.recovery.stories import Looks, effects, look, open_tasks, present, standing, tries


def test_an_amount_over_the_threshold_waits_for_an_approval_and_nothing_is_sent(opened: Opener) -> None:
    case = opened(value_threshold=11_999)
    assert propose(case).answer == "wait"
    assert standing(case) == ("escalated", "needs_human", "approval_required")
    assert open_tasks(case) == [("approval", "approval_required")]
    assert propose(case).answer == "wait"
    assert propose(case, "draft_reply").answer == "wait"
    assert tries(case) == []


def test_an_amount_at_the_threshold_goes_ahead(opened: Opener) -> None:
    assert propose(opened(value_threshold=12_000)).answer == "execute"


def test_F127_an_approval_that_never_comes_dispatches_nothing(opened: Opener) -> None:
    case = opened(requires_approval=True, deadline_seconds=60)
    propose(case)
    advance_clock(hours=2)
    look(case)
    assert tries(case) == []
    assert open_tasks(case) == [("decide_next", "approval_expired")]


def test_an_amount_that_hides_inside_an_object_is_seen(opened: Opener) -> None:
    case = opened(
        value_threshold=100,
        value_field="money.minor",
        currency_field="money.currency",
        input_schema={"type": "object"},
        run={"scope": {}},
    )
    arguments = {"account": "acct_8841", "money": {"minor": 101, "currency": "EUR"}}
    negative = {"money": {"minor": -1, "currency": "EUR"}}
    assert propose(case, arguments=negative, step="other").error.field == "money.minor"
    assert propose(case, arguments=arguments).answer == "wait"
    assert (case.action().value_minor, case.action().currency) == (101, "EUR")


def test_a_small_amount_over_no_threshold_is_proven_by_its_reply(opened: Opener, looks: Looks) -> None:
    case = opened()
    assert succeed(case).answer == "result"
    assert effects(case) == ["apply_credit"]
    assert looks.asked == []


def test_a_lost_write_that_cannot_be_undone_comes_first_in_the_queue(opened: Opener, looks: Looks) -> None:
    case = opened(irreversible=True)
    assert lose_the_reply(case).consequence == 3
    looks.say(present())
    advance_clock(seconds=6)
    look(case)
    assert open_tasks(case) == []
