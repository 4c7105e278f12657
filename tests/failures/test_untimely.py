"""What comes at a moment at which nobody expects it is taken in or refused, and never breaks the record."""

from collections.abc import Callable
from typing import Any

import pytest
from steadyhand.contract import Rollback

from recovery import intake
from tests.factories import Case, advance_clock, propose, reply, report, timed_out
from tests.failures.conftest import Opener
from tests.failures.test_callbacks import CALLBACK, by_reference, secret, send
from tests.recovery.stories import ABSENT, SILENT, Looks, effects, look, open_tasks, present, standing

__all__ = ["secret"]
pytestmark = pytest.mark.django_db


def roll_back(case: Case) -> Any:
    return intake.rollback(case.agent.who, case.run_id, Rollback(reason="Not wanted any more."), request_id="t")


def test_a_run_is_taken_back_before_its_first_call(opened: Opener) -> None:
    case = opened()
    assert roll_back(case).state == "failed"
    assert standing(case) == ("failed", "fatal", "not_applied")
    assert propose(case).answer == "stop"
    assert roll_back(case).state == "failed"


@pytest.mark.parametrize(("seen", "state"), [(SILENT, "probe_failed"), (ABSENT, "absent")])
@pytest.mark.parametrize("said", ["created", "processing", "odd"])
def test_F073_news_of_progress_between_two_looks_leaves_the_next_look_to_settle_it(
    opened: Opener, looks: Looks, secret: bytes, said: str, seen: Any, state: str
) -> None:
    case = opened(callback=CALLBACK, lag_seconds=600)
    permit = propose(case)
    report(case, permit, timed_out())
    looks.say(seen)
    advance_clock(seconds=6)
    look(case)
    assert case.action().state == state
    assert send(case, secret, state=said, **by_reference(permit)) in ("used", "ignored")
    assert case.action().state == state
    looks.say(present())
    advance_clock(seconds=700)
    look(case)
    assert (case.action().state, effects(case), open_tasks(case)) == ("succeeded", ["apply_credit"], [])
