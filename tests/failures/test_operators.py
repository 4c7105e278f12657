"""What people decide, and what becomes of it when somebody or something was faster (FAULTS G, I13)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from steadyhand.contract import Permit

from recovery import leases, permissions
from recovery.models import Decision
from recovery.work import decisions, worker
from recovery.work.decisions import NoSuchTask, Overtaken, ReasonMissing, Refused
from recovery.work.sweep import STEPS, sweep
from runs import wall
from runs.models import Event, Person
from tests.factories import (
    RESULTS,
    Case,
    advance_clock,
    lose_the_reply,
    make_person,
    make_tenant,
    propose,
    reply,
    report,
    timed_out,
    turn,
)
from tests.failures.conftest import Opener
from tests.recovery.stories import (
    ABSENT,
    Looks,
    effects,
    evidence,
    kinds,
    look,
    open_tasks,
    order,
    panel,
    present,
    press,
    standing,
    tick,
    tries,
    work,
)

DESK = {"claim", "assign", "snooze", "comment", "reconcile", "cancel", "attest"}
HELD = ("escalated", "needs_human", "external_outcome_resolved")


@pytest.fixture
def lost(opened: Opener) -> Case:
    case = opened(in_flight_seconds=20, lag_seconds=5)
    turn(case)
    lose_the_reply(case)
    return case


def decision(of: Decision, case: Case) -> Decision:
    with wall.within(case.tenant.pk):
        return Decision.objects.get(pk=of.pk)


def nothing(decision_id: Any) -> None:
    """A ring that nobody hears."""


# --- the thread of the product ------------------------------------------------------------------------------


def test_a_person_asks_what_happened_and_the_run_goes_on(lost: Case, looks: Looks, alice: Person) -> None:
    looks.say(present("cr_7"))
    pressed = press("reconcile", lost, alice, reason="The customer is waiting.")
    assert (pressed.state, pressed.verb, pressed.by_id) == ("requested", "reconcile", alice.pk)
    work(lost.tenant.pk)
    assert decision(pressed, lost).state == "done"
    assert effects(lost) == ["apply_credit"]
    assert open_tasks(lost) == []
    assert propose(lost).answer == "replay"
    assert {"verb_reconcile", "look_started", "succeeded", "ready"} <= set(kinds(lost))


def test_a_look_gets_the_real_arguments_and_the_key_that_was_sent(lost: Case, looks: Looks, alice: Person) -> None:
    press("reconcile", lost, alice)
    work(lost.tenant.pk)
    (question,) = looks.asked
    assert question.action_id == lost.action().action_id
    assert question.arguments["amount_minor"] == 12_000


def test_a_look_that_is_under_way_cannot_be_asked_for_again(lost: Case, alice: Person) -> None:
    press("reconcile", lost, alice)
    with pytest.raises((Refused, Overtaken), match="check is under way"):
        press("reconcile", lost, alice)


def test_ruling_14_a_proven_absence_waits_for_whoever_claimed(lost: Case, looks: Looks, omar: Person) -> None:
    press("claim", lost, omar)
    looks.say(ABSENT)
    advance_clock(seconds=25)
    look(lost)
    assert standing(lost) == HELD
    assert propose(lost).answer == "wait"
    press("retry", lost, omar)
    again = propose(lost)
    assert (again.answer, again.attempt) == ("execute", 2)
    assert report(lost, again, reply(RESULTS["apply_credit"])).answer == "result"
    assert len(tries(lost)) == 2


def test_ruling_14_a_proven_effect_under_a_claim_closes_the_task(lost: Case, looks: Looks, omar: Person) -> None:
    press("claim", lost, omar)
    looks.say(present())
    advance_clock(seconds=6)
    look(lost)
    assert open_tasks(lost) == []
    assert standing(lost)[0] == "executing"


def test_a_gate_that_was_opened_lets_exactly_one_try_through(lost: Case, looks: Looks, omar: Person) -> None:
    press("claim", lost, omar)
    looks.say(ABSENT)
    advance_clock(seconds=25)
    look(lost)
    press("retry", lost, omar)
    report(lost, propose(lost), reply({}, status=504))
    assert not lost.action().gate_open
    assert propose(lost).answer == "wait"


def test_a_word_licenses_no_retry(lost: Case, omar: Person) -> None:
    press("claim", lost, omar)
    with pytest.raises(Refused):
        press("retry", lost, omar, reason="I am sure that nothing happened.")
    assert len(tries(lost)) == 1


def test_a_run_resumes_only_when_every_call_is_settled(lost: Case, omar: Person) -> None:
    with pytest.raises(Refused, match="not settled"):
        press("resume", lost, omar)


def test_a_person_cancels_and_the_unknown_write_keeps_its_task(lost: Case, alice: Person) -> None:
    press("cancel", lost, alice)
    assert standing(lost) == ("cancelled", "cancelled", "cancelled_effect_unknown")
    assert open_tasks(lost) == [("reconcile_write", "external_outcome_unknown")]


def test_a_comment_proves_nothing_and_moves_nothing(lost: Case, alice: Person) -> None:
    before = standing(lost), lost.task().version
    press("comment", lost, alice, reason="It happened, I swear: sk_live_4eC39HqLyjWDarjtT1zdp7dc")
    assert (standing(lost), lost.task().version) == before
    with wall.within(lost.tenant.pk):
        assert "4eC39" not in lost.task().comments.get().text


# --- rights -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "verbs"),
    [
        ("viewer", set()),
        ("auditor", set()),
        ("support", DESK),
        ("oncall", DESK),
        ("admin", DESK),
    ],
)
def test_the_verbs_of_an_unknown_write_by_role(lost: Case, role: str, verbs: set[str]) -> None:
    seen = panel(lost, make_person("somebody", lost.tenant, role))
    assert {verb.name for verb in seen.verbs if verb.allowed} == verbs
    assert all(verb.sentence and verb.rule for verb in seen.verbs)
    assert [verb.name for verb in seen.verbs if verb.recommended] == (["reconcile"] if verbs else [])


def test_F123_a_verb_that_was_not_offered_is_refused_and_leaves_its_mark(lost: Case) -> None:
    bob = make_person("bob", lost.tenant, "viewer")
    for verb in ("claim", "reconcile", "retry", "resume", "cancel", "comment"):
        with pytest.raises(Refused):
            press(verb, lost, bob)
    assert kinds(lost).count("refused") == 6
    with wall.within(lost.tenant.pk):
        mark = Event.objects.filter(run_id=lost.run_id, kind="refused").first()
        assert mark is not None
        assert (mark.actor, mark.actor_kind, mark.data["verb"]) == (str(bob), "person", "claim")
        assert Decision.objects.count() == 0


def test_F122_another_tenants_task_does_not_exist(lost: Case, alice: Person) -> None:
    charlie = make_person("charlie", make_tenant("south"), "admin")
    for person in (charlie, make_person("nobody")):
        with pytest.raises(NoSuchTask):
            decisions.claim(replace(order(lost, alice), by=person))


def test_SEC_07_a_superuser_flag_gives_nothing(lost: Case, alice: Person) -> None:
    root = make_person("root")
    Person.objects.filter(pk=root.pk).update(is_superuser=True)
    with pytest.raises(NoSuchTask):
        decisions.claim(replace(order(lost, alice), by=Person.objects.get(pk=root.pk)))


def test_F129_a_deactivated_person_has_no_rights(lost: Case, alice: Person) -> None:
    form = order(lost, alice)
    Person.objects.filter(pk=alice.pk).update(is_active=False)
    with pytest.raises(NoSuchTask):
        decisions.claim(replace(form, by=Person.objects.get(pk=alice.pk)))


def test_F120_a_right_revoked_between_click_and_work_is_denied_by_the_worker(
    lost: Case, looks: Looks, alice: Person
) -> None:
    pressed = press("reconcile", lost, alice)
    alice.groups.clear()
    work(lost.tenant.pk)
    after = decision(pressed, lost)
    assert (after.state, looks.asked) == ("refused", [])
    assert "no longer holds the right" in after.result
    assert "refused" in kinds(lost)


def test_F120_the_look_still_comes_by_itself_after_a_refused_order(lost: Case, looks: Looks, alice: Person) -> None:
    press("reconcile", lost, alice)
    alice.groups.clear()
    advance_clock(seconds=6)
    looks.say(present())
    tick()
    for _ in range(3):
        advance_clock(seconds=11)
        look(lost)
    assert effects(lost) == ["apply_credit"]


def test_a_role_is_a_group_of_one_tenant(lost: Case, alice: Person) -> None:
    assert permissions.roles_of(alice) == {lost.tenant.pk: ["support"]}
    assert permissions.tenants_of(alice) == [lost.tenant.pk]
    assert not permissions.may(alice, "retry", lost.tenant.pk)
    with pytest.raises(KeyError):
        permissions.grant_role(alice, lost.tenant, "emperor")


# --- double clicks and old pages ----------------------------------------------------------------------------


def test_F116_the_same_click_twice_is_one_decision(lost: Case, alice: Person) -> None:
    form = order(lost, alice)
    first, second = (decisions.reconcile(form, ring=nothing) for _ in range(2))
    assert first.pk == second.pk
    with wall.within(lost.tenant.pk):
        assert Decision.objects.count() == 1


@pytest.mark.parametrize("verb", ["cancel", "reconcile", "retry", "resume"])
def test_F118_an_overtaken_form_changes_nothing(lost: Case, alice: Person, omar: Person, verb: str) -> None:
    old = order(lost, omar)
    press("claim", lost, alice)
    before = standing(lost)
    with pytest.raises(Overtaken, match="Alice chose “Claim”"):
        getattr(decisions, verb)(old, **({"ring": nothing} if verb == "reconcile" else {}))
    assert standing(lost) == before


def test_F118_a_form_stays_overtaken_when_the_task_is_free_again(lost: Case, alice: Person, omar: Person) -> None:
    old = order(lost, omar)
    press("claim", lost, alice)
    press("release", lost, alice)
    before = standing(lost)
    with pytest.raises(Overtaken, match="Alice chose “Release”"):
        decisions.cancel(old)
    assert standing(lost) == before


def test_F119_a_button_carries_the_evidence_it_was_drawn_from(lost: Case, looks: Looks, alice: Person) -> None:
    old = order(lost, alice)
    looks.say(ABSENT)
    advance_clock(seconds=6)
    look(lost)
    with pytest.raises(Overtaken):
        decisions.cancel(replace(old, version=lost.task().version))


def test_F117_the_second_of_two_claimers_is_told_who_was_first(lost: Case, alice: Person, omar: Person) -> None:
    forms = [order(lost, person) for person in (alice, omar)]
    decisions.claim(forms[0])
    with pytest.raises(Overtaken, match="Alice"):
        decisions.claim(forms[1])
    assert lost.task().claimed_by_id == alice.pk


@pytest.mark.parametrize("verb", ["reconcile", "retry", "resume", "cancel"])
def test_a_verb_that_acts_wants_a_reason(lost: Case, omar: Person, verb: str) -> None:
    with pytest.raises(ReasonMissing):
        press(verb, lost, omar, reason="  ")


def test_a_decision_keeps_what_it_was_made_from(lost: Case, alice: Person) -> None:
    shown = panel(lost, alice).facts_hash
    made = decisions.reconcile(order(lost, alice), ring=nothing)
    assert (made.rule, made.table_version, made.evidence_hash) == ("9a", 3, shown)
    assert [one["observed"] for one in made.snapshot["facts"]["tries"]] == ["unknown"]


# --- claims -------------------------------------------------------------------------------------------------


def test_a_claim_decays_after_half_an_hour_without_an_act(lost: Case, alice: Person, omar: Person) -> None:
    press("claim", lost, alice)
    with pytest.raises(Refused, match="Alice holds this task"):
        press("cancel", lost, omar)
    advance_clock(minutes=31)
    tick()
    assert (lost.task().state, lost.task().claimed_by_id) == ("open", None)
    assert "claim_decayed" in kinds(lost)
    press("claim", lost, omar)


def test_acting_extends_a_claim(lost: Case, alice: Person) -> None:
    press("claim", lost, alice)
    advance_clock(minutes=20)
    press("reconcile", lost, alice)
    advance_clock(minutes=20)
    tick()
    assert lost.task().state == "claimed"


def test_a_claim_is_given_back_by_its_holder_only(lost: Case, alice: Person, omar: Person) -> None:
    press("claim", lost, alice)
    with pytest.raises(Refused):
        press("release", lost, omar)
    press("release", lost, alice)
    assert lost.task().state == "open"


# --- the worker ---------------------------------------------------------------------------------------------


def test_F052_a_message_that_comes_twice_is_carried_out_once(lost: Case, looks: Looks, alice: Person) -> None:
    looks.say(ABSENT)
    pressed = press("reconcile", lost, alice)
    for _ in range(3):
        worker.execute(pressed.pk)
    assert (len(looks.asked), evidence(lost)) == (1, ["absent"])


def test_F053_a_message_that_comes_late_finds_nothing_to_do(lost: Case, looks: Looks, alice: Person) -> None:
    looks.say(present())
    pressed = press("reconcile", lost, alice)
    report_late(lost)
    worker.execute(pressed.pk)
    assert looks.asked == []
    assert decision(pressed, lost).state == "refused"


def report_late(case: Case) -> None:
    attempt = tries(case)[-1]
    permit = propose(case).model_copy(update={"attempt_id": str(attempt.pk), "fence": attempt.fence})
    report(case, permit, reply(RESULTS["apply_credit"]), tool="apply_credit")


def test_F057_a_message_about_nothing_is_dropped(db: None) -> None:
    worker.execute(make_tenant("south").pk)


def die(*_: Any) -> None:
    raise KeyboardInterrupt


def test_F014_F015_a_worker_that_dies_over_a_look_is_replaced_and_leaves_one_verdict(
    lost: Case, looks: Looks, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    pressed = press("reconcile", lost, alice)
    with monkeypatch.context() as dying:
        dying.setattr(worker, "ask", die)
        with pytest.raises(KeyboardInterrupt):
            worker.execute(pressed.pk)
    worker.execute(pressed.pk)
    assert looks.asked == []
    looks.say(present())
    advance_clock(minutes=2)
    rung: list[Any] = []
    assert sweep(ring=rung.append)["nudges"] == 1
    assert rung == [pressed.pk]
    worker.execute(pressed.pk)
    assert evidence(lost) == ["present_final"]
    assert decision(pressed, lost).fence == 2


def test_F055_an_order_whose_message_was_lost_is_rung_again_by_the_next_pass_after_a_second(
    lost: Case, alice: Person
) -> None:
    pressed = press("reconcile", lost, alice)
    rung: list[Any] = []
    assert (wall.due_tenants(), STEPS["nudges"](lost.tenant.pk, rung.append)) == ([], 0)
    advance_clock(seconds=2)
    assert wall.due_tenants() == [lost.tenant.pk]
    sweep(ring=rung.append)
    assert rung == [pressed.pk]


def test_a_worker_reads_a_case_once_before_it_looks(lost: Case, alice: Person) -> None:
    pressed = press("reconcile", lost, alice)
    with CaptureQueriesContext(connection) as asked:
        assert worker._take(lost.tenant.pk, pressed.pk) is not None
    assert len([one for one in asked if 'FROM "runs_evidence"' in one["sql"]]) == 1


def test_F020_a_look_that_kills_its_workers_ends_with_a_person(
    opened: Opener, monkeypatch: Any, alice: Person
) -> None:
    case = opened(max_looks=2)
    lose_the_reply(case)
    press("reconcile", case, alice)
    monkeypatch.setattr(worker, "ask", die)
    for _ in range(5):
        for decision_id in waiting_or_lost(case):
            try:
                worker.execute(decision_id)
            except KeyboardInterrupt:
                continue
        advance_clock(minutes=5)
        sweep(ring=nothing)
    assert case.action().looks == 2 + 1, "the ceiling, and the one that is kept for when it proves something"
    assert standing(case) == ("escalated", "needs_human", "external_outcome_unknown")


def waiting_or_lost(case: Case) -> list[Any]:
    with wall.within(case.tenant.pk):
        return list(Decision.objects.filter(state__in=("requested", "running")).values_list("pk", flat=True))


def test_F058_a_worker_without_its_lease_leaves_evidence_only(lost: Case, looks: Looks, alice: Person) -> None:
    pressed = press("reconcile", lost, alice)

    def overtake() -> None:
        looks.meanwhile = lambda: None
        advance_clock(minutes=2)
        worker.execute(pressed.pk)

    looks.say(ABSENT, present())
    looks.meanwhile = overtake
    before = kinds(lost).count("succeeded")
    worker.execute(pressed.pk)
    assert evidence(lost) == ["absent_final", "present"]
    assert "late_look" in kinds(lost)
    assert kinds(lost).count("succeeded") == before
    assert open_tasks(lost)  # and what contradicts the verdict is not lost


def test_F058_a_worker_whose_place_was_taken_moves_nothing_while_the_other_looks(
    lost: Case, looks: Looks, alice: Person
) -> None:
    pressed = press("reconcile", lost, alice)
    taken: list[Any] = []

    def take() -> None:
        advance_clock(minutes=2)
        taken.append(worker._take(lost.tenant.pk, pressed.pk))

    looks.say(ABSENT)
    looks.meanwhile = take
    worker.execute(pressed.pk)
    assert evidence(lost) == ["absent"]
    assert (lost.action().state, decision(pressed, lost).state) == ("probing", "running")
    worker.conclude(taken[0], present())
    assert (effects(lost), decision(pressed, lost).state) == (["apply_credit"], "done")


def test_a_look_that_a_new_dispatch_overtook_speaks_about_the_earlier_one(
    lost: Case, looks: Looks, alice: Person
) -> None:
    pressed = press("reconcile", lost, alice)
    permits: list[Permit] = []

    def overtake() -> None:
        looks.meanwhile = lambda: None
        advance_clock(minutes=2)
        worker.execute(pressed.pk)
        permits.append(propose(lost))

    looks.say(ABSENT)
    looks.meanwhile = overtake
    worker.execute(pressed.pk)
    assert evidence(lost) == ["absent_final", "absent"]
    assert (permits[0].attempt, lost.action().state) == (2, "permitted")
    assert report(lost, permits[0], timed_out()).answer == "suspend"
    assert lost.action().state == "unknown"
    with wall.within(lost.tenant.pk):
        assert set(lost.action().evidence.values_list("after_attempt", flat=True)) == {1}


def test_a_look_that_comes_back_after_a_late_reply_settled_the_call_moves_nothing(
    lost: Case, looks: Looks, alice: Person
) -> None:
    looks.say(present())
    looks.meanwhile = lambda: report_late(lost)
    press("reconcile", lost, alice)
    work(lost.tenant.pk)
    assert kinds(lost).count("succeeded") == 1
    assert effects(lost) == ["apply_credit"]
    assert open_tasks(lost) == []


def test_F043_a_look_that_contradicts_a_reply_that_settled_the_call_opens_a_task(
    lost: Case, looks: Looks, alice: Person
) -> None:
    looks.say(ABSENT)
    advance_clock(seconds=25)
    looks.meanwhile = lambda: report_late(lost)
    press("reconcile", lost, alice)
    work(lost.tenant.pk)
    assert ("decide_next", "conflicting_evidence") in open_tasks(lost)


# --- the doorbell -------------------------------------------------------------------------------------------


def broken(decision_id: Any) -> None:
    raise ConnectionError("the broker is down")


def test_F055_a_broker_that_is_down_loses_nothing(
    lost: Case, looks: Looks, alice: Person, caplog: Any, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        pressed = decisions.reconcile(order(lost, alice), ring=broken)
    assert f"did not take decision {pressed.pk}" in caplog.text
    assert decision(pressed, lost).state == "requested"
    advance_clock(seconds=6)
    rung: list[Any] = []
    sweep(ring=rung.append)
    assert pressed.pk in rung


def test_the_bell_is_rung_after_the_commit_and_not_before(
    lost: Case, alice: Person, django_capture_on_commit_callbacks: Any
) -> None:
    rung: list[Any] = []
    with django_capture_on_commit_callbacks(execute=True):
        pressed = decisions.reconcile(order(lost, alice), ring=rung.append)
        assert rung == []
    assert rung == [pressed.pk]


# --- the sweep ----------------------------------------------------------------------------------------------


def test_a_sweep_with_nothing_due_does_nothing(lost: Case) -> None:
    before = kinds(lost)
    tick()
    tick()
    assert kinds(lost) == before


def test_one_run_that_cannot_be_handled_does_not_stop_the_others(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    broken_one, sound = opened(), opened()
    for case in (broken_one, sound):
        propose(case)
    handle = leases.expire_of_run

    def fail_for_one(run: Any) -> int:
        if run.pk == broken_one.run_id:
            raise RuntimeError("this run is broken")
        return handle(run)

    monkeypatch.setattr(leases, "expire_of_run", fail_for_one)
    advance_clock(minutes=2)
    sweep(ring=nothing)
    assert str(broken_one.run_id) in caplog.text
    assert standing(sound)[0] == "verifying"
    monkeypatch.undo()
    tick()


def test_F053_a_due_look_is_ordered_once(lost: Case) -> None:
    advance_clock(seconds=6)
    for _ in range(3):
        sweep(ring=nothing)
    with wall.within(lost.tenant.pk):
        assert Decision.objects.filter(action=lost.action()).count() == 1


def test_I11_every_event_has_an_actor_and_a_time(lost: Case, looks: Looks, alice: Person) -> None:
    press("reconcile", lost, alice)
    work(lost.tenant.pk)
    with wall.within(lost.tenant.pk), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM runs_event WHERE actor = '' OR at IS NULL OR kind = ''")
        assert cursor.fetchone()[0] == 0


def test_F120_a_keyed_write_that_was_looked_for_during_a_claim_goes_again_when_the_claim_ends(
    opened: Opener, looks: Looks, alice: Person
) -> None:
    key = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"}
    case = opened(in_flight_seconds=20, lag_seconds=5, idempotency=key)
    turn(case)
    looks.answers = [ABSENT]
    first = propose(case)
    report(case, first, timed_out())
    assert case.action().state == "unknown"
    press("claim", case, alice)
    advance_clock(seconds=6)
    look(case)
    assert case.action().state == "absent"
    advance_clock(minutes=31)
    look(case)
    assert (case.action().state, standing(case)[0]) == ("absent", "recovering")
    advance_clock(minutes=5)
    again = propose(case)
    assert (again.answer, again.idempotency_key) == ("execute", first.idempotency_key)
