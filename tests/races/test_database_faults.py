"""The database restarts, loses an answer, or refuses a half: nothing is reserved twice (F061 to F064)."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import DatabaseError, IntegrityError, OperationalError, connection, connections, transaction

from recovery import crashpoints
from runs import wall
from runs.models import Action, Run
from tests.factories import RESULTS, Agent, Case, billing_manifest, open_run, propose, register, reply, report
from tests.postgres import Cluster
from tests.races.lossy import LossyWay
from tests.races.together import at_once
from tests.recovery.stories import effects, standing, tries


@pytest.fixture
def case(agent: Agent) -> Case:
    register(agent, billing_manifest())
    return open_run(agent)


def cut_my_connection(dsn_super: str) -> Callable[[str], None]:
    """At the named point the server ends this session, as a restart does."""
    pid = connection.connection.info.backend_pid

    def cut(name: str) -> None:
        if name == "C04":
            with psycopg.connect(dsn_super, autocommit=True) as session:
                session.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    return cut


def test_F061_a_server_that_restarts_in_the_transaction_leaves_nothing_reserved(
    case: Case, dsn_super: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    report(case, propose(case), reply({"error": "busy"}, status=429, headers={"retry-after": "0"}))
    connection.ensure_connection()
    with monkeypatch.context() as during:
        during.setattr(crashpoints, "point", cut_my_connection(dsn_super))
        with pytest.raises(OperationalError):
            propose(case)
    assert len(tries(case)) == 1
    assert propose(case).answer == "execute"
    assert len(tries(case)) == 2
    assert case.run.in_flight == 1


@pytest.fixture
def lossy(fresh_database: str, cluster: Cluster) -> Iterator[LossyWay]:
    """Django's own connection goes the lossy way; the rest of the test does not."""
    default = settings.DATABASES["default"]
    with tempfile.TemporaryDirectory(prefix="sh-") as folder:
        way = LossyWay(Path(folder), cluster.places.sockets)
        connections.close_all()
        default["HOST"] = folder
        yield way
        connections.close_all()
        default["HOST"] = str(cluster.places.sockets)
        way.close()


def test_F062_a_permit_whose_commit_was_not_heard_of_is_one_attempt(lossy: LossyWay, case: Case) -> None:
    report(case, propose(case, "load_invoice"), reply(RESULTS["load_invoice"]))
    lossy.lose_the_next_answer()
    with pytest.raises((OperationalError, psycopg.OperationalError)):
        propose(case)
    connection.close()
    assert lossy.lost == 1
    again = propose(case)
    assert again.answer == "wait"
    assert len(tries(case)) == 1
    assert case.run.tool_calls == 2


def test_F062_a_report_whose_commit_was_not_heard_of_is_one_effect(lossy: LossyWay, case: Case) -> None:
    permit = propose(case)
    lossy.lose_the_next_answer()
    with pytest.raises((OperationalError, psycopg.OperationalError)):
        report(case, permit, reply(RESULTS["apply_credit"]))
    connection.close()
    again = report(case, permit, reply(RESULTS["apply_credit"]))
    assert (again.answer, again.reason_code) == ("result", "completed")
    assert effects(case) == ["apply_credit"]


def test_F063_a_deadlock_undoes_one_of_two_and_nothing_was_sent(case: Case, agent: Agent) -> None:
    """Only a bug could lock two runs in two orders; if one did, a whole transaction goes and may be asked again."""
    other = open_run(agent)

    def lock_both(first: Case, second: Case) -> Callable[[], str]:
        def job() -> str:
            with wall.within(case.tenant.pk):
                Run.objects.select_for_update().get(pk=first.run_id)
                Run.objects.filter(pk=first.run_id).update(operator_detail="half of a change")
                barrier.wait(timeout=10)
                Run.objects.select_for_update().get(pk=second.run_id)
                return "both"

        return job

    barrier = threading.Barrier(2)
    results = at_once(lock_both(case, other), lock_both(other, case))
    assert sorted(type(result).__name__ for result in results) == ["OperationalError", "str"]
    assert sorted([case.run.operator_detail, other.run.operator_detail]) == ["", "half of a change"]
    assert propose(case).answer == "execute"
    assert propose(other).answer == "execute"
    assert (len(tries(case)), len(tries(other))) == (1, 1)


HALVES: dict[str, tuple[type[Any], dict[str, Any], dict[str, Any]]] = {
    "an ended run without its time": (Run, {}, {"state": "failed"}),
    "ok on a run that goes on": (Run, {}, {"outcome": "ok"}),
    "more calls than the ceiling": (Run, {}, {"tool_calls": 21}),
    "a counter that falls": (Run, {}, {"tool_calls": 0}),
    "an end for a run that is open": (Run, {}, {"ended_at": "2026-01-01T00:00:00Z"}),
    "a move that the machine lacks": (Action, {"tool": "apply_credit"}, {"state": "rejected"}),
    "a kind of effect that nobody knows": (Action, {"tool": "apply_credit"}, {"effect": "maybe"}),
}


@pytest.mark.parametrize("half", [*HALVES])
def test_F064_the_database_refuses_half_a_change(case: Case, half: str) -> None:
    report(case, propose(case), reply(RESULTS["apply_credit"]))
    model, lookup, change = HALVES[half]
    before = standing(case)
    with wall.within(case.tenant.pk):
        rows = model.objects.filter(**(lookup or {"pk": case.run_id}))
        with pytest.raises((IntegrityError, DatabaseError)), transaction.atomic():
            rows.update(**change)
    assert standing(case) == before
