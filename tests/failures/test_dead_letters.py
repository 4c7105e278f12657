"""Calls that used all their tries: one letter, whole and owned, replayed once per order (T5, F105, F158, F159)."""

from typing import Any

import pytest
from steadyhand.contract import Cancel

from recovery import intake
from recovery.models import DeadLetter
from recovery.work import dead_letters
from runs import wall
from runs.models import Person
from runs.record import Actor
from tests.factories import RESULTS, Case, advance_clock, propose, reply, report, succeed
from tests.failures.conftest import Opener
from tests.failures.outside import DOWN
from tests.recovery.stories import actions, effects, kinds, open_tasks, standing, tasks, tick, tries

KEYED: Any = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"}
SPENT = ("escalated", "needs_human", "retry_exhausted")


@pytest.fixture
def spent(opened: Opener) -> Case:
    """A keyed credit that was answered with 503 three times."""
    case = opened(idempotency=KEYED, reconcile=None, run={})
    succeed(case, "load_invoice")
    for _ in range(3):
        send_again(case)
    return case


def send_again(case: Case, answer: Any = DOWN) -> None:
    report(case, propose(case), answer)
    advance_clock(seconds=10)


def letter(case: Case) -> DeadLetter:
    with wall.within(case.tenant.pk):
        return DeadLetter.objects.get(run_id=case.run_id)


def replay(case: Case, by: Person) -> DeadLetter:
    with wall.within(case.tenant.pk, by="person"):
        return dead_letters.replay(letter(case), by=by, actor=Actor("person", str(by)))


def discard(case: Case, by: Person) -> DeadLetter:
    with wall.within(case.tenant.pk, by="person"):
        return dead_letters.discard(letter(case), by=by, actor=Actor("person", str(by)), reason="Not needed.")


def test_F105_T5_the_ceiling_writes_one_letter_with_its_history_and_an_owner(spent: Case) -> None:
    found = letter(spent)
    assert standing(spent) == SPENT
    assert open_tasks(spent) == [("dead_letter", "retry_exhausted")]
    assert [one["number"] for one in found.attempts] == [1, 2, 3]
    assert {(one["status"], one["layer"]) for one in found.attempts} == {(503, "agent")}
    assert (found.owner_team, found.generation, found.state) == ("billing-support", 1, "recorded")
    assert found.identity == spent.action().action_id
    assert found.request["arguments"]["invoice"] == "INV-20931"
    assert found.failure_class == "external_outcome_unknown"


def test_F105_a_dead_letter_pages_nobody(spent: Case) -> None:
    assert [task.paged_at for task in tasks(spent)] == [None]


def test_F105_what_had_been_done_stands_in_the_letter(opened: Opener) -> None:
    case = opened()
    succeed(case)
    for _ in range(3):
        report(case, propose(case, "load_invoice"), reply({}, status=503))
        advance_clock(seconds=10)
    assert letter(case).completed_effects == ["apply_credit"]


def test_F158_a_replay_is_one_more_try_under_the_same_identity_and_key(spent: Case, omar: Person) -> None:
    keys = {one.idempotency_key for one in tries(spent)}
    replay(spent, omar)
    permit = propose(spent)
    assert (permit.answer, permit.attempt) == ("execute", 4)
    assert permit.action_id == spent.action().action_id
    report(spent, permit, reply(RESULTS["apply_credit"]))
    assert {one.idempotency_key for one in tries(spent)} == keys
    assert (letter(spent).state, letter(spent).owner_id) == ("recovered", omar.pk)
    assert effects(spent) == ["apply_credit"]
    assert open_tasks(spent) == []


def test_F158_a_replay_that_fails_is_the_same_letter_in_its_next_generation(spent: Case, omar: Person) -> None:
    replay(spent, omar)
    send_again(spent)
    found = letter(spent)
    assert (found.generation, found.state, found.owner_id) == (2, "recorded", omar.pk)
    assert [one["number"] for one in found.attempts] == [1, 2, 3, 4]
    assert standing(spent) == SPENT
    assert len(tasks(spent)) == 1
    assert propose(spent).answer == "wait"


def test_F159_a_second_click_grants_nothing_more(spent: Case, omar: Person) -> None:
    replay(spent, omar)
    replay(spent, omar)
    send_again(spent)
    assert propose(spent).answer == "wait"
    assert len(tries(spent)) == 4
    assert kinds(spent).count("dead_letter_replayed") == 1


def test_a_replay_tells_the_runner_at_once(spent: Case, omar: Person) -> None:
    replay(spent, omar)
    assert standing(spent)[0] == "recovering"
    assert kinds(spent)[-1] == "ready"


def test_each_replay_is_one_more(spent: Case, omar: Person) -> None:
    for number in (4, 5):
        replay(spent, omar)
        send_again(spent)
        assert len(tries(spent)) == number
    assert letter(spent).generation == 3


def test_a_read_that_came_to_its_end_has_a_letter_too_and_may_be_discarded(opened: Opener, omar: Person) -> None:
    case = opened()
    for _ in range(3):
        report(case, propose(case, "load_invoice"), reply({}, status=503))
        advance_clock(seconds=10)
    assert discard(case, omar).state == "discarded"
    assert open_tasks(case) == []
    assert standing(case)[0] == "executing"


def test_what_may_have_happened_is_not_discarded_by_one(spent: Case, omar: Person) -> None:
    with pytest.raises(dead_letters.NotNow, match="not known whether"):
        discard(spent, omar)
    assert letter(spent).state == "recorded"


def test_a_replay_beyond_the_runs_time_is_refused(spent: Case, omar: Person) -> None:
    advance_clock(hours=2)
    with pytest.raises(dead_letters.NotNow):
        replay(spent, omar)
    tick()
    assert letter(spent).generation == 1


def test_a_late_reply_recovers_the_letter(spent: Case) -> None:
    late = tries(spent)[2]
    permit = propose(spent)
    assert permit.answer == "wait"
    told = permit.model_copy(update={"attempt_id": str(late.pk), "fence": late.fence, "step": "apply_credit"})
    report(spent, told, reply(RESULTS["apply_credit"]))
    assert letter(spent).state == "recovered"
    assert [one.state for one in actions(spent) if one.tool == "apply_credit"] == ["succeeded"]


def test_F158_a_replay_that_is_refused_for_good_keeps_its_letter_for_a_person(spent: Case, omar: Person) -> None:
    replay(spent, omar)
    send_again(spent, reply({"error": {"code": "closed"}}, status=422))
    assert (letter(spent).generation, letter(spent).state) == (2, "recorded")
    assert len(letter(spent).attempts) == 4


def test_a_letter_of_a_cancelled_read_waits_to_be_discarded(opened: Opener, omar: Person) -> None:
    case = opened()
    for _ in range(3):
        report(case, propose(case, "load_invoice"), reply({}, status=503))
        advance_clock(seconds=10)
    intake.cancel(case.agent.who, case.run_id, Cancel(reason="No longer needed."), request_id="t")
    assert letter(case).state == "recorded"
    assert discard(case, omar).state == "discarded"
    assert standing(case) == ("cancelled", "cancelled", "cancelled_by_user")
