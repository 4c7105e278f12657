"""Late evidence against what was decided: the bound that was not kept, the task that opens again, and what it tells
about who decided what on which evidence (F028, F072, F141, F144)."""

from __future__ import annotations

from typing import Any

import pytest
from steadyhand.contract import Permit, Rollback

from recovery import demotions, intake
from recovery.connectors.base import Finding
from recovery.models import Demotion
from recovery.work import holds
from recovery.work.decisions import Unusable
from recovery.work.sweep import sweep
from runs import record, wall
from runs.models import Effect, Event, Evidence, Person, Tenant
from tests.factories import (
    RESULTS,
    Agent,
    Case,
    advance_clock,
    finish,
    lose_the_reply,
    make_client,
    make_person,
    make_tenant,
    open_run,
    propose,
    register,
    reply,
    report,
    succeed,
)
from tests.failures.conftest import Opener, manifest
from tests.failures.outside import Sends, script_sends
from tests.recovery.stories import (
    ABSENT,
    TWICE,
    Looks,
    actions,
    evidence,
    look,
    open_tasks,
    panel,
    present,
    press,
    tasks,
)

pytestmark = [pytest.mark.failures, pytest.mark.django_db]
BOUNDS = {"in_flight_seconds": 20, "lag_seconds": 5}
UNDONE = Finding("undone", "cr_1 is ours, and was taken back there.", 1, "cr_1", {"credit_id": "cr_1"}, {})


def disproven(case: Case, looks: Looks) -> Permit:
    """A credit whose first try was said for certain to have had no effect, sent again; returns the first permit."""
    first = propose(case)
    advance_clock(seconds=60)
    looks.say(ABSENT)
    for _ in range(2):
        look(case)
        advance_clock(seconds=30)
    look(case)
    assert case.action().state == "absent_final"
    return first


def events(tenant: Tenant, kind: str) -> list[Event]:
    with wall.within(tenant.pk):
        return list(Event.objects.filter(kind=kind).select_related("action").order_by(*Event.IN_ORDER))


def told_late(case: Case, first: Permit) -> None:
    report(case, first, reply(RESULTS["apply_credit"]), "apply_credit")


@pytest.fixture
def broken(opened: Opener, looks: Looks) -> Case:
    """The first reply comes after all, long after the look that had disproven it."""
    case = opened(**BOUNDS)
    first = disproven(case, looks)
    told_late(case, first)
    return case


def test_F028_a_late_effect_demotes_its_connector_and_the_history_says_so(broken: Case, tenant: Tenant) -> None:
    assert open_tasks(broken) == [("decide_next", "conflicting_evidence")]
    (violation,) = events(tenant, "bound_violated")
    assert violation.action is not None
    assert violation.action.step == "apply_credit"
    assert "payments had said" in violation.reason
    with wall.within(tenant.pk):
        (demotion,) = Demotion.objects.all()
    assert (demotion.connector, demotion.lifted_at) == ("payments", None)


def test_F028_it_is_noted_once_however_often_it_is_seen(
    broken: Case, tenant: Tenant, omar: Person, looks: Looks
) -> None:
    looks.say(TWICE)
    press("reconcile", broken, omar)
    look(broken)
    assert len(events(tenant, "contradicted")) == 2, "what a look found now contradicts it once more"
    assert len(events(tenant, "bound_violated")) == 1


def test_F028_the_next_run_gets_no_final_answer_from_it(broken: Case, agent: Agent, looks: Looks) -> None:
    other = open_run(agent)
    lose_the_reply(other)
    looks.say(ABSENT)
    for _ in range(5):
        advance_clock(minutes=30)
        look(other)
    assert set(evidence(other)) == {"absent"}
    assert propose(other).answer == "wait"
    assert open_tasks(other) == [("reconcile_write", "external_outcome_unknown")]


def test_F028_an_absence_that_was_final_frees_nothing_any_more_and_its_call_is_asked_about(
    opened: Opener, agent: Agent, looks: Looks
) -> None:
    case = opened(**BOUNDS)
    first = disproven(case, looks)
    other = open_run(agent)
    disproven(other, looks)
    sweep(ring=lambda _: None)
    assert other.action().due_at is None, "its turn was announced, and nobody has come yet"
    told_late(case, first)
    assert propose(other).answer == "wait", "what licensed its retry rests on a bound that is not kept"
    assert other.action().state == "held", "its record no longer says that an absence is proven"
    assert open_tasks(other) == [("reconcile_write", "external_outcome_unknown")]
    assert propose(other).answer == "wait"
    assert len(open_tasks(other)) == 1
    advance_clock(minutes=30)
    looks.say(present("cr_2"))
    look(other)
    assert evidence(other)[-1] == "present", "the look is made by itself"
    assert open_tasks(other) == [("decide_next", "conflicting_evidence")]


