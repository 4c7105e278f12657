"""Many runs in one pass leave what each would have left alone, with as many statements as a few (F070, I2, I16)."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from steadyhand.contract import Cancel

from recovery import intake, leases, papers
from recovery.models import Decision
from recovery.work import decisions, nudges, sweep, together
from runs import gathering, wall
from runs.models import Person, Run
from tests.factories import (
    Agent,
    Case,
    advance_clock,
    lose_the_reply,
    open_run,
    propose,
    rate_limit,
    register,
    succeed,
)
from tests.failures import rows
from tests.failures.conftest import manifest
from tests.recovery.stories import open_tasks, order, standing, tasks

Play = Callable[[Case], object]


def quiet(_: uuid.UUID) -> None:
    return None


def careful(
    tenant_id: uuid.UUID, run_ids: Any, handle: Any, *, by: wall.Acting, calls: Sequence[uuid.UUID] = ()
) -> list[Any]:
    """Each run alone, each statement at once: what the fast way is held against."""
    return [one for run_id in run_ids for one in together.alone(tenant_id, run_id, handle, by)]


@pytest.fixture(autouse=True)
def steady(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No jitter, and a clock that stands still: two runs that are treated alike have equal times."""
    monkeypatch.setattr(random, "uniform", lambda low, high: low)
    stand_still("2030-01-01T10:00:00Z")


