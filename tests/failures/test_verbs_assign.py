"""A task is handed over, and what becomes of it when whoever had it leaves (DECISIONS 1, F129)."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command

from console.embedded.errors import Trouble
from recovery import leaving
from recovery.models import Handover, HumanTask
from recovery.work.decisions import ReasonMissing, Refused, Unusable
from recovery.work.sweep import sweep
from runs import wall
from runs.models import Event, Person, Tenant
from runs.record import Actor
from tests.factories import Case, advance_clock, finish, lose_the_reply, make_person, make_tenant, turn
from tests.failures.conftest import Opener
from tests.recovery.stories import Looks, evidence, kinds, panel, press

DESK = Actor("person", "ops (command line)")


@pytest.fixture
def lost(opened: Opener, looks: Looks) -> Case:
    case = opened()
    turn(case)
    lose_the_reply(case)
    return case


def held(case: Case) -> tuple[str, str | None, str | None]:
    """(state, owner, claimer) of the task."""
    with wall.within(case.tenant.pk):
        task = HumanTask.objects.select_related("owner", "claimed_by").get(pk=case.task().pk)
        return task.state, str(task.owner) if task.owner else None, str(task.claimed_by) if task.claimed_by else None


def told(case: Case, kind: str) -> list[str]:
    with wall.within(case.tenant.pk):
        found = Event.objects.filter(run_id=case.run_id, kind=kind).order_by(*Event.IN_ORDER)
        return list(found.values_list("reason", flat=True))


def name_lead(tenant: Tenant, **team: Any) -> None:
    with wall.within(tenant.pk):
        Tenant.objects.filter(pk=tenant.pk).update(policy={"teams": {"billing-support": team}})


def offers(case: Case) -> list[str]:
    with wall.within(case.tenant.pk):
        return list(Handover.objects.order_by("id").values_list("state", flat=True))


def tick(**shift: float) -> None:
    advance_clock(**shift)
    sweep(ring=lambda decision_id: None)


def test_an_offered_task_stays_with_its_giver_until_the_receiver_accepts(
    lost: Case, alice: Person, omar: Person
) -> None:
    press("claim", lost, alice)
    advance_clock(minutes=20)
    decision = press("assign", lost, alice, to=str(omar.pk), reason="Omar knows this customer.")
    assert held(lost) == ("claimed", None, "Alice")
    assert decision.reason == "Omar knows this customer."
    assert decision.result.startswith("Offered to Omar until ")
    until = lost.task().claimed_until
    assert until is not None
    assert timedelta(minutes=29) < until - decision.requested_at <= timedelta(minutes=30)
    press("accept", lost, omar, reason="")
    assert (held(lost), offers(lost)) == (("claimed", "Omar", "Omar"), ["accepted"])
    assert kinds(lost)[-1] == "verb_accept"
    with pytest.raises(Refused, match="Omar holds this task"):
        press("assign", lost, alice, to=str(alice.pk))


def test_an_unclaimed_task_stays_the_teams_until_it_is_accepted(lost: Case, alice: Person, omar: Person) -> None:
    press("assign", lost, alice, to=str(omar.pk))
    assert held(lost) == ("open", None, None)
    press("accept", lost, omar)
    assert held(lost) == ("claimed", "Omar", "Omar")


def test_a_declined_task_stays_where_it_is_and_may_be_offered_again(lost: Case, alice: Person, omar: Person) -> None:
    press("claim", lost, alice)
    press("assign", lost, alice, to=str(omar.pk))
    with pytest.raises(ReasonMissing):
        press("decline", lost, omar, reason="")
    press("decline", lost, omar, reason="I am about to leave.")
    assert (held(lost), offers(lost)) == (("claimed", None, "Alice"), ["declined"])
    press("assign", lost, alice, to=str(omar.pk))
    assert offers(lost) == ["declined", "offered"]


def test_only_the_receiver_answers_and_only_the_giver_takes_back(
    lost: Case, alice: Person, omar: Person, tenant: Tenant
) -> None:
    ada = make_person("ada", tenant, "admin")
    press("assign", lost, alice, to=str(omar.pk))
    for person, verb, why in [
        (ada, "accept", "it is offered to Omar until"),
        (alice, "decline", "it is offered to Omar until"),
        (omar, "withdraw", "Alice offers it"),
        (ada, "assign", "it is offered to Omar until"),
        (alice, "snooze", "it is offered to Omar until"),
        (make_person("bob", tenant, "viewer"), "accept", "your role does not include this"),
    ]:
        with pytest.raises(Refused, match=why):
            press(verb, lost, person)
    press("withdraw", lost, alice, reason="")
    assert (held(lost), offers(lost)) == (("open", None, None), ["withdrawn"])
    for verb in ("accept", "decline", "withdraw"):
        with pytest.raises(Refused, match="nobody is offered this task"):
            press(verb, lost, omar)


def test_an_offer_ends_with_its_time_and_the_task_goes_back(lost: Case, alice: Person, omar: Person) -> None:
    press("claim", lost, alice)
    press("assign", lost, alice, to=str(omar.pk))
    tick(minutes=29)
    assert offers(lost) == ["offered"]
    tick(minutes=2)
    assert (held(lost), offers(lost)) == (("open", None, None), ["expired"])
    assert told(lost, "offer_expired") == ["Omar did not accept it in time; Alice had offered it."]
    tick(minutes=1)
    assert kinds(lost).count("offer_expired") == 1


def test_an_offer_alone_brings_the_sweep_to_its_tenant(opened: Opener, alice: Person, omar: Person) -> None:
    case = opened()
    finish(case)
    press("assign", case, alice, to=str(omar.pk))
    advance_clock(minutes=29)
    assert wall.due_tenants() == []
    advance_clock(minutes=2)
    assert wall.due_tenants() == [case.tenant.pk]
    sweep(ring=lambda decision_id: None)
    assert (wall.due_tenants(), offers(case)) == ([], ["expired"])


def test_an_offer_whose_time_is_over_is_refused_before_the_sweep_has_come(
    lost: Case, alice: Person, omar: Person
) -> None:
    press("assign", lost, alice, to=str(omar.pk))
    advance_clock(minutes=31)
    with pytest.raises(Refused, match="the offer ended at"):
        press("accept", lost, omar)


def test_whoever_takes_the_task_meanwhile_ends_the_offer(
    lost: Case, alice: Person, omar: Person, tenant: Tenant
) -> None:
    press("assign", lost, alice, to=str(omar.pk))
    press("claim", lost, make_person("ada", tenant, "admin"))
    assert (held(lost)[2], offers(lost)) == ("Ada", ["withdrawn"])
    assert told(lost, "offer_withdrawn") == ["Ada took the task before Omar answered."]


def test_a_giver_who_extends_keeps_the_offer_and_one_who_releases_ends_it(
    lost: Case, alice: Person, omar: Person
) -> None:
    press("claim", lost, alice)
    press("assign", lost, alice, to=str(omar.pk))
    press("claim", lost, alice)
    assert offers(lost) == ["offered"]
    press("release", lost, alice)
    assert (held(lost), offers(lost)) == (("open", None, None), ["withdrawn"])


def test_the_summary_is_made_from_the_record_and_kept_with_the_offer(
    lost: Case, looks: Looks, alice: Person, omar: Person
) -> None:
    press("claim", lost, alice)
    decision = press("assign", lost, alice, to=str(omar.pk))
    with wall.within(lost.tenant.pk):
        facts = dict(Handover.objects.get().facts)
    assert decision.snapshot["to"] == "Omar"
    assert dict(decision.snapshot["known"]) == facts
    assert [*facts] == [
        "What failed", "Did anything change", "Is retry safe", "Done so far", "Left", "Deadlines"
    ]  # fmt: skip
    assert facts["What failed"].startswith("apply_credit: outcome unknown after dispatch.")
    assert facts["Did anything change"].startswith("Unknown: this call may have happened.")
    assert facts["Is retry safe"].startswith("It could happen twice.")
    assert "Alice chose “Claim” at" in facts["Done so far"]
    assert "1 call is not settled. Recommended: check what happened." in facts["Left"]
    assert re.match(r"The task is due (20\d\d-\d\d-\d\d )?\d\d:\d\d", facts["Deadlines"])


def test_one_takes_a_task_as_its_owner_without_asking_oneself(lost: Case, alice: Person) -> None:
    press("assign", lost, alice, to=str(alice.pk))
    assert (held(lost), offers(lost)) == (("open", "Alice", None), [])


def test_back_to_the_team_ends_the_claim(lost: Case, alice: Person, omar: Person) -> None:
    press("assign", lost, alice, to=str(omar.pk))
    press("accept", lost, omar)
    press("assign", lost, omar, to="")
    assert held(lost) == ("open", None, None)


@pytest.mark.parametrize("who", ["giver", "receiver"])
def test_F129_an_offer_does_not_outlast_whoever_made_it_or_got_it(
    lost: Case, alice: Person, omar: Person, who: str
) -> None:
    press("assign", lost, alice, to=str(omar.pk))
    leaving.deactivate(alice if who == "giver" else omar, DESK)
    assert offers(lost) == ["withdrawn"]
    assert told(lost, "offer_withdrawn") == [f"{'Alice' if who == 'giver' else 'Omar'} was deactivated."]
    assert not panel(lost, omar).verb("accept").allowed


def test_it_goes_to_nobody_outside_the_tenant_or_without_the_right(lost: Case, alice: Person) -> None:
    stranger = make_person("charlie", make_tenant("south"))
    viewer = make_person("bob", lost.tenant, "viewer")
    for receiver in (str(stranger.pk), str(viewer.pk), "nobody", str(lost.run_id)):
        with pytest.raises(Unusable, match="somebody of this tenant"):
            press("assign", lost, alice, to=receiver)
    with pytest.raises(Refused, match="your role does not include this"):
        press("assign", lost, viewer, to=str(alice.pk))
    with pytest.raises(ReasonMissing):
        press("assign", lost, alice, to="", reason=" ")
    assert held(lost) == ("open", None, None)


# --- somebody leaves (F129) ---------------------------------------------------------------------------------


def test_F129_a_claim_returns_to_the_queue_at_once_and_the_history_says_so(lost: Case, alice: Person) -> None:
    press("claim", lost, alice)
    assert leaving.deactivate(alice, DESK) == 1
    assert held(lost) == ("open", None, None)
    assert told(lost, "owner_left") == ["Alice was deactivated; the task is billing-support's."]
    assert panel(lost, alice).verbs
    assert not any(verb.allowed for verb in panel(lost, alice).verbs)


def test_F129_what_was_owned_falls_to_the_lead_of_the_team(lost: Case, alice: Person, omar: Person) -> None:
    name_lead(lost.tenant, lead="omar@people.example")
    press("assign", lost, alice, to=str(alice.pk))
    leaving.deactivate(alice, DESK)
    assert held(lost) == ("open", "Omar", None)


def test_F129_a_lead_who_left_as_well_leaves_it_to_the_team(lost: Case, alice: Person, omar: Person) -> None:
    name_lead(lost.tenant, lead="omar@people.example")
    leaving.deactivate(omar, DESK)
    press("assign", lost, alice, to=str(alice.pk))
    leaving.deactivate(alice, DESK)
    assert held(lost) == ("open", None, None)


def test_F129_the_sweep_gives_back_what_was_left_by_other_ways(lost: Case, alice: Person) -> None:
    press("claim", lost, alice)
    Person.objects.filter(pk=alice.pk).update(is_active=False)
    for _ in range(2):
        sweep(ring=lambda decision_id: None)
    assert held(lost) == ("open", None, None)
    assert kinds(lost).count("owner_left") == 1


@pytest.mark.parametrize("by_sweep", [False, True])
def test_F129_a_word_that_waits_for_a_second_person_does_not_outlast_who_gave_it(
    opened: Opener, alice: Person, omar: Person, by_sweep: bool
) -> None:
    case = opened(reconcile=None)
    lose_the_reply(case)
    press("attest", case, alice, outcome="present", reference="cr_77")
    if by_sweep:
        Person.objects.filter(pk=alice.pk).update(is_active=False)
        sweep(ring=lambda decision_id: None)
    else:
        assert leaving.deactivate(alice, DESK) == 1
    assert (held(case), evidence(case)) == (("open", None, None), [])
    assert told(case, "statement_withdrawn") == [
        "Alice attests that it happened (reference cr_77). Nobody confirmed it before Alice was deactivated; "
        "it counts for nothing."
    ]
    with pytest.raises(Refused):
        press("approve", case, omar)
    press("attest", case, omar, outcome="absent", reference="cr_78")
    assert evidence(case) == ["absent_final"]


def test_F129_a_word_stays_where_only_the_owner_of_its_task_left(lost: Case, alice: Person, omar: Person) -> None:
    press("assign", lost, omar, to=str(omar.pk))
    press("attest", lost, alice, outcome="present", reference="cr_77")
    leaving.deactivate(omar, DESK)
    assert lost.task().state == "awaiting_approval"
    assert told(lost, "statement_withdrawn") == []


def test_F129_leaving_twice_is_leaving_once(lost: Case, alice: Person) -> None:
    leaving.deactivate(alice, DESK)
    assert leaving.deactivate(alice, DESK) == 0


def test_the_only_admin_cannot_leave_before_there_is_another(tenant: Tenant) -> None:
    ada = make_person("ada", tenant, "admin")
    with pytest.raises(Trouble, match="the only admin of North"):
        call_command("deactivate_person", ada.email)
    make_person("mia", tenant, "admin")
    call_command("deactivate_person", ada.email)
    assert not Person.objects.get(pk=ada.pk).is_active
