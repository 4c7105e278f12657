"""Taking back what a run did: in reverse, one after the other, each undo a call of its own (FAULTS H)."""

from collections.abc import Callable
from typing import Any

import pytest
from steadyhand.contract import Cancel, Rollback

from recovery import intake
from recovery.connectors.base import Finding
from recovery.models import HumanTask
from runs import wall
from runs.models import Action, Effect, Person
from tests.factories import Agent, Case, advance_clock, open_run, propose, register, reply, report, timed_out
from tests.failures.outside import DOWN, LOST, REFUSED, Sends, script_sends, stand_manifest
from tests.recovery.stories import (
    ABSENT,
    Looks,
    actions,
    kinds,
    look,
    open_tasks,
    press,
    standing,
    tasks,
    tick,
    tries,
    work,
)

ARGUMENTS: dict[str, Any] = {"reserve": {"stand": "A7"}, "pay": {"amount_minor": 5000}, "furnish": {"stand": "A7"}}
RESULTS = {"reserve": {"reservation_id": "rs_1"}, "pay": {"payment_id": "p_50"}, "furnish": {"furniture_id": "f_1"}}
UNDONE = reply({"undo_id": "un_1"})
LOOK = {
    "connector": "fair",
    "look": {"path": "/x", "items": "items", "ours": {"ref": "{key}"}, "external_id": "id"},
    "max_in_flight_seconds": 20,
    "max_visibility_lag_seconds": 5,
}
Booked = Callable[..., Case]


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> Sends:
    return script_sends(monkeypatch)


@pytest.fixture
def booked(agent: Agent, sends: Sends) -> Booked:
    """The stand is reserved and paid for; the furniture is sold out."""

    def booked(**manifest: Any) -> Case:
        register(agent, stand_manifest(**manifest))
        case = open_run(agent, scope={})
        for tool in ("reserve", "pay"):
            report(case, call(case, tool), reply(RESULTS[tool], status=201), tool=tool)
        report(case, call(case, "furnish"), reply({"code": "SOLD_OUT"}, status=422), tool="furnish")
        return case

    return booked


def call(case: Case, tool: str) -> Any:
    return propose(case, tool, ARGUMENTS[tool])


def roll_back(case: Case) -> Any:
    return intake.rollback(case.agent.who, case.run_id, Rollback(reason="The furniture is gone."), request_id="t")


def states(case: Case) -> dict[str, str]:
    return {action.step: action.state for action in actions(case)}


def kept(case: Case) -> list[str]:
    return roll_back(case).completed_effects


def settle_all(case: Case, rounds: int = 4) -> None:
    for _ in range(rounds):
        look(case)


def test_effects_are_taken_back_in_reverse_and_the_run_fails_for_what_began_it(booked: Booked, sends: Sends) -> None:
    case = booked()
    sends.say(UNDONE)
    assert roll_back(case).state == "compensating"
    settle_all(case)
    assert sends.tools == ["refund", "release"]
    assert [one.arguments for one in sends.sent] == [{"payment": "p_50"}, {"reservation": "rs_1"}]
    assert standing(case) == ("failed", "fatal", "business_rule_violation")
    assert states(case)["pay"] == states(case)["reserve"] == "compensated"
    assert kept(case) == []


def test_an_undo_has_an_identity_and_a_key_of_its_own(booked: Booked, sends: Sends) -> None:
    case = booked()
    sends.say(UNDONE)
    roll_back(case)
    settle_all(case)
    undo, paid = case.action("refund"), case.action("pay")
    assert (undo.role, undo.parent_id, undo.step) == ("undo", paid.pk, "pay:undo")
    assert undo.action_id != paid.action_id
    assert sends.sent[0].key == undo.idempotency_key != paid.idempotency_key
    with wall.within(case.tenant.pk):
        assert Effect.objects.get(action=paid).compensated_by_id == undo.pk


