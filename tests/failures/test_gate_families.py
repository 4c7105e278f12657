"""Sub-agents: what they do is charged to the run they work for, and they may touch no more than it (I8, F100)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from steadyhand.contract import Cancel
from steadyhand.identity import BadInput

from recovery import family, intake
from recovery.answers import Conflict
from runs import record, wall
from runs.record import Actor
from tests.factories import (
    ACCOUNT,
    ARGUMENTS,
    Agent,
    Case,
    advance_clock,
    billing_manifest,
    finish,
    make_client,
    make_tenant,
    open_run,
    propose,
    refuse,
    register,
    succeed,
    turn,
)
from tests.failures.conftest import Opener
from tests.recovery.stories import kinds, open_tasks, standing

ACTOR = Actor("agent", "billing-agent")


def child_of(parent: Case, scope: dict[str, Any] | None = None, **more: Any) -> Case:
    return open_run(parent.agent, parent_run_id=str(parent.run_id), scope=scope or {}, **more)


def read(case: Case, number: int) -> str:
    return propose(case, "load_invoice", {"invoice": f"INV-{number}"}, step=f"read {number}").answer


def charge(case: Case, **units: int) -> str | None:
    with wall.within(case.tenant.pk):
        run = record.lock_family(case.run_id)[-1]
        return family.charge(run, ACTOR, **units)


def test_a_call_of_a_sub_agent_is_a_call_of_every_run_above(opened: Opener) -> None:
    root = opened()
    child = child_of(root)
    grandchild = child_of(child)
    succeed(grandchild)
    succeed(child, "load_invoice")
    assert [case.run.tool_calls for case in (root, child, grandchild)] == [2, 2, 1]


def test_F100_the_parents_ceiling_stops_the_sub_agent_and_both_are_seen(opened: Opener) -> None:
    root = opened(budgets={"max_tool_calls": 2})
    child = child_of(root)
    assert [read(child, 1), read(root, 2), read(child, 3)] == ["execute", "execute", "stop"]
    for case in (root, child):
        assert standing(case) == ("escalated", "needs_human", "tool_call_budget_exhausted")
        assert open_tasks(case) == [("decide_next", "tool_call_budget_exhausted")]
    assert [case.run.tool_calls for case in (root, child)] == [2, 1]
    assert "parent_stopped" in kinds(child)


def test_F100_the_sub_agents_own_ceiling_leaves_its_parent_alone(opened: Opener, agent: Agent) -> None:
    root = opened()
    register(agent, billing_manifest(budgets={"max_tool_calls": 1}), "narrow")
    child = child_of(root, workflow="narrow")
    assert [read(child, 1), read(child, 2)] == ["execute", "stop"]
    assert standing(child)[2] == "tool_call_budget_exhausted"
    assert standing(root)[0] == "planning"
    assert root.run.tool_calls == 1


def test_a_refused_call_of_a_sub_agent_is_charged_too(opened: Opener) -> None:
    root = opened()
    child = child_of(root)
    propose(child, "no_such_tool", {"q": 1})
    refuse(child)
    propose(child, step="again")
    assert [case.run.tool_calls for case in (root, child)] == [3, 3]


def test_a_second_try_is_no_second_call(opened: Opener) -> None:
    root = opened()
    child = child_of(root)
    propose(child)
    advance_clock(minutes=2)
    propose(child)
    assert (root.run.tool_calls, child.run.tool_calls) == (1, 1)


@pytest.mark.parametrize(
    ("budget", "units", "reason"),
    [
        ({"max_turns": 2}, {"turns": 1}, "turn_budget_exhausted"),
        ({"max_tool_calls": 2}, {"tool_calls": 1}, "tool_call_budget_exhausted"),
        ({"max_input_tokens": 20}, {"input_tokens": 10}, "token_budget_exhausted"),
        ({"max_output_tokens": 20}, {"output_tokens": 10}, "token_budget_exhausted"),
        ({"max_estimated_cost_minor_units": 20}, {"cost_minor": 10}, "cost_budget_exhausted"),
    ],
)
def test_F100_each_budget_of_the_parent_is_named_when_it_fires(
    opened: Opener, budget: dict[str, int], units: dict[str, int], reason: str
) -> None:
    root = opened(budgets=budget)
    child = child_of(root)
    ahead = next(iter(units)) in ("turns", "tool_calls")
    assert [charge(child, **units) for _ in range(3)] == ([None, None, reason] if ahead else [None, reason, reason])
    assert standing(root) == ("escalated", "needs_human", reason)
    name, each = next(iter(units.items()))
    assert getattr(root.run, name) == (2 if ahead else 3) * each


def test_F100_the_parents_time_is_the_sub_agents_time(opened: Opener) -> None:
    root = opened(budgets={"max_elapsed_seconds": 60})
    advance_clock(seconds=30)
    child = child_of(root)
    assert read(child, 1) == "execute"
    advance_clock(seconds=30)
    assert read(child, 2) == "stop"
    assert standing(child) == standing(root) == ("escalated", "needs_human", "time_budget_exhausted")


def test_what_was_reserved_above_is_given_back(opened: Opener) -> None:
    root = opened(budgets={"max_input_tokens": 100})
    child = child_of(root)
    assert charge(child, reserved_input_tokens=90) is None
    assert charge(child, reserved_input_tokens=20) == "token_budget_exhausted"
    charge(child, input_tokens=50, reserved_input_tokens=-90)
    assert (root.run.input_tokens, root.run.reserved_input_tokens) == (50, 0)


def test_a_run_that_works_for_nobody_is_charged_nowhere_else(opened: Opener) -> None:
    case = opened()
    assert charge(case, tool_calls=1) is None
    assert case.run.tool_calls == 0


def test_a_sub_agent_does_not_work_on_for_a_run_that_is_done(opened: Opener) -> None:
    root = opened()
    child = child_of(root)
    for tool in ("apply_credit", "draft_reply"):
        succeed(root, tool)
    assert finish(root).outcome == "ok"
    assert read(child, 1) == "stop"
    assert standing(child) == ("escalated", "needs_human", "stopped_by_operator")
    assert root.run.tool_calls == 2


def test_a_sub_agent_does_not_work_on_for_a_run_that_is_cancelled(opened: Opener) -> None:
    root = opened()
    child = child_of(root)
    intake.cancel(root.agent.who, root.run_id, Cancel(reason="No longer needed."), request_id="t")
    assert read(child, 1) == "stop"
    assert standing(child)[0] == "cancelled"


# --- opening, and what it may touch -------------------------------------------------------------------------


def test_five_runs_deep_is_deep_enough(opened: Opener) -> None:
    case = opened()
    for _ in range(4):
        case = child_of(case)
    with pytest.raises(BadInput, match="parent_run_id"):
        child_of(case)


def test_a_parent_that_is_not_ones_own_does_not_exist(opened: Opener) -> None:
    case = opened()
    other = make_client(case.tenant, "other-agent")
    foreign = make_client(make_tenant("south"))
    register(foreign)
    for agent, parent in [(other, case.run_id), (foreign, case.run_id), (case.agent, uuid.uuid4()), (other, "x")]:
        with pytest.raises(BadInput) as refused:
            open_run(agent, parent_run_id=str(parent))
        assert refused.value.remedy == "name an open run of this agent"


def test_a_run_that_has_ended_takes_no_sub_agent(opened: Opener) -> None:
    case = opened()
    for tool in ("apply_credit", "draft_reply"):
        succeed(case, tool)
    finish(case)
    with pytest.raises(BadInput):
        child_of(case)


def test_the_same_request_again_is_the_same_sub_agent_and_of_another_parent_a_conflict(opened: Opener) -> None:
    first, second = opened(), opened()
    child = child_of(first, ref="once")
    assert child_of(first, ref="once").run_id == child.run_id
    with pytest.raises(Conflict):
        child_of(second, ref="once")


LIMITS: dict[str, Any] = {
    "tools": ["apply_credit", "load_invoice"],
    "ids": {"account": [ACCOUNT, "acct_2"]},
    "max_amount_minor": 15_000,
    "currency": "EUR",
    "expires_at": "2100-01-01T00:00:00Z",
}


def test_what_a_sub_agent_leaves_open_is_its_parents(opened: Opener) -> None:
    child = child_of(opened(run={"scope": LIMITS}))
    assert child.run.scope == LIMITS
    assert propose(child, "draft_reply").error.code == "policy_denied"
    assert propose(child).answer == "execute"


def test_a_sub_agent_may_be_given_less(opened: Opener) -> None:
    less = {"tools": ["apply_credit"], "ids": {"account": ["acct_2"], "invoice": ["INV-1"]}, "max_amount_minor": 9}
    child = child_of(opened(run={"scope": LIMITS}), scope=less)
    assert child.run.scope == LIMITS | less
    assert propose(child, arguments=ARGUMENTS["apply_credit"]).answer == "deny"


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("scope.tools", {"tools": ["apply_credit", "draft_reply"]}),
        ("scope.ids.account", {"ids": {"account": ["acct_2", "acct_3"]}}),
        ("scope.max_amount_minor", {"max_amount_minor": 15_001}),
        ("scope.currency", {"currency": "USD"}),
        ("scope.expires_at", {"expires_at": "2100-01-01T00:00:01Z"}),
    ],
)
def test_a_sub_agent_may_not_be_given_more(opened: Opener, field: str, more: dict[str, Any]) -> None:
    parent = opened(run={"scope": LIMITS})
    with pytest.raises(BadInput) as refused:
        child_of(parent, scope=more)
    assert refused.value.field == field


def test_a_turn_of_a_sub_agent_is_a_turn_of_its_parent(opened: Opener) -> None:
    root = opened()
    turn(child_of(root))
    assert (root.run.turns, root.run.input_tokens) == (1, 900)
