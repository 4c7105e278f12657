"""The totals of the queue are at every moment what a count of the tasks would say, whoever moves them beside whom."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from django.db import connection, connections
from django.db.models import Sum

from recovery import totals
from recovery.models import HumanTask
from recovery.totals import CauseTotal
from recovery.work import decisions, sweep
from runs import wall
from runs.states import TASK_OPEN
from tests import factories
from tests.console.conftest import House, make_house
from tests.console.desk import press
from tests.console.test_queue import order
from tests.factories import Case

TASKS = 6
NOON = datetime(2030, 3, 14, 12, tzinfo=UTC)


@pytest.fixture
def house(fresh_database: str) -> House:
    return make_house()


def wrong(house: House) -> int:
    """How many totals differ from a count; the difference is not kept."""
    with wall.within(house.nordlicht.pk):
        found = totals.recount()
        if found:
            raise AssertionError(f"{found} totals are wrong")
    return found


def counted(house: House) -> tuple[int, int]:
    """Open tasks by their totals, and by counting them."""
    with wall.within(house.nordlicht.pk):
        kept = CauseTotal.objects.aggregate(n=Sum("n"))["n"] or 0
        return int(kept), HumanTask.objects.filter(state__in=TASK_OPEN).count()


def test_a_story_leaves_totals_that_a_count_agrees_with(house: House) -> None:
    omar = house.browser("omar")
    cases = [factories.unknown_credit(house.agent) for _ in range(4)]
    factories.finish(factories.open_run(house.agent))
    assert counted(house) == (5, 5)
    decisions.claim(order(house, "alice", cases[0].task()))
    with wall.within(house.nordlicht.pk):
        HumanTask.objects.filter(pk=cases[1].task().pk).update(snoozed_at=NOON, snoozed_until=NOON)
    assert press(omar, cases[2], "cancel").status_code == 303
    assert wrong(house) == 0
    with wall.within(house.nordlicht.pk):
        held = CauseTotal.objects.filter(asleep=False).aggregate(held=Sum("held"))["held"]
        asleep = CauseTotal.objects.filter(asleep=True).aggregate(n=Sum("n"))["n"]
    assert (held, asleep) == (1, 1)


def test_folding_changes_no_sum_and_leaves_few_rows(house: House) -> None:
    for _ in range(5):
        factories.unknown_credit(house.agent)
    with wall.within(house.nordlicht.pk):
        before = CauseTotal.objects.count()
        assert totals.fold() == before - 1
        assert [(row.n, row.money) for row in CauseTotal.objects.all()] == [(5, 60_000)]
        assert totals.fold() == 0
    assert wrong(house) == 0


def test_the_sweep_folds_once_enough_differences_wait(house: House, dsn_super: str) -> None:
    case = factories.unknown_credit(house.agent)
    with wall.within(house.nordlicht.pk):
        for turn in range(200):
            HumanTask.objects.filter(pk=case.task().pk).update(value_minor=turn)
    assert house.nordlicht.pk in wall.due_tenants()
    sweep.sweep(ring=lambda _: None)
    with wall.within(house.nordlicht.pk):
        assert CauseTotal.objects.count() == 1
    assert wrong(house) == 0


def test_an_amount_too_large_to_add_up_in_64_bits_keeps_nobody_from_opening_a_task(house: House) -> None:
    for _ in range(2):
        case = factories.unknown_credit(house.agent)
        with wall.within(house.nordlicht.pk):
            HumanTask.objects.filter(pk=case.task().pk).update(value_minor=2**63 - 1)
    with wall.within(house.nordlicht.pk):
        assert CauseTotal.objects.aggregate(money=Sum("money"))["money"] == 2 * (2**63 - 1)


def test_what_was_lost_is_found_and_put_right(house: House, dsn_super: str) -> None:
    factories.unknown_credit(house.agent)
    with psycopg.connect(dsn_super, autocommit=True) as session:
        session.execute("DELETE FROM recovery_causetotal")
    assert counted(house) == (0, 1)
    with wall.within(house.nordlicht.pk):
        assert totals.recount() == 1
    assert counted(house) == (1, 1)


def test_two_connections_move_tasks_while_a_third_folds(house: House) -> None:
    tasks = [factories.unknown_credit(house.agent).task().pk for _ in range(TASKS)]
    moves: list[Callable[[random.Random, Any], Any]] = [
        lambda chance, task: task.update(value_minor=chance.randrange(10_000)),
        lambda chance, task: task.update(consequence=chance.randrange(4)),
        lambda chance, task: task.update(breached_at=None),
        lambda chance, task: task.update(reason_code=chance.choice(["retry_exhausted", "external_outcome_unknown"])),
    ]

    def worker(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(60):
            with wall.within(house.nordlicht.pk):
                one = HumanTask.objects.filter(pk=chance.choice(tasks))
                chance.choice(moves)(chance, one)

    def folder() -> None:
        for _ in range(30):
            with wall.within(house.nordlicht.pk):
                totals.fold()

    _together([lambda: worker(1), lambda: worker(2), folder, folder])
    assert counted(house) == (TASKS, TASKS)
    assert wrong(house) == 0


def _together(acts: list[Callable[[], None]]) -> None:
    failures: list[BaseException] = []

    def run(act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as problem:
            failures.append(problem)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []


# --- what a task says its call changed --------------------------------------------------------------------------


def said(case: Case) -> Iterator[tuple[str, str]]:
    """For each task of a run: what it says, and what the facts say now."""
    with wall.within(case.tenant.pk), connection.cursor() as cursor:
        cursor.execute(
            """SELECT t.answer, app_changed_for(t), t.looks_up, app_looks_up(t) FROM recovery_humantask t
               WHERE run_id = %s""",
            [case.run_id],
        )
        for answer, now, looks_up, could in cursor.fetchall():
            assert looks_up == could
            yield answer, now


def test_a_task_follows_what_is_learned_of_its_call(house: House) -> None:
    case = factories.unknown_credit(house.agent)
    assert list(said(case)) == [("unknown", "unknown")]
    with wall.within(case.tenant.pk, by="worker"):
        action = case.action()
        type(action).objects.filter(pk=action.pk).update(verdict="absent_final")
    assert list(said(case)) == [("no", "no")]
    with wall.within(case.tenant.pk, by="worker"):
        type(action).objects.filter(pk=action.pk).update(verdict="partial")
    assert list(said(case)) == [("partly", "partly")]


def test_a_task_about_a_run_follows_its_later_calls(house: House) -> None:
    case = factories.open_run(house.agent)
    factories.succeed(case)
    factories.finish(case)
    assert list(said(case)) == [("yes", "yes")]