def test_the_next_undo_waits_until_the_one_before_is_proven(booked: Booked, sends: Sends) -> None:
    case = booked()
    sends.say(DOWN)
    roll_back(case)
    settle_all(case)
    assert set(sends.tools) == {"refund"}
    assert states(case)["reserve"] == "succeeded"


def test_F139_an_undo_without_an_answer_is_not_sent_again_without_a_key(booked: Booked, sends: Sends) -> None:
    case = booked(refund={"idempotency": {"kind": "none"}})
    sends.say(LOST)
    roll_back(case)
    settle_all(case)
    assert sends.tools == ["refund"]
    assert standing(case) == ("escalated", "needs_human", "compensation_failed")
    assert open_tasks(case) == [("compensation", "compensation_failed")]
    assert case.task().paged_at is not None
    assert states(case)["reserve"] == "succeeded"
    assert kept(case) == ["reserve", "pay"]


def test_F139_a_look_tells_whether_the_undo_happened(booked: Booked, sends: Sends, looks: Looks) -> None:
    case = booked(refund={"idempotency": {"kind": "none"}, "reconcile": LOOK})
    sends.say(LOST, UNDONE)
    looks.say(Finding("present", "One record is ours.", 1, "un_9", {"undo_id": "un_9"}))
    roll_back(case)
    look(case)
    assert standing(case) == ("compensating", "needs_human", "external_outcome_unknown")
    assert open_tasks(case) == [("compensation", "external_outcome_unknown")]
    for _ in range(4):
        advance_clock(seconds=6)
        look(case)
    assert sends.tools == ["refund", "release"]
    assert standing(case)[0] == "failed"
    assert open_tasks(case) == []


def test_F042_an_undo_whose_later_count_nobody_answers_is_a_persons(
    booked: Booked, sends: Sends, looks: Looks
) -> None:
    case = booked(refund={"reconcile": LOOK})
    sends.say(UNDONE)
    roll_back(case)
    settle_all(case)
    assert standing(case)[0] == "failed"
    for _ in range(9):
        advance_clock(minutes=6)
        look(case)
    assert open_tasks(case) == [("reconcile_write", "postcondition_unproven")]
    assert (tasks(case)[-1].tool, case.action("refund").state, standing(case)[0]) == ("refund", "succeeded", "failed")


def test_F139_an_undo_that_was_unknown_when_the_run_was_cancelled_is_not_sent_again(
    booked: Booked, sends: Sends, looks: Looks
) -> None:
    case = booked(refund={"idempotency": {"kind": "none"}, "reconcile": LOOK})
    sends.say(LOST, UNDONE)
    looks.say(ABSENT)
    roll_back(case)
    work(case.tenant.pk)
    intake.cancel(case.agent.who, case.run_id, Cancel(reason="Leave it."), request_id="t")
    for _ in range(8):
        advance_clock(seconds=60)
        look(case)
    assert sends.tools == ["refund"]
    assert states(case)["pay:undo"] == "void"
    assert standing(case) == ("cancelled", "cancelled", "cancelled_with_effects")
    with wall.within(case.tenant.pk):
        assert case.run.decisions.filter(verb="send").count() == 1


def test_F138_a_refused_undo_stops_there_and_says_what_is_left(booked: Booked, sends: Sends) -> None:
    case = booked()
    sends.say(REFUSED)
    roll_back(case)
    settle_all(case)
    assert sends.tools == ["refund"]
    assert (states(case)["pay"], states(case)["pay:undo"]) == ("compensation_held", "refused_permanent")
    assert standing(case)[2] == "compensation_failed"
    with wall.within(case.tenant.pk):
        told = case.run.events.get(kind="compensation_stopped").data
    assert told == {"undone": [], "remaining": ["pay", "reserve"]}