def test_F028_a_new_version_of_the_workflow_promises_anew(broken: Case, agent: Agent, looks: Looks) -> None:
    advance_clock(seconds=1)
    register(agent, manifest(in_flight_seconds=900, lag_seconds=5))
    other = open_run(agent)
    lose_the_reply(other)
    looks.say(ABSENT)
    advance_clock(seconds=906)
    look(other)
    assert evidence(other) == ["absent_final"]


def test_F028_another_connector_and_another_tenant_are_trusted_as_before(
    opened: Opener, agent: Agent, looks: Looks
) -> None:
    stranger = make_client(make_tenant("south"))
    register(stranger, manifest(**BOUNDS))
    register(agent, through("ledger"), "ledger_support")
    case = opened(**BOUNDS)
    told_late(case, disproven(case, looks))
    for other in (open_run(stranger), open_run(agent, workflow="ledger_support")):
        lose_the_reply(other)
        advance_clock(seconds=60)
        look(other)
        assert evidence(other) == ["absent_final"]


def through(connector: str) -> dict[str, Any]:
    """The same workflow with look-ups that go through a connector of another name."""
    made = manifest(**BOUNDS)
    made["connectors"][connector] = made["connectors"].pop("payments")
    for tool in made["tools"]:
        if rule := tool.get("reconcile"):
            rule["connector"] = connector
    return made


def test_F028_who_administers_the_tenant_may_lift_it_with_a_reason(
    broken: Case, tenant: Tenant, agent: Agent, alice: Person, looks: Looks
) -> None:
    ada = make_person("ada", tenant, "admin")
    with wall.within(tenant.pk):
        (demotion,) = Demotion.objects.all()
    with pytest.raises(demotions.Refused, match="your role"):
        demotions.lift(alice, tenant.pk, demotion.pk, reason="It is fine.")
    with pytest.raises(demotions.Refused, match="say why"):
        demotions.lift(ada, tenant.pk, demotion.pk, reason="  ")
    demotions.lift(ada, tenant.pk, demotion.pk, reason="The provider fixed its queue.")
    assert [event.reason for event in events(tenant, "demotion_lifted")] == ["The provider fixed its queue."]
    with pytest.raises(demotions.Refused, match="already"):
        demotions.lift(ada, tenant.pk, demotion.pk, reason="Again.")
    other = open_run(agent)
    lose_the_reply(other)
    looks.say(ABSENT)
    advance_clock(seconds=60)
    look(other)
    assert evidence(other) == ["absent_final"]


def test_F028_two_effects_after_a_disproven_try_demote_too(opened: Opener, looks: Looks, tenant: Tenant) -> None:
    case = opened(**BOUNDS)
    disproven(case, looks)
    report(case, propose(case), reply(RESULTS["apply_credit"]), "apply_credit")
    looks.say(TWICE)
    advance_clock(seconds=30)
    look(case)
    assert open_tasks(case) == [("duplicate_effect", "duplicate_effect")]
    assert len(events(tenant, "bound_violated")) == 1


def test_F029_two_effects_of_one_try_are_nobodys_broken_bound(opened: Opener, looks: Looks, tenant: Tenant) -> None:
    case = opened(**BOUNDS)
    lose_the_reply(case)
    looks.say(TWICE)
    advance_clock(seconds=6)
    look(case)
    assert open_tasks(case) == [("duplicate_effect", "duplicate_effect")]
    assert (events(tenant, "bound_violated"), case.run.reason_code) == ([], "conflicting_evidence")


# --- the task that opens again ------------------------------------------------------------------------------


def test_the_task_that_a_look_had_closed_opens_again_and_tells_what_was_decided(broken: Case, tenant: Tenant) -> None:
    (task,) = tasks(broken)
    assert (task.state, task.resolution, task.resolved_at) == ("reopened", "", None)
    (event,) = events(tenant, "contradicted")
    assert event.data["task"] == str(task.pk)
    freed = [one for one in event.data["decided"] if one["rule"] == "8i"]
    assert [(one["what"], one["by"]) for one in freed] == [("retry_planned", "sweep")]
    assert freed[0]["evidence"] in evidence_ids(broken, "absent_final")
    assert event.data["evidence"] in evidence_ids(broken, "present")
    assert "“absent final” from payments" in event.reason


