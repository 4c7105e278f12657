"""Calls that no agent makes: told to wait, sent once by the worker, reported like any other (F052 to F054)."""

from typing import Any

import pytest
from steadyhand.contract import Cancel

from recovery import escalation, intake
from recovery.models import Decision
from recovery.work import sending, stops, worker
from recovery.work.sweep import sweep
from runs import wall
from runs.models import Person
from runs.record import RULE
from tests.factories import RESULTS, Case, advance_clock, finish, make_person, propose, reply, succeed
from tests.failures.conftest import Opener
from tests.failures.outside import LOST, REFUSED, Sends, script_sends
from tests.recovery.stories import (
    Looks,
    effects,
    kinds,
    look,
    open_tasks,
    present,
    press,
    standing,
    tries,
    waiting,
    work,
)

CREDITED = reply(RESULTS["apply_credit"])
KEYED: Any = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"}


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> Sends:
    return script_sends(monkeypatch)


def hosted(opened: Opener, **promises: Any) -> Case:
    usual: dict[str, Any] = {"dispatch": "host", "send": {"connector": "payments", "path": "/credits"}}
    case = opened(**(usual | promises))
    succeed(case, "load_invoice")
    return case


def calls(case: Case) -> int:
    return case.run.tool_calls


def test_the_agent_waits_and_the_worker_sends(opened: Opener, sends: Sends) -> None:
    case = hosted(opened)
    permit = propose(case)
    assert (permit.answer, permit.attempt_id, sends.sent) == ("wait", None, [])
    sends.say(CREDITED)
    look(case)
    assert [(one.tool, one.arguments["amount_minor"]) for one in sends.sent] == [("apply_credit", 12_000)]
    assert [one.layer for one in tries(case)] == ["worker"]
    assert propose(case).result == RESULTS["apply_credit"]
    assert effects(case) == ["apply_credit"]


def test_asking_again_meanwhile_orders_nothing_twice_and_counts_once(opened: Opener, sends: Sends) -> None:
    case = hosted(opened)
    propose(case)
    before = calls(case)
    propose(case)
    propose(case, step="another-step")
    assert calls(case) == before == 2
    sends.say(CREDITED)
    look(case)
    assert len(sends.sent) == 1


def test_F052_a_message_that_comes_twice_sends_once(opened: Opener, sends: Sends) -> None:
    case = hosted(opened)
    propose(case)
    (decision,) = waiting(case.tenant.pk)
    sends.say(CREDITED)
    worker.execute(decision)
    worker.execute(decision)
    assert len(sends.sent) == len(tries(case)) == 1


def test_F053_a_message_that_comes_hours_late_finds_nothing_to_do(opened: Opener, sends: Sends) -> None:
    case = hosted(opened)
    propose(case)
    (decision,) = waiting(case.tenant.pk)
    intake.cancel(case.agent.who, case.run_id, Cancel(reason="Too late."), request_id="t")
    advance_clock(hours=3)
    worker.execute(decision)
    assert sends.sent == []
    assert standing(case) == ("cancelled", "cancelled", "cancelled_by_user")


def test_F007_F004_a_worker_that_dies_after_the_permit_leaves_an_unknown_that_is_looked_up(
    opened: Opener, sends: Sends
) -> None:
    case = hosted(opened)
    propose(case)
    sends.meanwhile = lambda: (_ for _ in ()).throw(KeyboardInterrupt)
    (decision,) = waiting(case.tenant.pk)
    with pytest.raises(KeyboardInterrupt):
        worker.execute(decision)
    worker.execute(decision)
    assert len(sends.sent) == 1
    advance_clock(minutes=2)
    worker.execute(decision)
    sweep(ring=lambda _: None)
    assert standing(case) == ("verifying", "needs_human", "external_outcome_unknown")
    assert len(sends.sent) == len(tries(case)) == 1
    with wall.within(case.tenant.pk):
        assert Decision.objects.get(pk=decision).state == "failed"


def test_F058_a_worker_that_paused_beyond_its_lease_only_leaves_evidence(opened: Opener, sends: Sends) -> None:
    case = hosted(opened)
    propose(case)
    sends.say(CREDITED)
    sends.meanwhile = lambda: (advance_clock(minutes=2), sweep(ring=lambda _: None))
    work(case.tenant.pk)
    assert "lease_expired" in kinds(case)
    assert effects(case) == ["apply_credit"]
    assert case.action().reason_code == "completed_late_result"


