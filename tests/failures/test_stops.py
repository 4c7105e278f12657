"""Stop switches: nothing leaves while one stands, and the same run goes on after it is lifted."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest

from recovery.work import stops
from runs import wall
from runs.models import Event, Person, Stop, Tenant
from runs.querysets import read_clock
from tests.factories import (
    Case,
    advance_clock,
    make_person,
    make_tenant,
    open_run,
    propose,
    rate_limit,
    reply,
    report,
    succeed,
)
from tests.failures.conftest import Opener
from tests.recovery.stories import actions, kinds, open_tasks, press, standing

STOPPED = ("stop", "stopped_by_operator")


@pytest.fixture
def case(opened: Opener) -> Case:
    return opened()


def stop(case: Case, by: Person, **form: Any) -> Stop:
    asked = {"scope": "everything", "mode": "halt", "reason": "The provider double-books."} | form
    return stops.set_stop(by, case.tenant.pk, **asked)


def lift(case: Case, by: Person, standing: Stop) -> None:
    stops.lift_stop(by, case.tenant.pk, standing.pk, reason="Fixed.")


def answer(case: Case, tool: str = "apply_credit", step: str = "") -> tuple[str, str | None]:
    permit = propose(case, tool, step=step)
    return permit.answer, permit.error.code if permit.error else None


def events(tenant: Tenant) -> list[tuple[str, str]]:
    with wall.within(tenant.pk):
        rows = Event.objects.filter(kind__startswith="stop_").order_by(*Event.IN_ORDER)
        return list(rows.values_list("kind", "reason"))


SWITCHES = [
    ("everything", ""),
    ("workflow", "billing-case"),
    ("tool", "apply_credit"),
    ("connector", "payments"),
    ("run", None),
]


@pytest.mark.parametrize(("scope", "name"), SWITCHES)
def test_a_halt_lets_nothing_leave_and_the_same_run_goes_on_afterwards(
    case: Case, omar: Person, scope: str, name: str | None
) -> None:
    switch = stop(case, omar, scope=scope, name=str(case.run_id) if name is None else name)
    before = standing(case)
    assert answer(case) == STOPPED
    assert (standing(case), actions(case), case.run.tool_calls) == (before, [], 0)
    lift(case, omar, switch)
    assert answer(case) == ("execute", None)


@pytest.mark.parametrize(("scope", "name"), [("tool", "apply_credit"), ("connector", "mail"), ("workflow", "other")])
def test_a_switch_stops_only_what_it_names(case: Case, omar: Person, scope: str, name: str) -> None:
    with wall.within(case.tenant.pk):
        Stop.objects.create(tenant=case.tenant, scope=scope, name=name, mode="halt", reason="x", by=omar)
    assert answer(case, "load_invoice") == ("execute", None)
    with wall.within(case.tenant.pk):
        Stop.objects.create(tenant=case.tenant, scope="run", name=str(uuid.uuid4()), mode="halt", reason="x", by=omar)
    assert answer(case, "load_invoice", step="again") == ("execute", None)


def test_a_switch_with_an_end_ends_by_itself(case: Case, omar: Person) -> None:
    with wall.within(case.tenant.pk):
        until = read_clock() + timedelta(minutes=5)
    stop(case, omar, until=until)
    assert answer(case) == STOPPED
    advance_clock(minutes=5)
    assert answer(case) == ("execute", None)


def test_what_is_recorded_is_still_told_while_everything_is_halted(case: Case, omar: Person) -> None:
    succeed(case, "load_invoice")
    stop(case, omar)
    assert answer(case, "load_invoice") == ("replay", None)
    assert answer(case, "load_invoice", step="new") == STOPPED


def test_a_report_of_what_was_sent_before_the_halt_is_taken(case: Case, omar: Person) -> None:
    permit = propose(case)
    stop(case, omar)
    assert report(case, permit, reply({"credit_id": "cr_1"})).answer == "result"


def test_a_retry_waits_for_the_switch_too(case: Case, omar: Person) -> None:
    rate_limit(case)
    switch = stop(case, omar, scope="tool", name="load_invoice")
    advance_clock(minutes=5)
    assert answer(case, "load_invoice") == STOPPED
    lift(case, omar, switch)
    assert answer(case, "load_invoice") == ("execute", None)


def test_a_drain_lets_open_runs_finish_and_stops_those_that_come_later(case: Case, omar: Person) -> None:
    advance_clock(seconds=1)
    stop(case, omar, mode="drain")
    assert answer(case) == ("execute", None)
    advance_clock(seconds=1)
    later = open_run(case.agent)
    assert answer(later) == STOPPED
    assert standing(later)[0] == "planning"


def test_quarantine_hands_every_run_that_asks_to_a_person(case: Case, omar: Person) -> None:
    switch = stop(case, omar, mode="quarantine", scope="tool", name="apply_credit")
    assert answer(case) == STOPPED
    assert standing(case) == ("escalated", "needs_human", "stopped_by_operator")
    assert open_tasks(case) == [("decide_next", "stopped_by_operator")]
    lift(case, omar, switch)
    assert answer(case)[0] == "wait"
    press("resume", case, omar)
    assert answer(case) == ("execute", None)


def test_of_several_switches_the_strictest_answers(case: Case, omar: Person) -> None:
    stop(case, omar)
    stop(case, omar, mode="quarantine", scope="run", name=str(case.run_id))
    assert answer(case) == STOPPED
    assert standing(case)[0] == "escalated"


def test_another_tenants_switch_stops_nobody_here(case: Case, omar: Person) -> None:
    south = make_tenant("south")
    stops.set_stop(
        make_person("charlie", south, "oncall"), south.pk, scope="everything", mode="halt", reason="Theirs."
    )
    assert answer(case) == ("execute", None)
    assert kinds(case)[-1] == "permitted"


# --- who, and what the history says -------------------------------------------------------------------------


def test_setting_and_lifting_stand_in_the_history(case: Case, omar: Person) -> None:
    lift(case, omar, stop(case, omar))
    assert events(case.tenant) == [("stop_set", "The provider double-books."), ("stop_lifted", "Fixed.")]


def test_a_switch_is_lifted_once(case: Case, omar: Person) -> None:
    switch = stop(case, omar)
    lift(case, omar, switch)
    with pytest.raises(stops.NoSuchStop):
        lift(case, omar, switch)
    assert len(events(case.tenant)) == 2


def test_support_may_stop_a_single_run_and_nothing_more(case: Case, alice: Person) -> None:
    with pytest.raises(stops.Refused, match="single runs"):
        stop(case, alice)
    stop(case, alice, scope="run", name=str(case.run_id))
    assert answer(case) == STOPPED


def test_support_does_not_lift_what_on_call_has_set(case: Case, alice: Person, omar: Person) -> None:
    switch = stop(case, omar)
    with pytest.raises(stops.Refused):
        lift(case, alice, switch)
    assert answer(case) == STOPPED


@pytest.mark.parametrize("role", ["viewer", "auditor"])
def test_who_only_looks_stops_nothing(case: Case, role: str) -> None:
    with pytest.raises(stops.Refused):
        stop(case, make_person("bob", case.tenant, role), scope="run", name=str(case.run_id))


def test_a_stranger_neither_sets_nor_lifts(case: Case, omar: Person) -> None:
    charlie = make_person("charlie", make_tenant("south"), "oncall")
    switch = stop(case, omar)
    with pytest.raises(stops.Refused):
        stop(case, charlie)
    with pytest.raises(stops.Refused):
        lift(case, charlie, switch)


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"scope": "galaxy"}, "scope"),
        ({"mode": "pause"}, "mode"),
        ({"reason": "  "}, "reason"),
        ({"name": "apply_credit"}, "name"),
        ({"scope": "tool", "name": "apply_credti"}, "name"),
        ({"scope": "workflow", "name": "other"}, "name"),
        ({"scope": "connector", "name": ""}, "name"),
        ({"scope": "run", "name": "not-an-id"}, "name"),
        ({"scope": "run", "name": str(uuid.uuid4())}, "name"),
    ],
)
def test_a_switch_that_would_stop_nothing_is_not_set(
    case: Case, omar: Person, form: dict[str, str], field: str
) -> None:
    with pytest.raises(stops.Refused) as refused:
        stop(case, omar, **form)
    assert refused.value.field == field
    assert events(case.tenant) == []


def test_an_end_that_has_passed_is_refused(case: Case, omar: Person) -> None:
    with wall.within(case.tenant.pk):
        until = read_clock()
    with pytest.raises(stops.Refused, match="passed already"):
        stop(case, omar, until=until)