def test_the_rule_is_read_from_the_data_of_an_event_and_not_from_its_words(
    opened: Opener, looks: Looks, monkeypatch: pytest.MonkeyPatch, tenant: Tenant
) -> None:
    real = record.write_event

    def reworded(*given: Any, reason: str = "", **named: Any) -> Event:
        return real(*given, reason=reason.replace("Rule ", "By line "), **named)

    monkeypatch.setattr(record, "write_event", reworded)
    case = opened(**BOUNDS)
    told_late(case, disproven(case, looks))
    (event,) = events(tenant, "contradicted")
    assert "8i" in [one["rule"] for one in event.data["decided"]]


def evidence_ids(case: Case, verdict: str) -> list[str]:
    with wall.within(case.tenant.pk):
        return [str(one) for one in Evidence.objects.filter(verdict=verdict).values_list("pk", flat=True)]


def test_what_people_decided_is_told_by_name(opened: Opener, looks: Looks, alice: Person, tenant: Tenant) -> None:
    case = opened(**BOUNDS)
    first = propose(case)
    advance_clock(seconds=60)
    looks.say(ABSENT)
    look(case)
    press("cancel", case, alice, reason="The customer gave up.")
    for _ in range(2):
        advance_clock(seconds=60)
        look(case)
    assert case.action().state == "void"
    told_late(case, first)
    (event,) = events(tenant, "contradicted")
    assert [one["by"] for one in event.data["decided"] if one["what"] == "cancel"] == ["Alice"]
    assert "Alice decided cancel" in event.reason


def test_a_task_reopened_can_be_claimed_like_any_other(broken: Case, alice: Person) -> None:
    press("claim", broken, alice)
    assert [task.state for task in tasks(broken)] == ["claimed"]
    press("release", broken, alice)
    assert [task.state for task in tasks(broken)] == ["open"]


# --- undone outside -----------------------------------------------------------------------------------------


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> Sends:
    return script_sends(monkeypatch)


def taken_back(case: Case) -> None:
    intake.rollback(case.agent.who, case.run_id, Rollback(reason="Not owed."), request_id="test")


def undoable(**promises: Any) -> dict[str, Any]:
    made = manifest(**BOUNDS, **promises)
    void = next(tool for tool in made["tools"] if tool["name"] == "void_credit")
    void["send"] = {"connector": "payments", "path": "/voids"}
    return made


def test_F141_an_effect_that_was_undone_outside_is_not_undone_again(agent: Agent, looks: Looks, sends: Sends) -> None:
    register(agent, undoable())
    case = open_run(agent)
    succeed(case)
    taken_back(case)
    looks.say(UNDONE)
    for _ in range(3):
        advance_clock(seconds=30)
        look(case)
    assert sends.sent == []
    assert [(one.step, one.state) for one in actions(case)] == [("apply_credit", "compensated")]
    assert case.run.state == "failed"
    with wall.within(case.tenant.pk):
        (effect,) = Effect.objects.all()
    assert effect.compensated_by_id == effect.action_id
    assert [event.reason for event in events(case.tenant, "undone_outside")] == [
        "The effect has been taken back outside."
    ]
    assert finish(case).completed_effects == []


def test_F141_an_unknown_write_found_undone_outside_leaves_nothing_to_do(
    agent: Agent, looks: Looks, sends: Sends
) -> None:
    register(agent, undoable())
    case = open_run(agent)
    lose_the_reply(case)
    taken_back(case)
    looks.say(UNDONE)
    for _ in range(3):
        advance_clock(seconds=30)
        look(case)
    assert sends.sent == []
    assert [(one.step, one.state) for one in actions(case)] == [("apply_credit", "compensated")]
    assert (case.run.state, open_tasks(case)) == ("failed", [])


def test_F141_an_effect_undone_outside_while_the_run_goes_on_is_a_persons(opened: Opener, looks: Looks) -> None:
    case = opened(**BOUNDS)
    succeed(case)
    looks.say(UNDONE)
    advance_clock(seconds=30)
    look(case)
    assert open_tasks(case) == [("decide_next", "conflicting_evidence")]


def test_F144_a_late_success_of_what_was_rolled_back_as_nothing_asks_again(
    agent: Agent, looks: Looks, sends: Sends, tenant: Tenant
) -> None:
    register(agent, undoable())
    case = open_run(agent)
    first = propose(case)
    advance_clock(seconds=60)
    look(case)
    taken_back(case)
    looks.say(ABSENT)
    for _ in range(3):
        advance_clock(seconds=60)
        look(case)
    assert (case.action().state, case.run.state) == ("void", "failed")
    told_late(case, first)
    assert open_tasks(case) == [("decide_next", "conflicting_evidence")]
    assert [task.state for task in tasks(case)] == ["reopened"]
    assert len(events(tenant, "bound_violated")) == 1
    assert case.run.state == "failed", "an outcome is never taken back; a person is asked"


