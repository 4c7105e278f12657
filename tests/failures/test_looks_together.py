"""Many looks of one message leave what each would have left alone (F052, F058, F070, F108)."""

from __future__ import annotations

import random
import threading
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from recovery.connectors.base import Finding, Question
from recovery.models import Decision
from recovery.work import looks, sweep, worker
from runs import gathering, wall
from tests.factories import Agent, Case, advance_clock, lose_the_reply, open_run, register, succeed
from tests.failures import rows
from tests.failures.conftest import manifest
from tests.failures.test_sweep_together import lost_leases, quiet, stand_still
from tests.recovery.stories import ABSENT, SILENT, TWICE, effects, evidence, open_tasks, present, standing, waiting

PART = Finding("partial", "cr_1 is ours and lacks amount_minor.", 1, "cr_1", {"credit_id": "cr_1"})
BUSY = Finding("processing", "cr_1 is still being processed.", 1, "cr_1", {"credit_id": "cr_1"})
FINDINGS = {
    "present": present(), "absent": ABSENT, "twice": TWICE, "silent": SILENT, "partial": PART, "busy": BUSY,
}  # fmt: skip


@pytest.fixture
def still(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "uniform", lambda low, high: low)
    stand_still("2030-01-01T10:00:00Z")


def say(monkeypatch: pytest.MonkeyPatch, finding: Finding) -> list[str]:
    """What every look-up answers; gives the list of the calls that were asked about."""
    asked: list[str] = []

    def ask(question: Question) -> Finding:
        asked.append(question.action_id)
        return finding

    monkeypatch.setattr(worker, "ask", ask)
    return asked


def ordered(agent: Agent, many: int, play: Any = lose_the_reply, **promises: Any) -> list[Case]:
    """Calls whose looks the sweep has ordered."""
    register(agent, manifest(**promises))
    cases = [open_run(agent) for _ in range(many)]
    for case in cases:
        play(case)
    return cases


@pytest.mark.parametrize("minutes", [1, 12], ids=["early", "final"])
@pytest.mark.parametrize("said", FINDINGS)
def test_F070_looks_together_leave_what_each_would_leave_alone(
    still: None, agent: Agent, monkeypatch: pytest.MonkeyPatch, said: str, minutes: int
) -> None:
    say(monkeypatch, FINDINGS[said])
    left: list[list[Any]] = []
    for way in (lambda ids: [worker.execute(one) for one in ids], looks.execute_many):
        stand_still("2030-01-01T10:00:00Z")
        cases = ordered(agent, 3)
        stand_still(f"2030-01-01T10:{minutes:02}:00Z")
        sweep.sweep(ring=quiet)
        way(waiting(agent.tenant.pk))
        left.append([rows.of(case) for case in cases])
        assert all(evidence(case) for case in cases)
    assert left[1] == left[0]


def test_a_later_count_is_made_together_too(still: None, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[list[Any]] = []
    say(monkeypatch, present())
    for way in (lambda ids: [worker.execute(one) for one in ids], looks.execute_many):
        stand_still("2030-01-01T10:00:00Z")
        cases = ordered(agent, 3, succeed)
        stand_still("2030-01-01T10:30:00Z")
        sweep.sweep(ring=quiet)
        way(waiting(agent.tenant.pk))
        left.append([rows.of(case) for case in cases])
        assert [evidence(case) for case in cases] == [["present_final"]] * 3
    assert left[1] == left[0]


def statements_of(agent: Agent, many: int, monkeypatch: pytest.MonkeyPatch) -> int:
    lost_leases(agent, many, first_look_seconds=300)
    sweep.sweep(ring=quiet)
    advance_clock(minutes=6)
    sweep.sweep(ring=quiet)
    ids = waiting(agent.tenant.pk)
    sent: list[int] = []
    real = gathering.bulk.send
    with monkeypatch.context() as counted:
        counted.setattr(gathering.bulk, "send", lambda bulks: (sent.append(len(bulks)), real(bulks))[1])
        with CaptureQueriesContext(connection) as asked:
            looks.execute_many(ids)
    assert waiting(agent.tenant.pk) == []
    return len(asked) + sum(sent)


def test_looks_cost_statements_by_the_batch_and_not_by_the_row(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, present())
    few, many = (statements_of(agent, number, monkeypatch) for number in (10, 100))
    assert many <= 1.5 * few, "ten times the rows in one batch each"


def test_F052_a_message_that_comes_twice_asks_once(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = say(monkeypatch, present())
    cases = ordered(agent, 4)
    advance_clock(minutes=1)
    sweep.sweep(ring=quiet)
    ids = waiting(agent.tenant.pk)
    for _ in range(2):
        looks.execute_many([*ids, *ids, uuid.uuid4()])
    assert len(asked) == len(set(asked)) == 4
    assert [effects(case) for case in cases] == [["apply_credit"]] * 4


def test_F058_a_look_whose_lease_was_lost_meanwhile_leaves_evidence_only(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(monkeypatch, ABSENT)
    cases = ordered(agent, 2)
    advance_clock(minutes=1)
    sweep.sweep(ring=quiet)
    with wall.within(agent.tenant.pk):
        decided = list(Decision.objects.order_by("id"))
    tickets = looks.take(agent.tenant.pk, decided)
    advance_clock(minutes=5)
    say(monkeypatch, present())
    worker.execute(decided[0].pk)
    looks.conclude(agent.tenant.pk, [(ticket, ABSENT) for ticket in tickets])
    assert [standing(case)[0] for case in cases] == ["executing", "verifying"]
    assert [evidence(case) for case in cases] == [["present", "absent"], ["absent"]]


def test_one_look_that_cannot_be_recorded_keeps_none_of_the_others(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(monkeypatch, present())
    cases = ordered(agent, 5)
    advance_clock(minutes=1)
    sweep.sweep(ring=quiet)
    bad, real = cases[2].run_id, worker.record_finding

    def record(decision: Any, run: Any, *about: Any) -> None:
        if run.pk == bad:
            raise ValueError("this one cannot be recorded")
        real(decision, run, *about)

    monkeypatch.setattr(worker, "record_finding", record)
    looks.execute_many(waiting(agent.tenant.pk))
    assert [standing(case)[0] for case in cases if case.run_id != bad] == ["executing"] * 4
    assert open_tasks(cases[2]) == [("reconcile_write", "external_outcome_unknown")]


def test_F108_no_more_looks_are_under_way_at_once_than_a_provider_can_bear(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "AT_ONCE", 3)
    under_way, most, lock, met = [0], [0], threading.Lock(), threading.Barrier(3)

    def ask(_: Question) -> Finding:
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        met.wait(timeout=10)
        with lock:
            under_way[0] -= 1
        return present()

    monkeypatch.setattr(worker, "ask", ask)
    ordered(agent, 9)
    advance_clock(minutes=1)
    sweep.sweep(ring=quiet)
    looks.execute_many(waiting(agent.tenant.pk))
    assert most == [3]
