"""The plan of a rollback: what it says before anything is sent, what binds an approval, and what stays (FAULTS H)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from steadyhand.contract import Rollback

from recovery import intake, planning, undos
from recovery.connectors.base import Finding
from recovery.models import Decision
from recovery.rules.plans import Plan
from recovery.work import decisions, worker
from recovery.work.decisions import Overtaken, Refused
from recovery.work.sweep import sweep
from runs import wall
from runs.ids import new_id
from runs.models import Action, Effect, Event, Person, Run
from tests.factories import (
    Agent,
    Case,
    advance_clock,
    finish,
    make_person,
    open_run,
    propose,
    register,
    reply,
    report,
    timed_out,
)
from tests.failures.outside import DOWN, LOST, REFUSED, Sends, script_sends, stand_manifest
from tests.recovery.stories import (
    Looks,
    actions,
    kinds,
    look,
    open_tasks,
    order,
    panel,
    press,
    standing,
    tasks,
    tries,
    work,
)

ARGUMENTS: dict[str, Any] = {"reserve": {"stand": "A7"}, "pay": {"amount_minor": 5000}, "furnish": {"stand": "A7"}}
RESULTS = {"reserve": {"reservation_id": "rs_1"}, "pay": {"payment_id": "p_50"}, "furnish": {"furniture_id": "f_1"}}
UNDONE = reply({"undo_id": "un_1"})
UNDO: dict[str, Any] = {"tool": "refund", "arguments": {"payment": "payment_id"}}
Booked = Callable[..., Case]


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> Sends:
    return script_sends(monkeypatch)


@pytest.fixture
def ada(tenant: Any) -> Person:
    return make_person("ada", tenant, "admin")


@pytest.fixture
def booked(agent: Agent, sends: Sends) -> Booked:
    """A stand is reserved and paid for; the run lacks the furniture that it needed, so a person is asked."""

    def booked(*, done: tuple[str, ...] = ("reserve", "pay"), **manifest: Any) -> Case:
        register(agent, stand_manifest(**{"required_effects": ["furnish"], **manifest}))
        case = open_run(agent, scope={})
        for tool in done:
            call(case, tool)
        finish(case)
        return case

    return booked


def call(case: Case, tool: str, answer: Any = None) -> Any:
    permit = propose(case, tool, ARGUMENTS[tool])
    report(case, permit, answer or reply(RESULTS[tool], status=201), tool=tool)
    return permit


def plan(case: Case) -> Plan:
    with wall.within(case.tenant.pk):
        return planning.of_run(Run.objects.get(pk=case.run_id))


def stands(case: Case) -> list[tuple[str, str]]:
    with wall.within(case.tenant.pk):
        return [(one.line.step, one.stand) for one in planning.progress(Run.objects.get(pk=case.run_id))]


def effect(case: Case, step: str) -> Effect:
    with wall.within(case.tenant.pk):
        return Effect.objects.get(run_id=case.run_id, step=step)


def settle_all(case: Case, rounds: int = 4) -> None:
    for _ in range(rounds):
        look(case)


def refused(case: Case, sends: Sends, omar: Person) -> Case:
    """A rollback that stopped at its first undo, which its provider refused."""
    sends.say(REFUSED)
    press("compensate", case, omar)
    settle_all(case, 2)
    return case


# --- what a plan says ---------------------------------------------------------------------------------------


def test_a_plan_names_each_undo_in_reverse_with_its_amount_its_cost_and_its_window(booked: Booked) -> None:
    case = booked(pay={"compensate": {**UNDO, "window_seconds": 3600, "cost_minor": 250}})
    first, second = plan(case).lines
    assert [(one.step, one.undo, one.obstacle) for one in (first, second)] == [
        ("pay", "refund", ""),
        ("reserve", "release", ""),
    ]
    assert (first.value_minor, first.currency, first.cost_minor) == (5000, "EUR", 250)
    assert first.until is not None
    assert (first.until - effect(case, "pay").proven_at).total_seconds() == 3600
    assert plan(case).costs == {"EUR": 250}


@pytest.mark.parametrize(
    ("pay", "refund", "obstacle"),
    [
        ({"compensate": None, "irreversible": True}, None, "irreversible"),
        ({"compensate": None}, None, "not_compensable"),
        ({"compensate": {**UNDO, "window_seconds": 60}}, None, "window_over"),
        ({"compensate": {**UNDO, "arguments": {"payment": "not_there"}}}, None, "impossible"),
        ({}, {"send": None}, "impossible"),
    ],
)
def test_a_plan_says_what_cannot_be_undone_and_why(
    booked: Booked, pay: dict[str, Any], refund: dict[str, Any] | None, obstacle: str
) -> None:
    case = booked(pay=pay, refund=refund)
    advance_clock(seconds=61)
    line = plan(case).lines[0]
    assert (line.step, line.obstacle) == ("pay", obstacle)
    assert line.why.endswith(".")


def test_a_plan_is_the_same_before_it_is_ordered_while_it_is_carried_out_and_afterwards(
    booked: Booked, sends: Sends, omar: Person
) -> None:
    case, hashes = booked(), set()
    hashes.add(plan(case).hash)
    sends.say(UNDONE)
    press("compensate", case, omar)
    hashes.add(plan(case).hash)
    assert stands(case) == [("pay", "running"), ("reserve", "remaining")]
    work(case.tenant.pk)
    assert stands(case) == [("pay", "done"), ("reserve", "running")]
    settle_all(case)
    hashes.add(plan(case).hash)
    assert (len(hashes), stands(case)) == (1, [("pay", "done"), ("reserve", "done")])


def test_a_form_that_was_drawn_over_another_plan_orders_nothing(booked: Booked, omar: Person, sends: Sends) -> None:
    case = booked(pay={"compensate": {**UNDO, "window_seconds": 60}})
    form = order(case, omar)
    advance_clock(seconds=61)
    with pytest.raises(Overtaken):
        decisions.compensate(form)
    assert (sends.sent, case.run.goal) == ([], "forward")


def test_the_order_keeps_the_plan_that_was_ordered(booked: Booked, sends: Sends, omar: Person) -> None:
    case = booked()
    agreed = plan(case).hash
    press("compensate", case, omar)
    with wall.within(case.tenant.pk):
        kept = Decision.objects.get(run_id=case.run_id, verb="compensate").snapshot
    assert (kept["plan"], kept["ordered"]) == (agreed, agreed)


def test_a_rollback_starts_at_once_and_not_with_the_next_sweep(booked: Booked, sends: Sends, omar: Person) -> None:
    case = booked()
    sends.say(UNDONE)
    press("compensate", case, omar)
    for _ in range(2):
        work(case.tenant.pk)
    assert sends.tools == ["refund", "release"]
    assert standing(case)[0] == "failed"


# --- F140, F141, F144: what is not undone -------------------------------------------------------------------


def test_F140_while_a_write_is_unknown_its_plan_says_so_and_nothing_is_sent(
    booked: Booked, sends: Sends, omar: Person
) -> None:
    case = booked(done=("reserve",))
    press("resume", case, omar)
    call(case, "pay", timed_out())
    assert [(one.step, one.obstacle) for one in plan(case).lines] == [("pay", "unknown"), ("reserve", "")]
    verb = panel(case, omar).verb("compensate")
    assert not verb.allowed
    assert "it is settled first" in verb.sentence
    with pytest.raises(Refused, match="it is settled first"):
        press("compensate", case, omar)
    assert (sends.sent, case.run.goal) == ([], "forward")


def test_F144_a_late_success_of_a_step_that_was_given_up_stops_the_end_and_asks(
    booked: Booked, sends: Sends, omar: Person, looks: Looks
) -> None:
    bounds = {"max_in_flight_seconds": 20, "max_visibility_lag_seconds": 5}
    rule = {
        "connector": "fair",
        "look": {"path": "/x", "items": "i", "ours": {"r": "{key}"}, "external_id": "id"},
        **bounds,
    }
    case = booked(done=("reserve",), pay={"reconcile": rule})
    press("resume", case, omar)
    permit = call(case, "pay", timed_out())
    looks.say(Finding("absent", "None is ours.", 0))
    sends.say(DOWN)
    intake.rollback(case.agent.who, case.run_id, Rollback(reason="No stand."), request_id="t")
    advance_clock(seconds=26)
    look(case)
    assert case.action("pay").state == "void"
    report(case, permit, reply(RESULTS["pay"], status=201), tool="pay")
    assert ("conflicting_evidence") in {reason for _, reason in open_tasks(case)}
    advance_clock(minutes=10)
    sends.say(UNDONE)
    settle_all(case, 6)
    assert standing(case) == ("escalated", "needs_human", "conflicting_evidence")


# --- F143: approvals ----------------------------------------------------------------------------------------


def test_F143_the_sum_of_a_plan_is_held_against_the_threshold_too(
    agent: Agent, sends: Sends, omar: Person, ada: Person
) -> None:
    register(agent, stand_manifest(value_threshold_minor=6000, required_effects=["furnish"]))
    case = open_run(agent, scope={})
    for amount in (5000, 4000):
        permit = propose(case, "pay", {"amount_minor": amount})
        report(case, permit, reply({"payment_id": f"p_{amount}"}, status=201), tool="pay")
    finish(case)
    sends.say(UNDONE)
    press("compensate", case, omar)
    settle_all(case, 2)
    assert sends.sent == []
    assert standing(case) == ("escalated", "needs_human", "approval_required")
    press("approve", case, ada)
    settle_all(case)
    assert sends.tools == ["refund", "refund"]
    assert (standing(case)[0], open_tasks(case)) == ("failed", [])


def test_F143_one_approval_is_for_the_whole_plan_and_keeps_its_hash(
    booked: Booked, sends: Sends, omar: Person, ada: Person
) -> None:
    approved = {"requires_approval": True}
    manifest = stand_manifest(refund=approved, required_effects=["furnish"])
    next(tool for tool in manifest["tools"] if tool["name"] == "release").update(approved)
    case = booked(tools=manifest["tools"])
    sends.say(UNDONE)
    press("compensate", case, omar)
    settle_all(case, 1)
    assert sends.sent == []
    agreed = plan(case).hash
    press("approve", case, ada)
    with wall.within(case.tenant.pk):
        made = Decision.objects.get(run_id=case.run_id, verb="approve")
    assert made.snapshot["plan"] == agreed == case.run.approved_plan
    settle_all(case, 3)
    assert sends.tools == ["refund", "release"]


def test_F143_a_plan_that_changed_after_its_approval_is_asked_for_anew(
    booked: Booked, sends: Sends, omar: Person, ada: Person
) -> None:
    case = booked(refund={"requires_approval": True})
    press("compensate", case, omar)
    press("approve", case, ada)
    assert case.action("refund").state == "approved"
    with wall.within(case.tenant.pk):  # what the record says of another line moves
        Action.objects.filter(run_id=case.run_id, tool="reserve").update(value_minor=777)
    sends.say(UNDONE)
    settle_all(case, 2)
    assert sends.sent == []
    assert case.action("refund").state == "awaiting_approval"
    assert open_tasks(case) == [("approval", "approval_required")]
    press("approve", case, ada)
    settle_all(case)
    assert sends.tools == ["refund", "release"]


# --- F138: stop, and go on with the remainder ---------------------------------------------------------------


def test_F138_taken_up_again_it_goes_on_with_the_remainder_and_repeats_nothing(
    booked: Booked, sends: Sends, omar: Person
) -> None:
    case = booked(compensation_order=["reserve", "pay"])
    sends.say(UNDONE, REFUSED)
    press("compensate", case, omar)
    settle_all(case)
    assert sends.tools == ["release", "refund"]
    assert stands(case) == [("reserve", "done"), ("pay", "held")]
    told = [event.data for event in events(case, "compensation_stopped")]
    assert told == [{"undone": ["reserve"], "remaining": ["pay"]}]
    verb = panel(case, omar).verb("resume")
    assert verb.allowed
    assert "what is undone is not repeated" in verb.sentence
    sends.say(UNDONE)
    press("resume", case, omar)
    settle_all(case)
    assert sends.tools == ["release", "refund", "refund"]
    assert sends.sent[1].key != sends.sent[2].key
    assert stands(case) == [("reserve", "done"), ("pay", "done")]
    assert (standing(case)[0], open_tasks(case)) == ("failed", [])


def test_I15_the_database_takes_no_second_undo_beside_one_that_may_have_happened(
    booked: Booked, sends: Sends, omar: Person
) -> None:
    case = booked(refund={"idempotency": {"kind": "none"}})
    sends.say(LOST)
    press("compensate", case, omar)
    settle_all(case, 2)
    with wall.within(case.tenant.pk):
        undo = Action.objects.get(run_id=case.run_id, role="undo")
        undo.pk, undo.action_id, undo.arguments_hash = new_id(), "another", "another"
        with pytest.raises(IntegrityError, match="one_undo_per_effect"), transaction.atomic():
            undo.save(force_insert=True)


def test_an_unknown_undo_is_not_ordered_anew_and_not_given_up(booked: Booked, sends: Sends, omar: Person) -> None:
    case = booked(refund={"idempotency": {"kind": "none"}})
    sends.say(LOST)
    press("compensate", case, omar)
    settle_all(case, 2)
    with pytest.raises(Refused, match="may have happened"):
        press("waive", case, omar)
    with pytest.raises(Refused, match="does not go on forward"):
        press("resume", case, omar)


# --- the undo's own budget ----------------------------------------------------------------------------------


def test_an_undo_has_tries_of_its_own(booked: Booked, sends: Sends, omar: Person) -> None:
    case = booked(pay={"compensate": {**UNDO, "max_attempts": 2}})
    sends.say(DOWN)
    press("compensate", case, omar)
    for _ in range(8):
        advance_clock(minutes=1)
        look(case)
    assert [one.number for one in tries(case, "refund")] == [1, 2]
    assert case.action("refund").reason_code == "retry_exhausted"
    assert standing(case)[2] == "compensation_failed"


def test_the_tries_and_the_end_of_the_run_are_not_those_of_its_undos(
    booked: Booked, sends: Sends, omar: Person
) -> None:
    case = booked(budgets={"max_attempts_per_step": 1, "max_elapsed_seconds": 60})
    advance_clock(seconds=120)
    sends.say(reply({}, status=429), reply({}, status=429), UNDONE)
    press("compensate", case, omar)
    for _ in range(8):
        advance_clock(minutes=1)
        look(case)
    assert sends.tools == ["refund", "refund", "refund", "release"]
    assert standing(case)[0] == "failed"


def test_an_undo_is_not_sent_after_its_providers_window(booked: Booked, sends: Sends, omar: Person) -> None:
    case = booked(pay={"compensate": {**UNDO, "window_seconds": 30}})
    sends.say(reply({}, status=429))
    press("compensate", case, omar)
    settle_all(case, 1)
    advance_clock(seconds=60)
    sends.say(UNDONE)
    settle_all(case, 3)
    assert set(sends.tools) == {"refund"}
    assert effect(case, "pay").compensated_by_id is None
    assert standing(case)[2] == "compensation_failed"


FROM_RESULT = {"payment": "payment_id", "amount": "amount", "currency": "currency"}
MOVING = {"value_field": "amount", "currency_field": "currency"}


@pytest.mark.parametrize(("amount", "currency", "sent"), [(5000, "EUR", 1), (5001, "EUR", 0), (5000, "USD", 0)])
def test_an_undo_that_would_move_more_than_its_effect_did_is_not_sent(
    booked: Booked, sends: Sends, omar: Person, monkeypatch: Any, amount: int, currency: str, sent: int
) -> None:
    monkeypatch.setitem(RESULTS, "pay", {"payment_id": "p_50", "amount": amount, "currency": currency})
    case = booked(
        done=("pay",), refund=MOVING, pay={"compensate": {"tool": "refund", "arguments": FROM_RESULT}}
    )  # fmt: skip
    sends.say(UNDONE)
    press("compensate", case, omar)
    settle_all(case)
    assert len(sends.sent) == sent
    assert open_tasks(case) == ([] if sent else [("compensation", "compensation_required")])
    assert ("refund would move" in plan(case).lines[0].why) == (not sent)


# --- F142: residuals, and giving up -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("promise", "answer", "kind", "minor"),
    [
        ({"cost_minor": 300}, {"undo_id": "u"}, "fee", 300),
        ({"returned": "amount"}, {"undo_id": "u", "amount": 4400}, "part", 600),
        ({"returned": "amount"}, {"undo_id": "u"}, "untold", None),
        ({"returned": "amount"}, {"undo_id": "u", "amount": 5001}, "untold", None),
        ({"returned": "amount"}, {"undo_id": "u", "amount": -1}, "untold", None),
        ({"returned": "amount"}, {"undo_id": "u", "amount": -(10**30)}, "untold", None),
        ({"returned": "amount", "cost_minor": 300}, {"undo_id": "u", "amount": 4900}, "part", 100),
    ],
)
def test_F142_what_an_undo_leaves_is_recorded_and_somebody_signs_for_it_before_the_run_ends(
    booked: Booked, sends: Sends, omar: Person, promise: dict[str, Any], answer: dict[str, Any], kind: str, minor: Any
) -> None:
    case = booked(pay={"compensate": {**UNDO, **promise}})
    sends.say(reply(answer))
    press("compensate", case, omar)
    settle_all(case)
    kept = effect(case, "pay")
    assert (kept.residual, kept.residual_minor, kept.signed_off_at) == (kind, minor, None)
    assert standing(case) == ("escalated", "needs_human", "residual_unsigned")
    assert open_tasks(case) == [("compensation", "residual_unsigned")]
    assert stands(case) == [("pay", "partly"), ("reserve", "done")]


def test_F142_a_signed_rest_ends_the_run_as_partly_compensated(booked: Booked, sends: Sends, omar: Person) -> None:
    case = booked(pay={"compensate": {**UNDO, "cost_minor": 300}})
    sends.say(UNDONE)
    press("compensate", case, omar)
    settle_all(case)
    press("waive", case, omar, reason="The fee is theirs.")
    assert effect(case, "pay").signed_off_at is not None
    assert standing(case) == ("failed", "fatal", "partly_compensated")
    assert "taken back only in part" in case.run.customer_message
    assert "Nothing was changed" not in case.run.customer_message
    assert (open_tasks(case), kinds(case).count("residual_accepted")) == ([], 1)


def test_F142_what_comes_back_whole_needs_nobodys_word(booked: Booked, sends: Sends, omar: Person) -> None:
    case = booked(pay={"compensate": {**UNDO, "returned": "amount", "cost_minor": 300}})
    sends.say(reply({"undo_id": "u", "amount": 5000}), UNDONE)
    press("compensate", case, omar)
    settle_all(case)
    assert standing(case)[0] == "failed"
    assert effect(case, "pay").residual == ""


def test_F142_a_rest_above_the_threshold_takes_two(booked: Booked, sends: Sends, omar: Person, ada: Person) -> None:
    case = booked(pay={"compensate": {**UNDO, "cost_minor": 7000}}, value_threshold_minor=6000)
    sends.say(UNDONE)
    press("compensate", case, omar)
    settle_all(case)
    press("waive", case, omar)
    assert (case.task().state, effect(case, "pay").signed_off_at) == ("awaiting_approval", None)
    with pytest.raises(Refused, match="you asked for it yourself"):
        press("approve", case, omar)
    press("approve", case, ada)
    assert standing(case)[0] == "failed"


def test_a_given_up_undo_takes_two_people_and_the_next_one_begins(
    booked: Booked, sends: Sends, omar: Person, ada: Person
) -> None:
    case = refused(booked(), sends, omar)
    sends.say(UNDONE)
    press("waive", case, omar, reason="They keep it.")
    assert (case.task().state, effect(case, "pay").residual) == ("awaiting_approval", "")
    settle_all(case, 2)
    assert sends.tools == ["refund"]
    press("approve", case, ada)
    settle_all(case)
    assert sends.tools == ["refund", "release"]
    assert stands(case) == [("pay", "waived"), ("reserve", "done")]
    assert (effect(case, "pay").residual, effect(case, "pay").residual_minor) == ("whole", 5000)
    assert standing(case) == ("failed", "fatal", "partly_compensated")
    assert "only in part" in case.run.customer_message
    assert open_tasks(case) == []


def test_a_wish_to_give_up_is_declined_and_counts_for_nothing(
    booked: Booked, sends: Sends, omar: Person, ada: Person
) -> None:
    case = refused(booked(), sends, omar)
    press("waive", case, omar)
    press("reject", case, ada)
    assert (case.task().state, effect(case, "pay").residual) == ("claimed", "")


def test_what_cannot_be_undone_is_given_up_by_two(booked: Booked, sends: Sends, omar: Person, ada: Person) -> None:
    case = booked(pay={"compensate": None})
    sends.say(UNDONE)
    press("compensate", case, omar)
    settle_all(case, 1)
    assert open_tasks(case) == [("compensation", "not_compensable")]
    press("waive", case, omar)
    press("approve", case, ada)
    settle_all(case)
    assert sends.tools == ["release"]
    assert standing(case)[2] == "partly_compensated"


def test_who_may_not_waive_does_not(booked: Booked, sends: Sends, omar: Person, alice: Person) -> None:
    case = refused(booked(), sends, omar)
    with pytest.raises(Refused, match="role"):
        press("waive", case, alice)


def test_a_wish_of_somebody_who_lost_the_right_is_not_carried_out(
    booked: Booked, sends: Sends, omar: Person, ada: Person
) -> None:
    case = refused(booked(), sends, omar)
    press("waive", case, omar)
    Person.objects.filter(pk=omar.pk).update(is_active=False)
    with pytest.raises(Refused, match="may no longer ask"):
        press("approve", case, ada)
    assert effect(case, "pay").residual == ""


# --- F018: crashes ------------------------------------------------------------------------------------------


def test_F018_a_worker_that_dies_between_the_proof_and_the_end_leaves_one_end(
    booked: Booked, sends: Sends, omar: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C24 and C25: what the undo brought is recorded with what follows from it, or not at all."""
    case, close = booked(), undos.close

    def die(*whatever: Any) -> None:
        raise KeyboardInterrupt

    sends.say(UNDONE)
    press("compensate", case, omar)
    monkeypatch.setattr(undos, "close", die)
    with pytest.raises(KeyboardInterrupt):
        work(case.tenant.pk)
    assert case.action("refund").state == "permitted"
    monkeypatch.setattr(undos, "close", close)
    for _ in range(6):
        advance_clock(minutes=2)
        sweep(ring=worker.execute)
    assert {one.key for one in sends.sent if one.tool == "refund"} == {case.action("refund").idempotency_key}
    assert kinds(case).count("failed") == 1
    assert stands(case) == [("pay", "done"), ("reserve", "done")]


def events(case: Case, kind: str) -> list[Event]:
    with wall.within(case.tenant.pk):
        return list(Event.objects.filter(run_id=case.run_id, kind=kind).order_by(*Event.IN_ORDER))


def test_the_tasks_of_a_finished_rollback_are_closed(booked: Booked, sends: Sends, omar: Person) -> None:
    case = booked()
    sends.say(UNDONE)
    press("compensate", case, omar)
    settle_all(case)
    assert {task.state for task in tasks(case)} == {"resolved"}
    assert {action.state for action in actions(case) if action.role == "undo"} == {"succeeded"}
