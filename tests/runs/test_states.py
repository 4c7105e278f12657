"""The state machines: what Python allows, what PostgreSQL allows, and that they are the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from recovery.models import BulkItem, BulkOperation, DeadLetter, Decision, Handover, HumanTask
from runs import states, wall
from runs.ids import new_id
from runs.models import Action, Circuit, Run
from runs.querysets import database_now, read_clock
from runs.states import MACHINES, ONLY, IllegalMove, StaleState, advance, may_move
from tests.factories import LETTER, Case, make_client, make_person, make_tenant, open_run, register, succeed

ACTORS: tuple[wall.Acting, ...] = ("agent", "person", "worker", "timer", "callback", "")
PAIRS = [(machine, old) for machine, moves in MACHINES.items() for old in moves]


@pytest.fixture
def case(db: None) -> Case:
    agent = make_client(make_tenant("north"))
    register(agent)
    return open_run(agent)


def make_run(case: Case, state: str) -> Run:
    run = case.run
    run.pk, run.state, run.client_ref = new_id(), state, new_id().hex
    run.ended_at = read_clock() if state not in states.RUN_OPEN else None
    run.save(force_insert=True)
    return run


def make_action(case: Case, state: str) -> Action:
    return Action.objects.create(
        tenant=case.tenant, run_id=case.run_id, action_id=new_id().hex, step="s", tool="t", tool_version=1,
        effect="read", turn=0, arguments_hash=new_id().hex, arguments={}, sealed_arguments=b"", state=state,
    )  # fmt: skip


def make_task(case: Case, state: str) -> HumanTask:
    person = make_person(f"p{new_id().hex[-12:]}")
    return HumanTask.objects.create(
        tenant=case.tenant, run_id=case.run_id, number=new_id().int % 2**60, kind="k", cause=new_id().hex,
        reason_code="approval_required", workflow_name="w", state=state, owner_team="t", claimed_by=person,
        due_at=read_clock() + timedelta(hours=1),
    )  # fmt: skip


def make_decision(case: Case, state: str) -> Decision:
    return Decision.objects.create(
        tenant=case.tenant, run_id=case.run_id, verb="v", key=new_id().hex, actor_kind="timer", reason="r", rule="1",
        table_version=3, evidence_hash="h", snapshot={}, state=state,
    )  # fmt: skip


def make_dead_letter(case: Case, state: str) -> DeadLetter:
    return DeadLetter.objects.create(
        tenant=case.tenant, run_id=case.run_id, action=make_action(case, "held"), state=state, identity=new_id().hex,
        **LETTER,
    )  # fmt: skip


def make_circuit(case: Case, state: str) -> Circuit:
    return Circuit.objects.create(
        tenant=case.tenant, name=new_id().hex, state=state, until=read_clock(), reason="r",
        by=make_person(f"p{new_id().hex[-12:]}"),
    )  # fmt: skip


def make_handover(case: Case, state: str) -> Handover:
    return Handover.objects.create(
        tenant=case.tenant, run_id=case.run_id, task=make_task(case, "open"), state=state, reason="r", facts=[],
        by=make_person(f"p{new_id().hex[-12:]}"), to=make_person(f"p{new_id().hex[-12:]}"), expires_at=read_clock(),
    )  # fmt: skip


def make_bulk(case: Case, state: str) -> BulkOperation:
    person, now = make_person(f"p{new_id().hex[-12:]}"), read_clock()
    return BulkOperation.objects.create(
        tenant=case.tenant, verb="claim", words="w", address="?", key=new_id().hex, by=person, state=state,
        started_by=person, started_at=now, rate=1,
        ended_at=None if state in STAMPED[BulkOperation] else now,
    )  # fmt: skip


def make_bulk_item(case: Case, state: str) -> BulkItem:
    return BulkItem.objects.create(
        tenant=case.tenant, operation=make_bulk(case, "running"), place=1, task=make_task(case, "open"),
        workflow_id=case.workflow_id, task_version=0, state=state, code="c",
        ended_at=None if state == "pending" else read_clock(),
    )  # fmt: skip


MAKE: dict[str, Callable[[Case, str], Any]] = {
    "run": make_run,
    "action": make_action,
    "task": make_task,
    "decision": make_decision,
    "dead_letter": make_dead_letter,
    "circuit": make_circuit,
    "handover": make_handover,
    "bulk": make_bulk,
    "bulk_item": make_bulk_item,
}
STAMPED: dict[type[Any], tuple[str, ...]] = {
    Run: states.RUN_OPEN,
    BulkOperation: ("created", "running", "suspended"),
    BulkItem: ("pending",),
}
"""Rows that say when they ended, and the states in which they have not."""


def stamps(kind: type[Any], to: str) -> dict[str, Any]:
    if kind not in STAMPED:
        return {}
    return {"ended_at": None if to in STAMPED[kind] else database_now()}


def database_allows(row: Any, to: str) -> bool:
    """Whether the trigger lets this move pass; the move itself is taken back."""
    changes: dict[str, Any] = {"state": to, **stamps(type(row), to)}
    try:
        with transaction.atomic():
            type(row).objects.filter(pk=row.pk).update(**changes)
            transaction.set_rollback(True)
    except IntegrityError as refusal:
        if "is not a move for" not in str(refusal):
            raise
        return False
    return True


def python_allows(row: Any, machine: str, to: str) -> bool:
    """Whether `advance` lets this move pass; the move itself is taken back."""
    before = row.state
    try:
        with transaction.atomic():
            advance(row, machine=machine, to=to, **stamps(type(row), to))
            transaction.set_rollback(True)
    except IllegalMove:
        return False
    row.refresh_from_db()
    assert row.state == before
    return True


def test_the_table_of_moves_is_the_data_of_python(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT machine, from_state, to_state, actors FROM state_move")
        held = {(machine, old, new): actors for machine, old, new, actors in cursor.fetchall()}
    moves = [
        (machine, old, new) for machine, all_moves in MACHINES.items() for old in all_moves for new in all_moves[old]
    ]
    assert held == {(machine, old, new): _only(machine, old, new) for machine, old, new in moves}


def _only(machine: str, old: str, new: str) -> list[str] | None:
    actors = ONLY[machine].get((old, new))
    return list(actors) if actors is not None else None


@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize(("machine", "old"), PAIRS)
def test_python_and_postgresql_allow_the_same_moves_to_everybody(
    case: Case, machine: str, old: str, actor: wall.Acting
) -> None:
    """Every pair of states, tried by every actor: what is listed passes, everything else is refused twice."""
    with wall.within(case.tenant.pk, by=actor):
        row = MAKE[machine](case, old)
        for new in MACHINES[machine]:
            if new != old:
                allowed = may_move(machine, old, new, actor)
                assert database_allows(row, new) == allowed, (old, new, actor)
                assert python_allows(row, machine, new) == allowed, (old, new, actor)
        row.refresh_from_db()
        assert row.state == old


def test_who_may_move_is_said_of_moves_that_exist() -> None:
    for machine, movers in ONLY.items():
        assert all(may_move(machine, old, new) for old, new in movers)
        assert all(actors and set(actors) < set(ACTORS) for actors in movers.values())


@pytest.mark.parametrize(("machine", "moves"), MACHINES.items())
def test_every_move_leads_to_a_state_of_its_machine(machine: str, moves: states.Moves) -> None:
    assert {new for targets in moves.values() for new in targets} <= set(moves)
    assert all(old not in targets for old, targets in moves.items())


def test_an_end_of_a_run_is_an_end() -> None:
    assert [state for state, targets in states.RUN.items() if not targets] == ["completed", "failed", "cancelled"]
    assert set(states.RUN) - set(states.RUN_OPEN) == {"completed", "failed", "cancelled"}


def test_every_open_run_can_be_cancelled() -> None:
    assert all(may_move("run", state, "cancelling") for state in states.RUN_OPEN if state != "cancelling")


def test_whoever_comes_second_is_told_and_changes_nothing(case: Case) -> None:
    with wall.within(case.tenant.pk):
        first, second = (Run.objects.get(pk=case.run_id) for _ in range(2))
        advance(first, machine="run", to="executing", claim="first")
        with pytest.raises(StaleState):
            advance(second, machine="run", to="escalated", claim="second")
        assert Run.objects.get(pk=case.run_id).claim == "first"


def test_a_row_that_was_moved_shows_what_was_written(case: Case) -> None:
    succeed(case, "load_invoice")
    with wall.within(case.tenant.pk):
        action = make_action(case, "unknown")
        states.advance_action(action, "succeeded", external_id="cr_9", looks=3)
        assert (action.state, action.version, action.external_id, action.looks) == ("succeeded", 1, "cr_9", 3)
        stored = Action.objects.get(pk=action.pk)
        assert action.settled_at == stored.settled_at is not None
        assert stored.version == 1


def test_unsettling_a_call_takes_its_time_away(case: Case) -> None:
    with wall.within(case.tenant.pk):
        action = make_action(case, "unknown")
        states.advance_action(action, "succeeded")
        states.advance_action(action, "conflict")
        assert action.settled_at is None


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("runs_run", "turns = max_turns + 1"),
        ("runs_run", "tool_calls = max_tool_calls + 1"),
        ("runs_run", "outcome = 'ok'"),
        ("runs_run", "ended_at = now()"),
        ("runs_run", "goal = 'sideways'"),
        ("runs_run", "in_flight = -1"),
        ("runs_action", "effect = 'maybe'"),
        ("recovery_humantask", "owner_team = ''"),
        ("recovery_humantask", "state = 'claimed', claimed_by_id = NULL"),
    ],
)
def test_F064_postgresql_refuses_what_cannot_be(case: Case, table: str, change: str) -> None:
    with wall.within(case.tenant.pk):
        make_action(case, "permitted")
        make_task(case, "open")
        with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"UPDATE {table} SET {change}")


def test_one_open_task_per_run_and_cause(case: Case) -> None:
    with wall.within(case.tenant.pk):
        first = make_task(case, "open")
        second = make_task(case, "resolved")
        HumanTask.objects.filter(pk=second.pk).update(cause=first.cause)
        third = make_task(case, "claimed")
        with pytest.raises(IntegrityError), transaction.atomic():
            HumanTask.objects.filter(pk=third.pk).update(cause=first.cause)


def test_every_machine_has_its_maker() -> None:
    assert set(MAKE) == set(MACHINES)
