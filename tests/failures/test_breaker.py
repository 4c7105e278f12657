"""What an attacker found once: each way to two effects, a false word, or a run that is never looked at again."""

import uuid
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.utils import ProgrammingError
from steadyhand.contract import OUTCOME_OF, OpenRun

from recovery import intake
from recovery.models import HumanTask
from recovery.rules import messages
from recovery.work import decisions
from recovery.work.decisions import Order, Overtaken
from runs import wall
from runs.models import Person
from tests.factories import advance_clock, make_person, propose, reply, report, timed_out, turn
from tests.failures.conftest import Opener
from tests.recovery.stories import ABSENT, Looks, look, present, standing

pytestmark = [pytest.mark.failures, pytest.mark.django_db]

BUSY = reply({"error": "busy"}, status=429)


def test_F094_the_same_write_under_another_step_is_sent_under_the_first_ones_id(opened: Opener, looks: Looks) -> None:
    case = opened(in_flight_seconds=20, lag_seconds=5)
    first = propose(case, step="s1")
    report(case, first, BUSY, tool="apply_credit")
    advance_clock(minutes=10)
    again = propose(case, step="s2")
    assert (again.answer, again.attempt) == ("execute", 2)
    assert (again.action_id, again.step) == (first.action_id, first.step)


def test_F042_an_agent_that_polls_does_not_put_off_the_look(opened: Opener, looks: Looks) -> None:
    case = opened(in_flight_seconds=20, lag_seconds=5)
    turn(case)
    report(case, propose(case), timed_out())
    planned = case.action().due_at
    looks.say(ABSENT)
    advance_clock(seconds=600)
    for _ in range(3):
        assert propose(case).answer == "wait"
    assert case.action().due_at == planned, "a waiting proposal moves no due time"
    looks.say(present("cr_7"))
    look(case)
    assert standing(case)[0] == "executing"


@pytest.mark.parametrize("reason", sorted(OUTCOME_OF))
def test_I14_the_model_is_never_told_without_proof_that_nothing_was_done(reason: str) -> None:
    said = messages.error_for_model(reason).message.lower()
    assert "not carried out" not in said
    assert "nothing happened" not in said


def test_F116_a_key_answers_for_its_own_form_only(opened: Opener, alice: Person) -> None:
    case = opened(in_flight_seconds=20, lag_seconds=5)
    turn(case)
    report(case, propose(case), timed_out())
    with wall.within(case.tenant.pk):
        task = HumanTask.objects.get(run_id=case.run_id)
    order = Order(task.pk, alice, "mine", "any", task.version, uuid.uuid4().hex)
    taken = decisions.claim(order)
    assert decisions.claim(order).pk == taken.pk, "a second click of the same button"
    with pytest.raises(Overtaken):
        decisions.cancel(order)
    bob = make_person("bob", case.tenant, "viewer")
    with pytest.raises(Overtaken):
        decisions.claim(replace(order, by=bob))
    assert standing(case)[0] == "verifying"


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM runs_attempt",
        "DELETE FROM runs_effect",
        "DELETE FROM runs_run",
        "DELETE FROM recovery_decision",
        "DELETE FROM recovery_humantask",
        "UPDATE runs_tenant SET sealed_key = 'x'",
        "UPDATE runs_effect SET external_id = 'x'",
        "UPDATE runs_agentclient SET tenant_id = id",
        "TRUNCATE runs_attempt CASCADE",
    ],
)
def test_SEC_24_the_application_may_not_take_facts_back(opened: Opener, statement: str) -> None:
    case: Any = opened()
    with (
        pytest.raises(ProgrammingError, match="permission denied"),
        wall.within(case.tenant.pk),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


def test_a_reference_stands_for_one_piece_of_work(opened: Opener) -> None:
    case: Any = opened()
    with wall.within(case.tenant.pk):
        run = case.run
        workflow = run.workflow.name
    again = OpenRun(workflow=workflow, client_ref=run.client_ref, intent=run.intent)
    assert intake.open_run(case.agent.who, again, request_id="t").run_id == str(case.run_id)
    with pytest.raises(intake.Conflict, match="reference of its own"):
        intake.open_run(case.agent.who, again.model_copy(update={"intent": "something else"}), request_id="t")
