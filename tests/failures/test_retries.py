"""Calls without effect that are made again: by one owner, as often as allowed, never too early (FAULTS B, F)."""

import pytest

from tests.factories import advance_clock, finish, propose, rate_limit, reply, report, succeed, timed_out
from tests.failures.conftest import Opener
from tests.recovery.stories import Looks, effects, kinds, open_tasks, standing, tick, tries

NOT_SENT = reply({}).model_copy(update={"kind": "not_sent"})


def test_F031_T2_a_rate_limit_twice_then_success_is_one_call_in_three_tries(opened: Opener) -> None:
    case = opened()
    permits = [propose(case, "load_invoice")]
    for _ in range(2):
        limited = report(case, permits[-1], reply({}, status=429, headers={"retry-after": "30"}))
        assert (limited.answer, round(limited.wait_seconds)) == ("again", 30)
        assert propose(case, "load_invoice").answer == "wait"
        assert standing(case) == ("recovering", "retryable", "provider_rate_limited")
        advance_clock(seconds=30)
        permits.append(propose(case, "load_invoice"))
    assert report(case, permits[-1], reply({"invoice_id": "INV-20931"})).answer == "result"
    assert len({permit.action_id for permit in permits}) == 1
    assert [permit.attempt for permit in permits] == [1, 2, 3]
    assert len({permit.fence for permit in permits}) == 3
    assert kinds(case).count("succeeded") == 1


def test_F031_a_write_is_rate_limited_under_one_key(opened: Opener) -> None:
    case = opened(idempotency={"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"})
    first = propose(case)
    report(case, first, reply({}, status=429, headers={"retry-after": "5"}))
    advance_clock(seconds=5)
    second = propose(case)
    assert first.idempotency_key == second.idempotency_key is not None


def test_F032_a_delay_past_the_deadline_stops_the_run_and_is_never_shortened(opened: Opener) -> None:
    case = opened(deadline_seconds=600)
    limited = rate_limit(case, retry_after=864_000)
    assert (limited.answer, limited.reason_code) == ("suspend", "deadline_exceeded")
    assert standing(case) == ("escalated", "needs_human", "deadline_exceeded")


@pytest.mark.parametrize("asked", ["soon", "-5", "nan", "inf", "1e999", "Sat, 99 Foo 2026 09:18:00 GMT"])
def test_F032_an_unusable_delay_gives_way_to_our_own(opened: Opener, asked: str) -> None:
    case = opened()
    limited = report(case, propose(case), reply({}, status=429, headers={"retry-after": asked}))
    assert limited.answer == "again"
    assert 0 < limited.wait_seconds <= 1


def test_F023_a_call_that_never_left_is_made_again_without_a_look(opened: Opener, looks: Looks) -> None:
    case = opened()
    assert report(case, propose(case), NOT_SENT).answer == "again"
    tick()
    advance_clock(seconds=5)
    assert propose(case).attempt == 2
    assert looks.asked == []


def test_F035_a_status_that_the_contract_names_as_not_executed_frees_the_call(opened: Opener, looks: Looks) -> None:
    case = opened()
    report(case, propose(case, "load_invoice"), reply({}, status=503))
    assert standing(case) == ("recovering", "retryable", "provider_unavailable")


def test_a_read_whose_reply_was_lost_is_read_again_and_done(opened: Opener) -> None:
    case = opened()
    assert report(case, propose(case, "load_invoice"), timed_out()).answer == "again"
    advance_clock(seconds=5)
    assert succeed(case, "load_invoice").answer == "result"
    assert standing(case)[0] == "executing"


def test_a_read_whose_lease_ran_out_is_read_again(opened: Opener) -> None:
    case = opened()
    propose(case, "load_invoice")
    advance_clock(minutes=2)
    tick()
    assert standing(case) == ("recovering", "retryable", "provider_unavailable")
    advance_clock(seconds=5)
    assert succeed(case, "load_invoice").answer == "result"


def test_a_retry_that_falls_due_is_announced_once(opened: Opener) -> None:
    case = opened()
    rate_limit(case)
    tick()
    assert "ready" not in kinds(case)
    advance_clock(seconds=31)
    tick()
    tick()
    assert kinds(case).count("ready") == 1
    assert succeed(case, "load_invoice").answer == "result"


def test_F105_T5_the_retry_ceiling_stops_with_a_reason_and_an_owner(opened: Opener) -> None:
    case = opened()
    for _ in range(3):
        rate_limit(case)
        advance_clock(seconds=31)
    assert standing(case) == ("escalated", "needs_human", "retry_exhausted")
    assert propose(case, "load_invoice").answer == "wait"
    assert [one.number for one in tries(case, "load_invoice")] == [1, 2, 3]
    assert [one.observed for one in tries(case, "load_invoice")] == ["transient_reject"] * 3
    assert open_tasks(case) == [("dead_letter", "retry_exhausted")]
    assert case.task().owner_team == "billing-support"


def test_a_live_key_lets_a_lost_write_be_sent_again_at_once(opened: Opener) -> None:
    case = opened(
        idempotency={"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"}, reconcile=False
    )
    first = propose(case)
    assert report(case, first, timed_out()).answer == "again"
    assert standing(case) == ("recovering", "retryable", "provider_unavailable")
    advance_clock(seconds=5)
    again = propose(case)
    assert (again.answer, again.attempt, again.idempotency_key) == ("execute", 2, first.idempotency_key)
    assert report(case, again, reply({"credit_id": "cr_1"})).answer == "result"
    assert effects(case) == ["apply_credit"]


def test_F046_an_expired_key_is_no_key(opened: Opener) -> None:
    promise = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": 700}
    case = opened(idempotency=promise, in_flight_seconds=600)
    assert report(case, propose(case), timed_out()).answer == "suspend"
    advance_clock(seconds=100)
    assert propose(case).answer == "wait"
    assert len(tries(case)) == 1


def test_F102_a_ceiling_on_calls_names_itself(opened: Opener) -> None:
    case = opened(budgets={"max_tool_calls": 1})
    succeed(case, "load_invoice")
    assert propose(case).answer == "stop"
    assert standing(case) == ("escalated", "needs_human", "tool_call_budget_exhausted")
    assert finish(case).outcome == "needs_human"
