"""Several questions in one round trip are answered as each would be alone."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DataError, transaction
from django.db.models import Model

from runs import record, wall
from runs.models import Action, AgentClient, Run
from runs.together import Question, Statement, read_together
from tests.factories import Agent, Case, make_client, make_tenant, open_run, register, succeed
from tests.runs.wire import listening


@pytest.fixture
def case(fresh_database: str) -> Case:
    agent: Agent = make_client(make_tenant("north"))
    register(agent)
    case = open_run(agent)
    succeed(case)
    return case


def fields(row: Model) -> list[Any]:
    return [(one.attname, getattr(row, one.attname)) for one in row._meta.concrete_fields]


def asked(case: Case, *questions: Question) -> list[list[Any]]:
    with transaction.atomic():
        return read_together(wall.opening(case.tenant.pk), *questions)[1:]


def test_every_field_comes_back_as_the_orm_reads_it(case: Case) -> None:
    actions = Action.objects.filter(run_id=case.run_id).order_by("id")
    found = asked(case, record.family(case.run_id), actions, AgentClient.objects.all())
    with wall.within(case.tenant.pk):
        alone = [[Run.objects.get(pk=case.run_id)], list(actions.all()), list(AgentClient.objects.all())]
    for together, one_by_one in zip(found, alone, strict=True):
        assert [fields(row) for row in together] == [fields(row) for row in one_by_one]


def test_they_are_one_round_trip_after_the_begin(case: Case) -> None:
    asked(case, Statement("SELECT 1"))
    with listening() as talk:
        asked(case, Statement("SELECT %s::int, 2", [1]), Action.objects.all(), Run.objects.none())
    assert talk.round_trips == 3  # BEGIN, the questions, COMMIT


def test_a_question_that_nothing_can_answer_is_answered_with_nothing(case: Case) -> None:
    found = asked(case, Run.objects.filter(pk__in=[]), Statement("SELECT %s::int, 2", [1]), Run.objects.none())
    assert found == [[], [(1, 2)], []]


def test_a_later_question_sees_what_an_earlier_one_has_done(case: Case) -> None:
    found = asked(case, Statement("SELECT set_config('app.tenants', '', true)"), Run.objects.all())
    assert found[1] == []


def test_a_question_that_fails_fails_them_all_and_leaves_the_connection_usable(case: Case) -> None:
    with pytest.raises(DataError):
        asked(case, Run.objects.all(), Statement("SELECT 1 / 0"))
    assert asked(case, Statement("SELECT 7")) == [[(7,)]]


def test_a_stranger_locks_nothing(case: Case) -> None:
    family = record.family(case.run_id, client=case.agent.client.pk, secret_hash=b"wrong")
    assert asked(case, family) == [[]]
    with wall.within(case.tenant.pk):
        mine = bytes(AgentClient.objects.get(pk=case.agent.client.pk).secret_hash)
    family = record.family(case.run_id, client=case.agent.client.pk, secret_hash=mine)
    assert [run.pk for run in asked(case, family)[0]] == [case.run_id]
