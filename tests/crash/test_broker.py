"""The broker loses, doubles or refuses its messages: the rows are the work, so none is lost and none done twice."""

from __future__ import annotations

from recovery.tasks import ring
from runs import wall
from runs.models import Evidence
from tests.crash.case import CreditCase
from tests.crash.test_every_point import lose_the_reply
from tests.stack import wait_for
from tests.stories.telling import press_check, settled


def test_F055_a_click_while_the_broker_is_down_is_carried_out_by_the_sweep(case: CreditCase) -> None:
    lose_the_reply(case)
    case.stack.kill("broker")
    decision = press_check(case.stack, str(case.run.pk))
    assert decision.state == "requested"
    case.stack.start_broker()
    case.go_on()
    case.holds()
    assert settled(case.stack, decision)


def test_F055_a_broker_that_loses_every_message_loses_no_work(case: CreditCase) -> None:
    """It dies with messages that nobody has taken, and starts empty."""
    lose_the_reply(case)
    case.stack.kill("worker")
    decision = press_check(case.stack, str(case.run.pk))
    case.stack.kill("broker")
    case.stack.start_broker()
    case.stack.start_worker()
    case.go_on()
    case.holds()
    assert settled(case.stack, decision)


def test_F052_a_message_that_comes_three_times_is_one_look(case: CreditCase) -> None:
    lose_the_reply(case)
    decision = press_check(case.stack, str(case.run.pk))
    ring(decision.pk)
    ring(decision.pk)
    wait_for(lambda: settled(case.stack, decision), "the verdict")
    with wall.within(case.stack.tenant.pk):
        assert Evidence.objects.filter(run=case.run, kind="probe").count() == 1
    case.go_on()
    case.holds()