def test_a_busy_provider_gets_the_same_undo_again_under_the_same_key(booked: Booked, sends: Sends) -> None:
    case = booked()
    sends.say(reply({}, status=429), UNDONE)
    roll_back(case)
    look(case)
    advance_clock(seconds=5)
    settle_all(case)
    assert sends.tools == ["refund", "refund", "release"]
    assert sends.sent[0].key == sends.sent[1].key
    assert [one.number for one in tries(case, "refund")] == [1, 2]


def test_what_nobody_can_send_is_asked_of_a_person(agent: Agent, booked: Booked, sends: Sends) -> None:
    case = booked(refund={"send": None})
    roll_back(case)
    settle_all(case)
    assert sends.sent == []
    assert standing(case) == ("escalated", "needs_human", "compensation_required")
    assert open_tasks(case) == [("compensation", "compensation_required")]


def test_an_effect_without_an_undo_is_not_passed_over(booked: Booked, sends: Sends) -> None:
    case = booked(pay={"compensate": None})
    roll_back(case)
    settle_all(case)
    assert sends.sent == []
    assert open_tasks(case) == [("compensation", "not_compensable")]


def test_F140_an_unknown_effect_is_not_taken_back(agent: Agent, booked: Booked, sends: Sends) -> None:
    register(agent, stand_manifest())
    case = open_run(agent, scope={})
    report(case, call(case, "reserve"), reply(RESULTS["reserve"]), tool="reserve")
    report(case, call(case, "pay"), timed_out(), tool="pay")
    roll_back(case)
    settle_all(case)
    assert sends.sent == []
    assert standing(case) == ("escalated", "needs_human", "external_outcome_unknown")


def test_an_effect_that_can_be_looked_up_is_counted_before_it_is_taken_back(
    booked: Booked, sends: Sends, looks: Looks
) -> None:
    case = booked(pay={"reconcile": LOOK})
    sends.say(UNDONE)
    looks.say(Finding("present", "One record is ours.", 1, "p_50", RESULTS["pay"]))
    roll_back(case)
    look(case)
    assert sends.sent == []
    advance_clock(seconds=26)
    settle_all(case)
    assert sends.tools == ["refund", "release"]
    assert len(looks.asked) == 1


def test_F143_an_undo_above_the_threshold_waits_for_its_own_approval(booked: Booked, sends: Sends) -> None:
    case = booked(value_threshold_minor=6000, refund={"requires_approval": True})
    sends.say(UNDONE)
    roll_back(case)
    settle_all(case)
    assert sends.sent == []
    assert standing(case) == ("escalated", "needs_human", "approval_required")
    assert [(task.kind, task.tool) for task in tasks(case)] == [("approval", "refund")]


def test_an_approved_undo_is_sent_and_the_rollback_goes_on(booked: Booked, sends: Sends, omar: Person) -> None:
    case = booked(refund={"requires_approval": True})
    sends.say(UNDONE)
    roll_back(case)
    press("approve", case, omar)
    settle_all(case)
    assert sends.tools == ["refund", "release"]
    assert standing(case)[0] == "failed"


def test_a_rollback_of_a_run_that_is_being_cancelled_ends_cancelled(agent: Agent, sends: Sends) -> None:
    register(agent, stand_manifest())
    case = open_run(agent, scope={})
    report(case, call(case, "reserve"), reply(RESULTS["reserve"]), tool="reserve")
    permit = call(case, "pay")
    intake.cancel(case.agent.who, case.run_id, Cancel(reason="No stand."), request_id="t")
    sends.say(UNDONE)
    roll_back(case)
    report(case, permit, reply(RESULTS["pay"]), tool="pay")
    settle_all(case)
    assert sends.tools == ["refund", "release"]
    assert standing(case) == ("cancelled", "cancelled", "cancelled_by_user")


