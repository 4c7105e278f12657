"""Permits asked for at the same moment, on real connections: the last unit goes out once (F102, I8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from recovery import intake
from recovery.work import stops
from runs import wall
from runs.models import RateWindow
from tests.factories import Agent, Case, billing_manifest, make_person, open_run, propose, register, turn
from tests.failures.conftest import manifest
from tests.races.together import answers, at_once
from tests.recovery.stories import actions, kinds, open_tasks, standing, tries

ROUNDS = range(5)


def opened(agent: Agent, **promises: Any) -> Case:
    register(agent, manifest(**promises))
    return open_run(agent, scope={})


def child_of(parent: Case) -> Case:
    return open_run(parent.agent, scope={}, parent_run_id=str(parent.run_id))


def read(case: Case, number: int) -> Callable[[], Any]:
    return lambda: propose(case, "load_invoice", {"invoice": f"INV-{number}"}, step=f"read {number}")


def errors(given: list[Any]) -> list[Any]:
    return [one for one in given if isinstance(one, Exception)]


def test_F102_two_sub_agents_share_their_parents_last_call(agent: Agent) -> None:
    for _ in ROUNDS:
        root = opened(agent, budgets={"max_tool_calls": 3})
        first, second = child_of(root), child_of(root)
        given = at_once(*[read(case, number) for number in range(4) for case in (first, second)])
        assert errors(given) == []
        assert answers(given).count("execute") == 3
        assert root.run.tool_calls == 3
        assert first.run.tool_calls + second.run.tool_calls == 3
        assert standing(root) == ("escalated", "needs_human", "tool_call_budget_exhausted")
        assert len(open_tasks(root)) == 1


def test_F102_a_parent_and_its_sub_agents_share_the_last_call(agent: Agent) -> None:
    for _ in ROUNDS:
        root = opened(agent, budgets={"max_tool_calls": 3})
        middle = child_of(root)
        lowest = child_of(middle)
        given = at_once(*[read(case, number) for number in range(3) for case in (root, middle, lowest)])
        assert errors(given) == []
        assert answers(given).count("execute") == 3
        assert root.run.tool_calls == 3


def test_a_family_is_locked_from_the_root_on_so_that_nobody_waits_for_ever(agent: Agent) -> None:
    root = opened(agent, budgets={"max_tool_calls": 500, "max_turns": 500})
    middle = child_of(root)
    lowest, other = child_of(middle), child_of(root)
    jobs = [read(case, number) for number in range(2) for case in (root, middle, lowest, other)]
    jobs += [lambda case=case: turn(case) for case in (root, middle, lowest, other)]
    assert errors(at_once(*jobs)) == []
    assert (root.run.tool_calls, root.run.turns) == (8, 4)


def test_F102_the_last_place_of_a_rate_window_is_taken_once(agent: Agent) -> None:
    limit = {"calls": 3, "per_seconds": 86400}
    cases = [opened(agent, rate_limit=limit) for _ in range(8)]
    given = at_once(*[lambda case=case: propose(case) for case in cases])
    assert answers(given) == ["execute"] * 3 + ["wait"] * 5
    with wall.within(agent.tenant.pk):
        assert list(RateWindow.objects.values_list("calls", flat=True)) == [3]


def test_a_refused_call_proposed_at_once_is_written_once(agent: Agent) -> None:
    for _ in ROUNDS:
        case = opened(agent)
        given = at_once(*[lambda case=case: propose(case, "no_such_tool", {"q": 1})] * 4)
        assert answers(given) == ["deny"] * 4
        assert len(actions(case)) == 1
        assert kinds(case).count("rejected") == 1
        assert case.run.tool_calls == 1


def test_F102_refused_calls_and_calls_share_the_last_unit(agent: Agent) -> None:
    for _ in ROUNDS:
        case = opened(agent, budgets={"max_tool_calls": 2})
        wrong = [lambda case=case, name=name: propose(case, name, {"q": 1}) for name in ("no_tool", "no_other")]
        given = at_once(*wrong, read(case, 1), read(case, 2))
        assert errors(given) == []
        assert case.run.tool_calls == 2
        assert len(actions(case)) == 2


def test_after_a_switch_is_set_nothing_is_granted_however_many_ask(agent: Agent) -> None:
    omar = make_person("omar", agent.tenant, "oncall")
    for _ in ROUNDS:
        case = opened(agent)
        halt = {"scope": "run", "name": str(case.run_id), "mode": "halt", "reason": "Double bookings."}
        given = at_once(
            lambda halt=halt: stops.set_stop(omar, agent.tenant.pk, **halt),
            *[read(case, number) for number in range(4)],
        )
        assert errors(given) == []
        before = len(tries(case, "load_invoice"))
        assert propose(case, step="afterwards").answer == "stop"
        assert len(tries(case, "load_invoice")) == before == answers(given).count("execute")


def test_F117_two_people_set_the_same_switch_at_once_and_one_reads_who_did(agent: Agent) -> None:
    people = [make_person(name, agent.tenant, "oncall") for name in ("omar", "mia")]
    for mode in stops.MODES:
        halt = {"scope": "everything", "mode": mode, "reason": "Double bookings."}
        given = at_once(*[lambda by=by, halt=halt: stops.set_stop(by, agent.tenant.pk, **halt) for by in people])
        assert sorted(type(one).__name__ for one in given) == ["Refused", "Stop"]


def test_F116_two_clicks_at_once_set_one_switch(agent: Agent) -> None:
    omar = make_person("omar", agent.tenant, "oncall")
    for mode in stops.MODES:
        halt = {"scope": "everything", "mode": mode, "reason": "Double bookings."}
        given = at_once(*[lambda halt=halt: stops.set_stop(omar, agent.tenant.pk, **halt)] * 3)
        assert errors(given) == []
        assert len({stop.pk for stop in given}) == 1


def test_two_people_lift_the_same_switch_once(agent: Agent) -> None:
    omar = make_person("omar", agent.tenant, "oncall")
    switch = stops.set_stop(omar, agent.tenant.pk, scope="everything", mode="halt", reason="Stop.")
    given = at_once(*[lambda: stops.lift_stop(omar, agent.tenant.pk, switch.pk, reason="Go.")] * 4)
    assert sorted(type(one).__name__ for one in given) == ["NoSuchStop"] * 3 + ["Stop"]


def test_F022_two_runners_of_another_version_open_one_task(agent: Agent) -> None:
    register(agent, billing_manifest())
    case = open_run(agent)
    register(agent, billing_manifest(sla_seconds=7200))
    other = open_run(agent).workflow_id
    given = at_once(*[lambda: propose(Case(agent, case.run_id, other))] * 4)
    assert answers(given) == ["stop"] * 4
    assert open_tasks(case) == [("decide_next", "definition_changed")]


@pytest.mark.parametrize("times", [6])
def test_F020_runners_that_come_back_at_once_are_all_counted(agent: Agent, times: int) -> None:
    case = opened(agent)
    given = at_once(*[lambda: intake.resume(agent.who, case.run_id, request_id="t")] * times)
    assert errors(given) == []
    assert case.run.recoveries == times
