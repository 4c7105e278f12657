"""What was believed on a reply is counted once more when a count is final; what it finds may overturn (F029)."""

from typing import Any

import pytest
from django.db.models import Q
from steadyhand.contract import Cancel

from recovery import intake
from recovery.connectors.base import Finding
from recovery.models import Decision, HumanTask
from recovery.work import worker
from recovery.work.decisions import Refused
from recovery.work.sweep import sweep
from runs import wall
from runs.models import Event, Person
from tests.factories import Case, advance_clock, finish, propose, report, succeed, turn
from tests.failures.conftest import Opener
from tests.recovery.stories import (
    ABSENT,
    SILENT,
    TWICE,
    Looks,
    look,
    open_tasks,
    panel,
    present,
    press,
    standing,
    tasks,
    work,
)

pytestmark = [pytest.mark.failures, pytest.mark.django_db]


@pytest.fixture
def done(opened: Opener) -> Case:
    """A credit whose reply came and a run that ended ok; bounds 20 + 5 seconds."""
    case = opened(in_flight_seconds=20, lag_seconds=5)
    turn(case)
    succeed(case, "apply_credit")
    turn(case)
    succeed(case, "draft_reply")
    finish(case)
    return case


def kinds(case: Case) -> list[str]:
    with wall.within(case.tenant.pk):
        found = Event.objects.filter(Q(kind__startswith="recount"), run_id=case.run_id, action__tool="apply_credit")
        return list(found.order_by(*Event.IN_ORDER).values_list("kind", flat=True))


def test_F029_a_redelivered_credit_is_found_by_the_later_count(done: Case, looks: Looks) -> None:
    assert standing(done) == ("completed", "ok", "completed")
    looks.say(TWICE)
    advance_clock(seconds=26)
    look(done)
    assert open_tasks(done) == [("duplicate_effect", "duplicate_effect")]
    assert standing(done) == ("completed", "ok", "completed"), "an outcome is never taken back; a person is asked"


def test_F028_an_effect_that_is_gone_at_the_later_count_is_for_a_person(done: Case, looks: Looks) -> None:
    looks.say(ABSENT)
    advance_clock(seconds=26)
    look(done)
    assert open_tasks(done) == [("decide_next", "conflicting_evidence")]


def test_a_later_count_that_finds_one_closes_the_question(done: Case, looks: Looks) -> None:
    looks.say(present("cr_7"))
    advance_clock(seconds=26)
    look(done)
    assert kinds(done) == ["recount_started", "recounted"]
    assert open_tasks(done) == []
    assert done.action().due_at is None
    assert done.action().state == "succeeded"


def unanswered(case: Case, looks: Looks) -> None:
    """Every later count of the credit is asked in vain, until nothing more is planned."""
    looks.say(SILENT)
    for _ in range(12):
        advance_clock(minutes=6)
        look(case)
    assert case.action().due_at is None


def about_credit(case: Case) -> list[HumanTask]:
    return [task for task in tasks(case) if task.tool == "apply_credit" and task.state != "resolved"]


def check_again(case: Case, looks: Looks, omar: Person, finding: Finding) -> None:
    """A person asks for one more look-up, and the worker makes it."""
    (asked,) = about_credit(case)
    press("reconcile", case, omar, task=asked)
    looks.say(finding)
    work(case.tenant.pk)


def test_F042_a_later_count_that_nobody_answers_is_a_persons_and_the_end_stays(
    done: Case, looks: Looks, omar: Person
) -> None:
    unanswered(done, looks)
    (asked,) = about_credit(done)
    assert (asked.kind, asked.reason_code, asked.state) == ("reconcile_write", "postcondition_unproven", "open")
    assert (asked.owner_team, asked.paged_at) == ("billing-support", None)
    assert [verb.name for verb in panel(done, omar, asked).verbs if verb.recommended] == ["reconcile"]
    assert kinds(done)[-2:] == ["recounted", "recount_given_up"]
    with wall.within(done.tenant.pk):
        said = Event.objects.get(run_id=done.run_id, kind="recount_given_up", action__tool="apply_credit").reason
    assert said.startswith("apply_credit counts as done, and 7 look-ups could not confirm it. Nothing is sent;")
    assert (done.action().state, standing(done)) == ("succeeded", ("completed", "ok", "completed"))


