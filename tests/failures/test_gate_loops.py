"""What goes round in circles ends with a person, and refusals are not free (F020, F022, F082, F100)."""

from typing import Any

import pytest
from steadyhand.contract import Resume, ResumeAnswer

from recovery import intake
from tests.factories import (
    RESULTS,
    Agent,
    Case,
    billing_manifest,
    finish,
    make_person,
    open_run,
    propose,
    refuse,
    register,
    reply,
    report,
    succeed,
    turn,
)
from tests.failures.conftest import Opener
from tests.recovery.stories import actions, kinds, open_tasks, press, standing

LOOP = ("escalated", "needs_human", "no_progress_loop")


def read(case: Case, number: int, **found: Any) -> str:
    permit = propose(case, "load_invoice", step=f"read {number}")
    if permit.answer == "execute":
        report(case, permit, reply(RESULTS["load_invoice"] | found), tool="load_invoice")
    return permit.answer


def resume(case: Case, workflow_id: str | None = None) -> ResumeAnswer:
    return intake.resume(case.agent.who, case.run_id, Resume(workflow_id=workflow_id), request_id="test")


def test_the_same_call_with_the_same_answer_stops_the_run_before_the_next_one(opened: Opener) -> None:
    case = opened(budgets={"max_same_answers": 3})
    assert [read(case, number) for number in range(4)] == ["execute"] * 3 + ["stop"]
    assert standing(case) == LOOP
    assert open_tasks(case) == [("decide_next", "no_progress_loop")]
    assert case.run.tool_calls == 3
    assert read(case, 5) == "wait"


def test_another_answer_is_progress(opened: Opener) -> None:
    case = opened(budgets={"max_same_answers": 3})
    found = [{"state": "open"}, {"state": "open"}, {"state": "closed"}, {"state": "closed"}]
    assert [read(case, number, **one) for number, one in enumerate(found)] == ["execute"] * 4
    assert read(case, 9, state="closed") == "execute"
    assert read(case, 10) == "stop"


def test_other_arguments_are_no_loop(opened: Opener) -> None:
    case = opened(budgets={"max_same_answers": 2})
    for number in range(4):
        permit = propose(case, "load_invoice", {"invoice": f"INV-{number}"}, step=f"read {number}")
        report(case, permit, reply({"invoice_id": f"INV-{number}"}), tool="load_invoice")
    assert standing(case)[0] == "executing"


def test_after_a_person_let_the_run_go_on_it_gets_as_many_answers_again(opened: Opener) -> None:
    case = opened(budgets={"max_same_answers": 2})
    assert [read(case, number) for number in range(3)] == ["execute", "execute", "stop"]
    press("resume", case, make_person("alice", case.tenant))
    assert [read(case, number) for number in range(3, 6)] == ["execute", "execute", "stop"]


def test_F082_a_tool_that_does_not_exist_is_refused_counted_and_ends_at_the_ceiling(opened: Opener) -> None:
    case = opened(budgets={"max_tool_calls": 3})
    for name in ("list_branches", "find_branch", "branches"):
        permit = propose(case, name, {"q": 1})
        assert (permit.answer, permit.error.code) == ("deny", "unsupported_operation")
    assert case.run.tool_calls == 3
    assert propose(case, "more_branches", {"q": 1}).answer == "stop"
    assert standing(case) == ("escalated", "needs_human", "tool_call_budget_exhausted")


def test_F082_the_same_refused_call_again_and_again_is_a_loop(opened: Opener) -> None:
    case = opened()
    answers = [propose(case, "list_branches", {"q": 1}, step=f"u{number}").answer for number in range(5)]
    assert answers == ["deny"] * 4 + ["stop"]
    assert standing(case) == LOOP
    assert len(actions(case)) == 1


def test_F082_four_refused_calls_end_the_run_as_what_they_were(opened: Opener) -> None:
    case = opened()
    for number in range(4):
        propose(case, "list_branches", {"q": 1}, step=f"u{number}")
    assert finish(case, "The customer has no branches.").reason_code == "unsupported_operation"


def test_a_provider_that_refuses_under_every_name_is_a_loop(opened: Opener) -> None:
    case = opened(budgets={"max_same_answers": 2})
    refuse(case)
    assert [propose(case, step=f"s{number}").answer for number in range(2)] == ["deny", "stop"]
    assert standing(case) == LOOP


# --- other versions, and runners that only ever come back ---------------------------------------------------


@pytest.fixture
def moved_on(agent: Agent) -> tuple[Case, str]:
    """A run of version 1, and the id of version 2."""
    register(agent, billing_manifest())
    case = open_run(agent)
    register(agent, billing_manifest(sla_seconds=7200))
    return case, open_run(agent).workflow_id


def test_F022_a_proposal_of_another_version_stops_the_run_for_a_person(moved_on: tuple[Case, str]) -> None:
    case, other = moved_on
    permit = propose(Case(case.agent, case.run_id, other))
    assert (permit.answer, permit.error.code) == ("stop", "definition_changed")
    assert standing(case) == ("escalated", "needs_human", "definition_changed")
    assert open_tasks(case) == [("decide_next", "definition_changed")]
    assert actions(case) == []


def test_F022_after_a_person_agreed_the_right_version_goes_on(moved_on: tuple[Case, str]) -> None:
    case, other = moved_on
    assert resume(case, other).ready is False
    assert standing(case) == ("escalated", "needs_human", "definition_changed")
    press("resume", case, make_person("alice", case.tenant))
    assert resume(case, case.workflow_id).ready
    assert propose(case).answer == "execute"


def test_F022_a_runner_that_names_no_version_is_taken_at_its_word(moved_on: tuple[Case, str]) -> None:
    case, _ = moved_on
    assert resume(case).ready


def test_F020_a_runner_that_comes_back_without_getting_on_is_handed_to_a_person(opened: Opener) -> None:
    case = opened()
    assert [resume(case).ready for _ in range(11)] == [True] * 10 + [False]
    assert standing(case) == LOOP
    assert kinds(case).count("resumed") == 10


def test_F020_a_settled_call_is_progress(opened: Opener) -> None:
    case = opened()
    for number in range(3):
        for _ in range(8):
            assert resume(case).ready
        succeed(case, ("load_invoice", "apply_credit", "draft_reply")[number])
    assert case.run.recoveries == 8


def test_F020_a_runner_that_asks_whether_a_person_has_answered_is_not_counted(opened: Opener) -> None:
    case = opened(requires_approval=True)
    turn(case)
    propose(case)
    assert [resume(case).ready for _ in range(30)] == [False] * 30
    assert standing(case) == ("escalated", "needs_human", "approval_required")