# --- the way out of a broken bound --------------------------------------------------------------------------


def test_F028_the_page_points_at_a_check_and_says_what_it_is_worth(broken: Case, omar: Person) -> None:
    seen = panel(broken, omar)
    check, retry, attest = (seen.verb(name) for name in ("reconcile", "retry", "attest"))
    assert (check.allowed, check.recommended, attest.allowed, retry.allowed) == (True, True, True, False)
    assert "an effect that it finds is proof, finding nothing is none" in check.sentence
    assert "it would happen twice" in retry.sentence


def test_F028_a_check_that_finds_the_effect_settles_the_call(broken: Case, omar: Person, looks: Looks) -> None:
    looks.say(present())
    press("reconcile", broken, omar)
    look(broken)
    assert (broken.action().state, open_tasks(broken)) == ("succeeded", [])


def test_F028_a_check_that_finds_nothing_proves_nothing_and_may_be_made_again(
    broken: Case, omar: Person, looks: Looks
) -> None:
    looks.say(ABSENT)
    for _ in range(4):
        press("reconcile", broken, omar)
        look(broken)
        assert (broken.action().state, open_tasks(broken)) == ("held", [("decide_next", "conflicting_evidence")])
    assert panel(broken, omar).verb("reconcile").allowed


def test_F115_a_check_that_only_a_person_asks_for_keeps_no_place_before_a_shut_circuit_and_says_so(
    broken: Case, omar: Person, looks: Looks
) -> None:
    looks.say(present())
    held = holds.hold_circuit(omar, broken.tenant.pk, name="connector:payments", reason="They asked for a rest.")
    asked = len(looks.asked)
    press("reconcile", broken, omar)
    look(broken)
    assert (broken.action().state, broken.action().due_at, len(looks.asked)) == ("held", None, asked)
    assert events(broken.tenant, "refused")[-1].reason.endswith("check again after it.")
    holds.release_circuit(omar, broken.tenant.pk, held.pk, reason="It is well.")
    press("reconcile", broken, omar)
    look(broken)
    assert broken.action().state == "succeeded"


def test_F028_a_check_that_finds_two_leaves_a_contradiction_that_no_word_settles(
    broken: Case, omar: Person, looks: Looks
) -> None:
    looks.say(TWICE)
    press("reconcile", broken, omar)
    look(broken)
    assert broken.action().state == "held"
    assert not panel(broken, omar).verb("attest").allowed


def test_F028_a_word_with_a_reference_settles_it_and_from_one_who_may_not_approve_it_takes_two(
    broken: Case, alice: Person, omar: Person
) -> None:
    press("attest", broken, alice, outcome="present", reference="cr_1")
    assert broken.action().state == "held"
    press("approve", broken, omar)
    assert (broken.action().state, open_tasks(broken)) == ("succeeded", [])


def test_F028_nobody_may_state_that_what_was_found_did_not_happen(broken: Case, omar: Person) -> None:
    with pytest.raises(Unusable, match="was found already"):
        press("attest", broken, omar, outcome="absent", reference="case 1")


def test_F028_after_a_second_send_a_look_settles_nothing_for_it_cannot_tell_which_try_it_sees(
    opened: Opener, omar: Person, looks: Looks
) -> None:
    case = opened(**BOUNDS)
    first = disproven(case, looks)
    lose_the_reply(case)
    told_late(case, first)
    looks.say(present())
    press("reconcile", case, omar)
    look(case)
    assert case.action().state == "held"
    press("attest", case, omar, outcome="present", reference="cr_1")
    assert case.action().state == "succeeded"


def test_F028_a_person_may_look_on_and_attest_where_a_demoted_connector_found_nothing(
    broken: Case, agent: Agent, omar: Person, looks: Looks
) -> None:
    other = open_run(agent)
    lose_the_reply(other)
    looks.say(ABSENT)
    for _ in range(10):
        advance_clock(minutes=2)
        look(other)
    seen = panel(other, omar)
    assert seen.case is not None
    assert (seen.case.evidence.looks, seen.verb("reconcile").allowed) == ("spent", True)
    press("reconcile", other, omar)
    look(other)
    assert evidence(other)[-1] == "absent"
    press("attest", other, omar, outcome="absent", reference="case 4711")
    assert other.action().state == "absent_final"
    assert open_tasks(other) == []