def test_F042_one_more_check_that_finds_the_effect_closes_the_question(
    done: Case, looks: Looks, omar: Person
) -> None:
    unanswered(done, looks)
    check_again(done, looks, omar, present("cr_7"))
    assert about_credit(done) == []
    assert done.action().state == "succeeded"
    with pytest.raises(Refused, match="the task is resolved"):
        press("reconcile", done, omar, task=tasks(done, tool="apply_credit")[0])


def test_F029_F042_one_more_check_that_finds_two_asks_about_that(done: Case, looks: Looks, omar: Person) -> None:
    unanswered(done, looks)
    check_again(done, looks, omar, TWICE)
    assert [task.reason_code for task in about_credit(done)] == ["duplicate_effect"]


def test_F042_one_more_check_in_vain_leaves_the_question_and_plans_nothing(
    done: Case, looks: Looks, omar: Person
) -> None:
    unanswered(done, looks)
    check_again(done, looks, omar, SILENT)
    assert [task.reason_code for task in about_credit(done)] == ["postcondition_unproven"]
    assert done.action().due_at is None


def test_F042_checks_in_vain_come_to_an_end_too(done: Case, looks: Looks, omar: Person) -> None:
    unanswered(done, looks)
    for _ in range(6):
        check_again(done, looks, omar, SILENT)
    with pytest.raises(Refused, match="all look-ups that the contract allows have been used"):
        check_again(done, looks, omar, SILENT)
    press("waive", done, omar, task=about_credit(done)[0], reason="Their statement of account shows it once.")
    assert about_credit(done) == []


def test_F042_a_run_that_is_still_open_may_end_beside_the_question(opened: Opener, looks: Looks) -> None:
    case = opened(in_flight_seconds=20, lag_seconds=5, budgets={"max_elapsed_seconds": 4 * 3600})
    succeed(case, "apply_credit")
    unanswered(case, looks)
    assert len(about_credit(case)) == 1
    succeed(case, "draft_reply")
    finish(case)
    assert standing(case) == ("completed", "ok", "completed")
    assert len(about_credit(case)) == 1


def test_F042_a_question_that_stands_is_not_lost_over_a_count_in_vain(
    opened: Opener, looks: Looks, omar: Person
) -> None:
    case = opened(in_flight_seconds=20, lag_seconds=5)
    permit = propose(case)
    intake.cancel(case.agent.who, case.run_id, Cancel(reason="Enough."), request_id="t")
    report(case, permit, _valid())
    unanswered(case, looks)
    assert open_tasks(case) == [("effect_after_cancel", "cancelled_with_effects")]
    assert kinds(case)[-1] == "recount_given_up"


def test_F041_nothing_found_where_no_bound_is_declared_is_no_answer(opened: Opener, looks: Looks) -> None:
    case = opened(in_flight_seconds=None, lag_seconds=None)
    succeed(case, "apply_credit")
    looks.say(ABSENT)
    for _ in range(12):
        advance_clock(minutes=11)
        look(case)
    assert [task.reason_code for task in about_credit(case)] == ["postcondition_unproven"]
    assert case.action().looks == 7


def test_F045_a_later_count_that_finds_a_part_is_a_persons(done: Case, looks: Looks) -> None:
    looks.say(Finding("partial", "One record is ours, with half of the amount.", 1, "cr_1"))
    advance_clock(seconds=26)
    look(done)
    assert open_tasks(done) == [("reconcile_write", "partial_effect")]
    assert standing(done) == ("completed", "ok", "completed")


def test_no_count_is_planned_where_nobody_can_be_asked(opened: Opener) -> None:
    case: Any = opened(reconcile=None)
    turn(case)
    report(case, propose(case), _valid())
    assert case.action().due_at is None


def _valid() -> Any:
    from tests.factories import RESULTS, reply

    return reply(RESULTS["apply_credit"])


def test_F020_a_later_count_that_kills_every_worker_is_given_up(done: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(question: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(worker, "ask", die)
    advance_clock(seconds=26)
    sweep(ring=lambda decision_id: None)
    with wall.within(done.tenant.pk):
        (ordered,) = Decision.objects.filter(state="requested").values_list("pk", flat=True)
    for _ in range(worker.MOST_TAKES):
        with pytest.raises(KeyboardInterrupt):
            worker.execute(ordered)
        advance_clock(minutes=5)
    worker.execute(ordered)
    with wall.within(done.tenant.pk):
        assert Decision.objects.get(pk=ordered).state == "refused"
    assert done.action().looks == worker.MOST_TAKES
    assert [task.reason_code for task in about_credit(done)] == ["postcondition_unproven"]
    assert standing(done) == ("completed", "ok", "completed")