def test_F059_a_permit_that_lay_too_long_is_not_used(
    opened: Opener, sends: Sends, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = hosted(opened)
    propose(case)
    clock = iter([0.0, 6.0])
    monkeypatch.setattr(sending.time, "monotonic", lambda: next(clock, 6.0))
    work(case.tenant.pk)
    assert sends.sent == []
    assert standing(case) == ("recovering", "retryable", "connect_failed")


def test_a_transient_refusal_is_sent_again_by_the_worker_under_the_same_key(opened: Opener, sends: Sends) -> None:
    case = hosted(opened, idempotency=KEYED)
    propose(case)
    sends.say(reply({}, status=429), CREDITED)
    look(case)
    advance_clock(seconds=5)
    look(case)
    assert [one.number for one in tries(case)] == [1, 2]
    assert len({one.key for one in sends.sent}) == 1
    assert effects(case) == ["apply_credit"]


def test_a_refusal_goes_back_to_the_agent(opened: Opener, sends: Sends) -> None:
    case = hosted(opened)
    propose(case)
    sends.say(REFUSED)
    look(case)
    assert (propose(case).answer, finish(case).reason_code) == ("deny", "business_rule_violation")


def test_a_lost_answer_without_a_key_is_not_sent_again(opened: Opener, sends: Sends) -> None:
    case = hosted(opened, reconcile=None)
    propose(case)
    sends.say(LOST)
    look(case)
    advance_clock(minutes=5)
    look(case)
    assert len(sends.sent) == 1
    assert open_tasks(case) == [("reconcile_write", "external_outcome_unknown")]


def test_I13_a_stop_that_is_set_between_order_and_send_holds_it_back(opened: Opener, sends: Sends) -> None:
    case = hosted(opened)
    ada = make_person("ada", case.tenant, "admin")
    propose(case)
    stop = stops.set_stop(ada, case.tenant.pk, scope="everything", mode="halt", reason="An incident.")
    sends.say(CREDITED)
    look(case)
    assert sends.sent == []
    stops.lift_stop(ada, case.tenant.pk, stop.pk, reason="Over.")
    look(case)
    assert effects(case) == ["apply_credit"]


def test_I13_a_claim_between_order_and_send_holds_it_back(opened: Opener, sends: Sends, omar: Person) -> None:
    case = hosted(opened, reconcile=None, idempotency=KEYED)
    propose(case)
    sends.say(LOST)
    look(case)
    advance_clock(seconds=5)
    sweep(ring=lambda _: None)
    assert len(waiting(case.tenant.pk)) == 1
    with wall.within(case.tenant.pk):
        escalation.open_task(case.run, "stopped_by_operator", action=None, actor=RULE)
    press("claim", case, omar)
    look(case)
    assert len(sends.sent) == 1
    assert ("reconcile_write", "external_outcome_unknown") in open_tasks(case)


def test_an_approved_call_is_sent_after_the_agents_next_proposal(opened: Opener, sends: Sends, omar: Person) -> None:
    case = hosted(opened, requires_approval=True)
    propose(case)
    press("approve", case, omar)
    sends.say(CREDITED)
    propose(case)
    look(case)
    assert effects(case) == ["apply_credit"]
    assert calls(case) == 2


def test_F003_a_message_that_was_never_sent_is_found_by_the_sweep(opened: Opener, sends: Sends) -> None:
    case = hosted(opened)
    propose(case)
    rung: list[Any] = []
    advance_clock(seconds=6)
    sweep(ring=rung.append)
    sends.say(CREDITED)
    for decision in rung:
        worker.execute(decision)
    assert rung == waiting_before(case)
    assert len(sends.sent) == len(tries(case)) == 1


def waiting_before(case: Case) -> list[Any]:
    with wall.within(case.tenant.pk):
        return list(Decision.objects.filter(verb="send").values_list("pk", flat=True))


def test_F009_a_crash_while_the_outcome_is_written_leaves_no_half_of_it(
    opened: Opener, sends: Sends, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = hosted(opened)
    propose(case)
    sends.say(CREDITED)

    def die(name: str) -> None:
        if name == "C14":
            raise KeyboardInterrupt

    monkeypatch.setattr(sending.crashpoints, "point", die)
    with pytest.raises(KeyboardInterrupt):
        work(case.tenant.pk)
    assert (effects(case), case.action().state) == ([], "permitted")
    assert [one.ended_at for one in tries(case)] == [None]
    advance_clock(minutes=2)
    sweep(ring=lambda _: None)
    assert standing(case) == ("verifying", "needs_human", "external_outcome_unknown")
    assert len(sends.sent) == 1


def test_F054_messages_in_the_wrong_order_do_nothing_out_of_turn(opened: Opener, sends: Sends, looks: Looks) -> None:
    case = hosted(opened)
    propose(case)
    (send,) = waiting(case.tenant.pk)
    worker.execute(send)
    advance_clock(seconds=6)
    sweep(ring=lambda _: None)
    (look_up,) = waiting(case.tenant.pk)
    worker.execute(look_up)
    worker.execute(send)
    worker.execute(look_up)
    assert (len(sends.sent), len(looks.asked)) == (1, 1)


def test_a_look_that_the_contract_wants_at_once_is_ordered_by_the_workers_own_report(
    opened: Opener, sends: Sends, looks: Looks
) -> None:
    """No sweep is needed between the send and the look that proves it."""
    case = hosted(opened, proof="look", first_look_seconds=0)
    propose(case)
    (send,) = waiting(case.tenant.pk)
    sends.say(CREDITED)
    looks.say(present())
    worker.execute(send)
    (check,) = waiting(case.tenant.pk)
    worker.execute(check)
    assert effects(case) == ["apply_credit"]
