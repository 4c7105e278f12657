"""Messages to the worker that come before, after or without the work that they speak of (F053, F054)."""

from __future__ import annotations

import uuid

from steadyhand.contract import Permit

from recovery.models import Decision
from recovery.work import worker
from runs import wall
from runs.models import Person
from tests.factories import Case, lose_the_reply, reply, report
from tests.failures.conftest import Opener
from tests.recovery.stories import Looks, evidence, kinds, present, press, standing, tries


def test_F054_a_message_that_comes_before_its_row_finds_nothing_to_do(opened: Opener, looks: Looks) -> None:
    case = opened()
    lose_the_reply(case)
    before = kinds(case)
    worker.execute(uuid.uuid4())
    assert kinds(case) == before
    assert looks.asked == []


def test_F054_a_check_that_is_overtaken_by_the_answer_is_refused_with_its_reason(
    opened: Opener, looks: Looks, alice: Person
) -> None:
    """The look was ordered first and its message comes last: the call has been settled meanwhile."""
    case = opened()
    lose_the_reply(case)
    decision = press("reconcile", case, alice)
    (attempt,) = tries(case)
    _late_reply(case, attempt.pk, attempt.fence)
    assert standing(case)[0] == "executing"
    worker.execute(decision.pk)
    with wall.within(case.tenant.pk):
        ended = Decision.objects.get(pk=decision.pk)
    assert (ended.state, ended.result) == ("refused", "The call was settled meanwhile.")
    assert kinds(case)[-1] == "refused"
    assert looks.asked == []


def test_F053_F054_messages_in_the_wrong_order_make_one_look(opened: Opener, looks: Looks, alice: Person) -> None:
    case = opened()
    lose_the_reply(case)
    looks.say(present())
    decision = press("reconcile", case, alice)
    worker.execute(decision.pk)
    worker.execute(decision.pk)
    worker.execute(uuid.uuid4())
    worker.execute(decision.pk)
    assert evidence(case) == ["present"]


def _late_reply(case: Case, attempt_id: uuid.UUID, fence: int) -> None:
    permit = Permit(answer="execute", run_id="", step="apply_credit", attempt_id=str(attempt_id), fence=fence)
    report(case, permit, reply({"credit_id": "cr_1", "amount_minor": 12_000}))