def stand_still(at: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('app.now', %s, false)", [at])


def two_in_flight(case: Case) -> None:
    propose(case, "load_invoice")
    propose(case, "apply_credit")


def cancel_in_flight(case: Case) -> None:
    propose(case)
    intake.cancel(case.agent.who, case.run_id, Cancel(reason="No longer wanted."), request_id="t")


def believed(case: Case) -> None:
    succeed(case)


def claimed_elsewhere(case: Case) -> None:
    lose_the_reply(case, "draft_reply")
    with wall.within(case.tenant.pk, by="person"):
        person = Person.objects.get(name="Alice")
    decisions.claim(order(case, person))
    propose(case, "load_invoice")


STORIES: dict[str, tuple[Play, dict[str, Any], str]] = {
    "a write": (propose, {}, "2030-01-01T10:05:00Z"),
    "a write that nobody can look up": (propose, {"reconcile": False}, "2030-01-01T10:05:00Z"),
    "a write that cannot be undone": (propose, {"irreversible": True}, "2030-01-01T10:05:00Z"),
    "a write under a live key": (
        propose,
        {
            "idempotency": {"kind": "key", "header": "Idempotency-Key", "retention_seconds": 86400},
            "reconcile": False,
        },
        "2030-01-01T10:05:00Z",
    ),
    "a read": (lambda case: propose(case, "load_invoice"), {}, "2030-01-01T10:05:00Z"),
    "a read that has used its tries": (
        lambda case: propose(case, "load_invoice"),
        {"budgets": {"max_attempts_per_step": 1}},
        "2030-01-01T10:05:00Z",
    ),
    "a read and a write": (two_in_flight, {}, "2030-01-01T10:05:00Z"),
    "a write of a cancelled run": (cancel_in_flight, {}, "2030-01-01T10:05:00Z"),
    "a read past its run's deadline": (
        lambda case: propose(case, "load_invoice"),
        {"deadline_seconds": 60},
        "2030-01-01T10:05:00Z",
    ),
    "a claim that decays beside a lost read": (claimed_elsewhere, {}, "2030-01-01T11:00:00Z"),
    "a look that is due": (lose_the_reply, {}, "2030-01-01T10:05:00Z"),
    "a retry that is due": (rate_limit, {}, "2030-01-01T10:05:00Z"),
    "a count that is due": (believed, {}, "2030-01-01T11:00:00Z"),
    "a run whose time is over": (lambda case: succeed(case, "load_invoice"), {}, "2030-01-03T10:00:00Z"),
    "an approval that nobody gave": (
        propose,
        {"requires_approval": True, "approval_seconds": 60},
        "2030-01-01T10:05:00Z",
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_F070_what_is_swept_together_is_what_each_would_be_alone(
    agent: Agent, alice: Person, monkeypatch: pytest.MonkeyPatch, story: str
) -> None:
    play, promises, at = STORIES[story]
    whole = manifest(**{name: value for name, value in promises.items() if name != "approval_seconds"})
    if "approval_seconds" in promises:
        whole["approval_seconds"] = promises["approval_seconds"]
    register(agent, whole)
    alone = open_run(agent)
    play(alone)
    stand_still(at)
    with monkeypatch.context() as slow:
        slow.setattr(together, "in_batches", careful)
        sweep.sweep(ring=quiet)
    stand_still("2030-01-01T10:00:00Z")
    others = [open_run(agent) for _ in range(3)]
    for case in others:
        play(case)
    stand_still(at)
    before = rows.of(others[0])
    sweep.sweep(ring=quiet)
    wanted = rows.of(alone)
    assert wanted != before, "the sweep had something to do"
    for case in others:
        assert rows.of(case) == wanted


@pytest.fixture
def moving() -> None:
    stand_still("")


def lost_leases(agent: Agent, many: int, first_look_seconds: float = 3600) -> list[Case]:
    register(agent, manifest(first_look_seconds=first_look_seconds))
    cases = [open_run(agent) for _ in range(many)]
    for case in cases:
        propose(case)
    advance_clock(seconds=60)
    return cases


def statements_of(agent: Agent, many: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Django's own, and those that go past it."""
    lost_leases(agent, many)
    sent: list[int] = []
    real = gathering.bulk.send
    monkeypatch.setattr(gathering.bulk, "send", lambda bulks: (sent.append(len(bulks)), real(bulks))[1])
    with CaptureQueriesContext(
        connection,
    ) as asked:
        assert sweep.sweep(ring=quiet)["leases"] == many
    monkeypatch.undo()
    return len(asked) + sum(sent)


def test_a_sweep_costs_statements_by_the_batch_and_not_by_the_row(
    agent: Agent, moving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "BATCH", 100)
    few = statements_of(agent, 20, monkeypatch)
    many = statements_of(agent, 200, monkeypatch)
    assert many <= 2 * few, "ten times the rows in twice the batches"


def test_the_tasks_of_one_pass_are_numbered_without_a_gap(agent: Agent, moving: None) -> None:
    cases = lost_leases(agent, 7)
    sweep.sweep(ring=quiet)
    numbers = sorted(tasks(case)[0].number for case in cases)
    assert numbers == list(range(numbers[0], numbers[0] + 7))
    with wall.within(agent.tenant.pk):
        assert Run.objects.filter(state="verifying").count() == 7


def test_one_run_that_cannot_be_handled_keeps_none_of_its_batch(
    agent: Agent, moving: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cases = lost_leases(agent, 9)
    bad, real = cases[4].run_id, leases.expire_of_run

    def expire(run: Run) -> int:
        if run.pk == bad:
            raise ValueError("this one cannot be read")
        return real(run)

    monkeypatch.setattr(leases, "expire_of_run", expire)
    assert sweep.sweep(ring=quiet)["leases"] == 8
    assert [standing(case)[0] for case in cases if case.run_id != bad] == ["verifying"] * 8
    assert standing(cases[4])[0] == "waiting_for_tool"
    told = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert told[0] == "a batch of 9 runs failed and is halved: ValueError"
    assert "this one cannot be read" not in " ".join(told)


def test_a_write_past_the_gathering_ends_the_batch_and_loses_nothing(
    agent: Agent, moving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = lost_leases(agent, 5)
    real = leases.expire_of_run

    def expire(run: Run) -> int:
        done = real(run)
        Run.objects.filter(pk=run.pk).update(requester="somebody")
        return done

    monkeypatch.setattr(leases, "expire_of_run", expire)
    assert sweep.sweep(ring=quiet)["leases"] == 5
    assert [case.run.requester for case in cases] == ["somebody"] * 5
    assert [open_tasks(case) for case in cases] == [[("reconcile_write", "external_outcome_unknown")]] * 5


def expire_as_of_another_version(case: Case) -> None:
    with wall.within(case.tenant.pk, by="timer"), gathering.gathered() as writes:
        (run,) = papers.lock(writes, [case.run_id])
        run.version += 1
        leases.expire_of_run(run)


def test_a_row_that_was_changed_past_its_lock_is_not_written_over(agent: Agent, moving: None) -> None:
    (case,) = lost_leases(agent, 1)
    with pytest.raises(gathering.Overtaken):
        expire_as_of_another_version(case)
    assert standing(case)[0] == "waiting_for_tool"


class Bell:
    """A ring that can name many in one message."""

    def __init__(self) -> None:
        self.messages: list[list[uuid.UUID]] = []

    def __call__(self, decision_id: uuid.UUID) -> None:
        self.messages.append([decision_id])

    def many(self, decision_ids: Any) -> None:
        self.messages.append(list(decision_ids))


def test_F003_what_is_found_in_one_pass_is_told_in_few_messages(
    agent: Agent, moving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nudges, "A_MESSAGE", 4)
    register(agent, manifest())
    cases = [open_run(agent) for _ in range(9)]
    for case in cases:
        lose_the_reply(case)
    advance_clock(seconds=30)
    sweep.sweep(ring=quiet)
    advance_clock(seconds=6)
    bell = Bell()
    assert sweep.sweep(ring=bell)["nudges"] == 9
    assert [len(message) for message in bell.messages] == [4, 4, 1]
    with wall.within(agent.tenant.pk):
        told = {one for message in bell.messages for one in message}
        assert told == set(Decision.objects.values_list("pk", flat=True))


def test_F055_a_broker_that_is_down_is_asked_once_a_pass_and_forgets_nothing(agent: Agent, moving: None) -> None:
    register(agent, manifest())
    for _ in range(3):
        lose_the_reply(open_run(agent))
    advance_clock(seconds=30)
    sweep.sweep(ring=quiet)
    advance_clock(seconds=6)
    down = Bell()
    down.many = lambda ids: (_ for _ in ()).throw(ConnectionError())  # type: ignore[method-assign]
    assert sweep.sweep(ring=down)["nudges"] == 3
    advance_clock(seconds=6)
    bell = Bell()
    sweep.sweep(ring=bell)
    assert [len(message) for message in bell.messages] == [3]
