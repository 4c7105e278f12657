"""Several at the same row, on real connections: one wins, nothing happens twice, nobody meets an error (FAULTS C)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from steadyhand.contract import Cancel

from console.builders import record
from recovery import intake
from recovery.models import Decision
from recovery.work import decisions, worker
from recovery.work.sweep import sweep
from runs import wall
from runs.models import Event, Run
from tests.factories import (
    ARGUMENTS,
    RESULTS,
    Agent,
    Case,
    billing_manifest,
    finish,
    lose_the_reply,
    make_person,
    open_run,
    propose,
    register,
    reply,
    report,
    timed_out,
)
from tests.races.together import answers, at_once
from tests.recovery.stories import (
    ABSENT,
    effects,
    evidence,
    kinds,
    open_tasks,
    order,
    present,
    script,
    standing,
    tries,
)

Later = Callable[[float], None]
ROUNDS = range(5)


@pytest.fixture
def case(agent: Agent) -> Case:
    return opened(agent)


def opened(agent: Agent, **promises: Any) -> Case:
    register(agent, billing_manifest(**promises))
    return open_run(agent)


def nothing(decision_id: Any) -> None:
    """A ring that nobody hears."""


def rungs() -> tuple[list[Any], Callable[[Any], None]]:
    heard: list[Any] = []
    return heard, heard.append


def test_the_same_call_proposed_at_once_is_granted_once(agent: Agent) -> None:
    register(agent)
    for _ in ROUNDS:
        case = open_run(agent)
        given = at_once(*[lambda case=case: propose(case)] * 4)
        assert answers(given) == ["execute", "wait", "wait", "wait"]
        assert len(tries(case)) == 1


def test_the_same_write_under_two_steps_at_once_is_granted_once(agent: Agent) -> None:
    register(agent)
    for _ in ROUNDS:
        case = open_run(agent)
        given = at_once(*[lambda case=case, step=step: propose(case, step=step) for step in ("one", "two", "three")])
        assert answers(given) == ["execute", "wait", "wait"]
        assert len(tries(case)) == 1


def test_F088_two_amounts_for_one_step_at_once_are_not_both_sent(agent: Agent) -> None:
    register(agent)
    for _ in ROUNDS:
        case = open_run(agent)
        amounts = [ARGUMENTS["apply_credit"] | {"amount_minor": amount} for amount in (100, 200, 300)]
        given = at_once(*[lambda case=case, sent=sent: propose(case, arguments=sent) for sent in amounts])
        assert answers(given) == ["execute", "wait", "wait"]


def test_F102_the_last_tool_call_is_reserved_once_by_eight(agent: Agent) -> None:
    case = opened(agent, budgets={"max_tool_calls": 3})
    given = at_once(*[lambda step=step: propose(case, "load_invoice", step=f"s{step}") for step in range(8)])
    assert answers(given).count("execute") == 3
    assert case.run.tool_calls == 3
    assert case.run.reason_code == "tool_call_budget_exhausted"
    assert not [one for one in given if isinstance(one, Exception)]


def test_F102_the_last_turn_is_counted_once(agent: Agent) -> None:
    case = opened(agent, budgets={"max_turns": 3})
    turn = intake.Turn()
    given = at_once(*[lambda: intake.turn(agent.who, case.run_id, turn, request_id="t")] * 6)
    assert answers(given) == ["go"] * 3 + ["stop"] * 3
    assert case.run.turns == 3


def test_parallel_calls_of_one_run_all_go_through(case: Case) -> None:
    given = at_once(*[lambda step=step: propose(case, "load_invoice", step=f"s{step}") for step in range(6)])
    assert answers(given) == ["execute"] * 6
    found = reply(RESULTS["load_invoice"])
    told = at_once(*[lambda permit=permit: report(case, permit, found, tool="load_invoice") for permit in given])
    assert answers(told) == ["result"] * 6
    assert standing(case) == ("executing", None, None)
    assert case.run.in_flight == 0


def test_I18_history_has_the_order_in_which_the_run_was_held_and_not_that_of_transaction_numbers(case: Case) -> None:
    permits = [propose(case, "load_invoice", step=f"s{step}") for step in range(2)]
    found = reply(RESULTS["load_invoice"])
    with transaction.atomic():
        with connection.cursor() as cursor:  # as a statement that has its number already and still waits for the row
            cursor.execute("SELECT pg_current_xact_id()")
        at_once(lambda: report(case, permits[0], found, tool="load_invoice"))
        report(case, permits[1], found, tool="load_invoice")
    with wall.within(case.tenant.pk):
        told = list(Event.objects.filter(run_id=case.run_id, kind="succeeded").order_by(*Event.IN_ORDER))
        shown = record.events(case.run)[:2]
    assert told[0].txid > told[1].txid
    assert [event.to_state for event in told] == ["waiting_for_tool", "executing"]
    assert [event.pk for event in shown] == [told[1].pk, told[0].pk]


def test_two_writes_reported_at_once_leave_the_run_executing(agent: Agent) -> None:
    register(agent)
    for _ in ROUNDS:
        case = open_run(agent)
        permits = {tool: propose(case, tool) for tool in ("apply_credit", "draft_reply")}
        at_once(*[
            lambda case=case, tool=tool, permit=permit: report(case, permit, reply(RESULTS[tool]))
            for tool, permit in permits.items()
        ])  # fmt: skip
        assert standing(case)[0] == "executing"
        assert sorted(effects(case)) == ["apply_credit", "draft_reply"]


def test_one_lost_and_one_proven_at_once_leave_the_run_verifying(agent: Agent) -> None:
    register(agent)
    for _ in ROUNDS:
        case = open_run(agent)
        lost, proven = propose(case), propose(case, "draft_reply")
        at_once(
            lambda case=case, lost=lost: report(case, lost, timed_out()),
            lambda case=case, proven=proven: report(case, proven, reply(RESULTS["draft_reply"])),
        )
        assert standing(case)[0] == "verifying"
        assert effects(case) == ["draft_reply"]


def test_F062_the_same_report_twice_at_once_is_one_effect(case: Case) -> None:
    permit = propose(case)
    told = at_once(*[lambda: report(case, permit, reply(RESULTS["apply_credit"]))] * 4)
    assert answers(told) == ["result"] * 4
    assert kinds(case).count("succeeded") == 1
    assert effects(case) == ["apply_credit"]


def test_a_report_and_the_end_of_its_lease_at_once_come_to_one_outcome(agent: Agent, later: Later) -> None:
    case = opened(agent)
    permit = propose(case)
    later(46)
    told = at_once(lambda: report(case, permit, reply(RESULTS["apply_credit"])), lambda: sweep(ring=nothing))
    assert not [one for one in told if isinstance(one, Exception)]
    assert effects(case) == ["apply_credit"]
    assert open_tasks(case) == []


def test_F136_a_cancel_and_a_report_at_once_leave_one_end(agent: Agent) -> None:
    register(agent)
    for _ in ROUNDS:
        case = open_run(agent)
        permit = propose(case)
        at_once(
            lambda case=case, permit=permit: report(case, permit, reply(RESULTS["apply_credit"])),
            lambda case=case: intake.cancel(agent.who, case.run_id, Cancel(reason="No."), request_id="t"),
        )
        assert standing(case) == ("cancelled", "cancelled", "cancelled_with_effects")
        assert kinds(case).count("cancelled") == 1


def test_F136_a_cancel_and_a_finish_at_once_leave_one_end(agent: Agent) -> None:
    register(agent)
    for _ in ROUNDS:
        case = open_run(agent)
        for tool in ("apply_credit", "draft_reply"):
            report(case, propose(case, tool), reply(RESULTS[tool]))
        at_once(
            lambda case=case: finish(case),
            lambda case=case: intake.cancel(agent.who, case.run_id, Cancel(reason="No."), request_id="t"),
        )
        assert standing(case)[0] in ("completed", "cancelled")
        assert len({"completed", "cancelled"} & set(kinds(case))) == 1


def test_the_same_run_opened_at_once_is_one_run(agent: Agent) -> None:
    register(agent)
    given = at_once(*[lambda: open_run(agent, ref="case-1")] * 4)
    assert len({one.run_id for one in given}) == 1
    with wall.within(agent.tenant.pk):
        assert Run.objects.count() == 1


def test_F070_two_sweeps_at_once_expire_and_order_everything_once(agent: Agent, later: Later) -> None:
    register(agent)
    cases = [open_run(agent) for _ in range(6)]
    for case in cases:
        propose(case)
    later(46)
    at_once(*[lambda: sweep(ring=nothing)] * 3)
    sweep(ring=nothing)  # what one of them had locked, the next pass finds
    assert [kinds(case).count("lease_expired") for case in cases] == [1] * 6
    later(600)
    at_once(*[lambda: sweep(ring=nothing)] * 3)
    sweep(ring=nothing)
    with wall.within(agent.tenant.pk):
        assert Decision.objects.count() == 6


def test_F070_two_sweeps_at_once_ring_each_lost_message_once(agent: Agent, later: Later) -> None:
    case = opened(agent)
    lose_the_reply(case)
    alice = make_person("alice", agent.tenant)
    decisions.reconcile(order(case, alice), ring=nothing)
    later(6)
    heard, ring = rungs()
    at_once(*[lambda: sweep(ring=ring)] * 3)
    assert len(heard) == 1


def test_F070_a_sweep_passes_by_what_somebody_else_holds(agent: Agent, later: Later) -> None:
    case, other = opened(agent), open_run(agent)
    lose_the_reply(case)
    decisions.reconcile(order(case, make_person("alice", agent.tenant)), ring=nothing)
    propose(other)
    later(60)
    heard, ring = rungs()
    with wall.within(agent.tenant.pk):
        held = [list(Decision.objects.select_for_update()), list(Run.objects.select_for_update())]
        (done,) = at_once(lambda: sweep(ring=ring))
    assert [len(rows) for rows in held] == [1, 2]
    assert (done["leases"], done["due"], done["nudges"], heard) == (0, 0, 0, [])
    sweep(ring=ring)
    assert set(heard) == {row.pk for row in decisions_of(agent)}
    assert standing(other)[0] == "verifying"


def decisions_of(agent: Agent) -> list[Decision]:
    with wall.within(agent.tenant.pk):
        return list(Decision.objects.all())


def test_F052_two_workers_with_one_message_make_one_look(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = script(monkeypatch)
    looks.say(present())
    register(agent)
    alice = make_person("alice", agent.tenant)
    for _ in ROUNDS:
        looks.asked.clear()
        case = open_run(agent)
        lose_the_reply(case)
        ordered = decisions.reconcile(order(case, alice), ring=nothing)
        given = at_once(*[lambda ordered=ordered: worker.execute(ordered.pk)] * 3)
        assert given == [None] * 3
        assert (len(looks.asked), evidence(case)) == (1, ["present"])
        assert effects(case) == ["apply_credit"]


def test_F116_two_clicks_of_one_button_at_once_are_one_decision(agent: Agent) -> None:
    case = opened(agent)
    lose_the_reply(case)
    form = order(case, make_person("alice", agent.tenant))
    given = at_once(*[lambda: decisions.reconcile(form, ring=nothing)] * 4)
    assert len({one.pk for one in given}) == 1


def test_F117_two_people_at_once_on_one_task_have_one_winner(agent: Agent) -> None:
    case = opened(agent)
    lose_the_reply(case)
    people = [make_person(name, agent.tenant, "oncall") for name in ("alice", "omar", "ada")]
    forms = [order(case, person) for person in people]
    given = at_once(*[lambda form=form: decisions.claim(form) for form in forms])
    won = [one for one in given if isinstance(one, Decision)]
    assert len(won) == 1
    assert {type(one) for one in given if one not in won} <= {decisions.Overtaken, decisions.Refused}


def test_a_click_and_the_clock_at_once_order_one_look(agent: Agent, later: Later) -> None:
    case = opened(agent)
    lose_the_reply(case)
    later(6)
    form = order(case, make_person("alice", agent.tenant))
    at_once(lambda: decisions.reconcile(form, ring=nothing), lambda: sweep(ring=nothing))
    with wall.within(agent.tenant.pk):
        assert Decision.objects.filter(state="requested").count() == 1


def test_a_retry_and_its_twin_after_a_final_absence_send_once(
    agent: Agent, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = script(monkeypatch)
    looks.say(ABSENT)
    case = opened(agent, in_flight_seconds=20, lag_seconds=5)
    lose_the_reply(case)
    later(25)
    sweep(ring=worker.execute)
    given = at_once(*[lambda: propose(case)] * 4)
    assert answers(given) == ["execute", "wait", "wait", "wait"]
    assert [one.number for one in tries(case)] == [1, 2]
