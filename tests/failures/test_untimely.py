"""What comes at a moment at which nobody expects it is taken in or refused, and never breaks the record."""

from typing import Any

import pytest
from steadyhand.contract import Rollback, Turn, Usage

from recovery import intake
from recovery.intake import Conflict
from runs import definitions
from tests.factories import Agent, Case, advance_clock, open_run, propose, report, timed_out
from tests.failures.conftest import Opener
from tests.failures.test_callbacks import CALLBACK, by_reference, secret, send
from tests.failures.test_ingest import whole
from tests.recovery.stories import ABSENT, SILENT, Looks, effects, look, open_tasks, present, standing, tries

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


def test_F102_a_run_that_is_taken_back_in_the_middle_of_a_turn_gives_its_reservation_back(
    opened: Opener, agent: Agent
) -> None:
    parent = opened(budgets={"max_input_tokens": 1000})
    child = open_run(agent, parent_run_id=str(parent.run_id))
    most = Turn(phase="begin", usage=Usage(input_tokens=600))
    assert intake.turn(agent.who, child.run_id, most, request_id="t").answer == "go"
    roll_back(child)
    assert (parent.run.reserved_input_tokens, child.run.reserved_input_tokens) == (0, 0)
    assert (parent.run.input_tokens, child.run.input_tokens) == (600, 600)


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


@pytest.mark.parametrize("known", [True, False])
def test_F004_a_run_that_is_told_from_elsewhere_permits_no_call(
    agent: Agent, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dispatch that is told as the first try would pass for a permit's, and the second effect for none."""
    story = whole(agent)
    story.tell(*story.records[:3])
    case = story.case
    if not known:
        monkeypatch.setattr(definitions, "_by_run", {})  # as in a process that never met it
    with pytest.raises(Conflict, match="told from elsewhere"):
        propose(case)
    assert tries(case) == []
    assert story.tell(*story.records[3:]).errors == []
    assert effects(case) == ["apply_credit", "draft_reply"]