def test_a_reply_that_comes_during_the_rollback_is_taken_back_too(agent: Agent, sends: Sends) -> None:
    register(agent, stand_manifest())
    case = open_run(agent, scope={})
    permit = call(case, "pay")
    sends.say(UNDONE)
    roll_back(case)
    settle_all(case)
    assert (sends.sent, standing(case)[0]) == ([], "compensating")
    report(case, permit, reply(RESULTS["pay"]), tool="pay")
    settle_all(case)
    assert sends.tools == ["refund"]
    assert standing(case) == ("failed", "fatal", "not_applied")


def test_what_was_never_sent_is_void_and_no_call_is_taken_any_more(booked: Booked, sends: Sends) -> None:
    case = booked(pay={"compensate": None, "requires_approval": False})
    roll_back(case)
    assert propose(case, "furnish", {"stand": "B2"}).answer == "stop"


def test_I15_a_second_order_starts_nothing_twice(booked: Booked, sends: Sends) -> None:
    case = booked()
    sends.say(UNDONE)
    roll_back(case)
    roll_back(case)
    settle_all(case)
    roll_back(case)
    assert sends.tools == ["refund", "release"]
    assert kinds(case).count("failed") == 1


def test_I15_an_undo_that_the_agent_made_itself_is_not_made_again(agent: Agent, sends: Sends) -> None:
    register(agent, stand_manifest())
    case = open_run(agent, scope={})
    report(case, call(case, "pay"), reply(RESULTS["pay"]), tool="pay")
    report(case, propose(case, "refund", {"payment": "p_50"}), UNDONE, tool="refund")
    roll_back(case)
    settle_all(case)
    assert sends.sent == []
    assert states(case)["pay"] == "compensated"


def test_the_manifest_may_name_another_order(booked: Booked, sends: Sends) -> None:
    case = booked(compensation_order=["reserve", "pay"])
    sends.say(UNDONE)
    roll_back(case)
    settle_all(case)
    assert sends.tools == ["release", "refund"]


def test_the_window_of_an_undo_closes(booked: Booked, sends: Sends) -> None:
    undo = {"tool": "refund", "arguments": {"payment": "payment_id"}, "window_seconds": 60}
    case = booked(pay={"compensate": undo})
    advance_clock(seconds=61)
    roll_back(case)
    settle_all(case)
    assert sends.sent == []
    assert open_tasks(case) == [("compensation", "not_compensable")]


def test_F017_a_worker_that_dies_in_an_undo_leaves_it_unknown_and_it_is_not_sent_blindly(
    booked: Booked, sends: Sends
) -> None:
    case = booked(refund={"idempotency": {"kind": "none"}})
    roll_back(case)

    def die() -> None:
        raise KeyboardInterrupt

    sends.meanwhile = die
    with pytest.raises(KeyboardInterrupt):
        look(case)
    sends.meanwhile = lambda: None
    advance_clock(minutes=2)
    settle_all(case)
    assert sends.tools == ["refund"]
    assert standing(case)[2] == "compensation_failed"


def test_undos_are_no_completed_effects(booked: Booked, sends: Sends) -> None:
    case = booked()
    sends.say(UNDONE, REFUSED)
    roll_back(case)
    settle_all(case)
    assert kept(case) == ["reserve"]
    with wall.within(case.tenant.pk):
        assert Action.objects.filter(run_id=case.run_id, role="undo").count() == 2
        assert HumanTask.objects.filter(run_id=case.run_id, state="open").count() == 1


def test_nothing_is_sent_while_a_stop_stands(booked: Booked, sends: Sends, tenant: Any) -> None:
    from recovery.work import stops
    from tests.factories import make_person

    ada = make_person("ada", tenant, "admin")
    case = booked()
    sends.say(UNDONE)
    stop = stops.set_stop(ada, tenant.pk, scope="tool", name="refund", mode="halt", reason="Wrong refunds.")
    roll_back(case)
    settle_all(case)
    assert sends.sent == []
    stops.lift_stop(ada, tenant.pk, stop.pk, reason="Found.")
    settle_all(case)
    assert sends.tools == ["refund", "release"]
    tick()
