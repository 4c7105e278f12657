"""What was believed on a reply is counted once more when a count is final; what it finds may overturn (F029)."""

from typing import Any

import pytest
from django.db.models import Q

from recovery.models import Decision
from recovery.work import worker
from recovery.work.sweep import sweep
from runs import wall
from runs.models import Event
from tests.factories import Case, advance_clock, finish, propose, report, succeed, turn
from tests.failures.conftest import Opener
from tests.recovery.stories import ABSENT, SILENT, TWICE, Looks, look, open_tasks, present, standing

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


def test_a_later_count_that_gets_no_answer_is_made_again_and_comes_to_an_end(done: Case, looks: Looks) -> None:
    for _ in range(12):
        looks.say(SILENT)
        advance_clock(minutes=6)
        look(done)
    assert done.action().due_at is None
    assert open_tasks(done) == []


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
    assert standing(done) == ("completed", "ok", "completed")
