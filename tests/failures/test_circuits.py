"""A dependency in trouble is given a rest: who waits, who tries it again, and how the work goes on (F108 to F115)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from steadyhand.contract import Permit

from recovery.connectors.base import Finding, failed
from recovery.work import worker
from recovery.work.sweep import sweep
from runs import wall
from runs.models import Circuit, CircuitSlot, Event, Tenant
from tests.factories import (
    RESULTS,
    Agent,
    Case,
    advance_clock,
    billing_manifest,
    make_client,
    make_tenant,
    open_run,
    propose,
    register,
    reply,
    report,
    succeed,
    timed_out,
    turn,
)
from tests.recovery.stories import ABSENT, Looks, kinds, look, open_tasks, present, standing, tick, tries, work

pytestmark = [pytest.mark.failures, pytest.mark.django_db]

DOWN = reply({"error": "down"}, status=503)
REFUSED = reply({"error": {"code": "invoice_closed"}}, status=422)
KEY = {"kind": "key", "header": "Idempotency-Key", "retention_seconds": "unlimited"}
PAYMENTS = "connector:payments"
BROKEN = failed("The look-up answered 503.", fault=True)


@pytest.fixture
def keyed(agent: Agent) -> Agent:
    """Credits carry a key, and three faults of the connector open its circuit."""
    return registered(agent, idempotency=KEY)


@pytest.fixture
def unkeyed(agent: Agent) -> Agent:
    return registered(agent)


def registered(agent: Agent, *, circuit: dict[str, Any] | None = None, health: str = "", **promises: Any) -> Agent:
    made = billing_manifest(**promises)
    payments = made["connectors"]["payments"]
    payments["circuit"] = {"min_calls": 3, "successes": 2, **(circuit or {})}
    if health:
        payments["health"] = health
    register(agent, made)
    return agent


def credit(case: Case) -> Permit:
    return propose(case, "apply_credit")


def fail(agent: Agent, times: int, observation: Any = DOWN) -> list[Case]:
    cases = [open_run(agent) for _ in range(times)]
    for case in cases:
        report(case, credit(case), observation, tool="apply_credit")
    return cases


def circuit(agent: Agent, name: str = PAYMENTS) -> Circuit:
    with wall.within(agent.tenant.pk):
        return Circuit.objects.get(name=name)


def state(agent: Agent) -> str:
    return circuit(agent).state


def told(agent: Agent) -> list[str]:
    """What the history says of circuits, in order."""
    with wall.within(agent.tenant.pk):
        found = Event.objects.filter(run=None, kind__startswith="circuit").order_by(*Event.IN_ORDER)
        return [kind.removeprefix("circuit_") for kind in found.values_list("kind", flat=True)]


def outlast_the_pause() -> None:
    advance_clock(seconds=16)


def settle_them(cases: list[Case]) -> None:
    """Nothing of an earlier outage asks for anything any more."""
    for case in cases:
        with wall.within(case.tenant.pk):
            case.run.actions.update(due_at=None)


# --- opening ------------------------------------------------------------------------------------------------


def test_an_untroubled_connector_has_no_row(keyed: Agent) -> None:
    succeed(open_run(keyed))
    report(case := open_run(keyed), credit(case), REFUSED, tool="apply_credit")
    with wall.within(keyed.tenant.pk):
        assert not Circuit.objects.exists()


@pytest.mark.parametrize("observation", [DOWN, timed_out(), reply({}, status=500)])
def test_F109_faults_of_the_dependency_open_it_and_nothing_is_called_while_it_is_open(
    keyed: Agent, observation: Any
) -> None:
    fail(keyed, 2, observation)
    assert state(keyed) == "closed"
    fail(keyed, 1, observation)
    assert state(keyed) == "open"
    assert told(keyed) == ["opened"]
    case = open_run(keyed)
    permit = credit(case)
    assert (permit.answer, permit.error.code, permit.error.retryable) == ("wait", "circuit_open", True)
    assert 15 <= permit.wait_seconds <= 31
    assert tries(case) == []
    assert standing(case) == ("recovering", "retryable", "circuit_open")
    assert case.run.tool_calls == 0, "a call that was not made is not counted"


def test_calls_that_went_well_keep_it_closed(keyed: Agent) -> None:
    for _ in range(4):
        succeed(open_run(keyed))
    fail(keyed, 3)
    assert state(keyed) == "closed"
    fail(keyed, 1)
    assert state(keyed) == "open"
    assert (circuit(keyed).volume, len(circuit(keyed).faults)) == (8, 4)


def test_faults_of_long_ago_do_not_count(keyed: Agent) -> None:
    fail(keyed, 2)
    advance_clock(seconds=31)
    fail(keyed, 2)
    assert state(keyed) == "closed"
    assert len(circuit(keyed).faults) == 2


def test_another_connector_and_a_read_without_one_go_on(keyed: Agent) -> None:
    fail(keyed, 3)
    case = open_run(keyed)
    succeed(case, "load_invoice")
    assert propose(case, "draft_reply").answer == "execute"


def test_a_tool_without_a_connector_is_its_own_circuit(keyed: Agent) -> None:
    for _ in range(10):
        report(case := open_run(keyed), propose(case, "load_invoice"), DOWN, tool="load_invoice")
    assert circuit(keyed, "tool:load_invoice").state == "open"
    waiting = open_run(keyed)
    assert propose(waiting, "load_invoice").error.code == "circuit_open"
    assert credit(waiting).answer == "execute"


def test_accounts_at_one_connector_have_circuits_of_their_own(agent: Agent) -> None:
    made = billing_manifest(idempotency=KEY)
    made["connectors"]["payments"]["circuit"] = {"min_calls": 3}
    for name in ("north", "south"):
        next(tool for tool in made["tools"] if tool["name"] == "apply_credit")["connection"] = name
        register(agent, made, name=name)
    for _ in range(3):
        case = open_run(agent, workflow="north")
        report(case, credit(case), DOWN, tool="apply_credit")
    assert credit(open_run(agent, workflow="north")).answer == "wait"
    assert credit(open_run(agent, workflow="south")).answer == "execute"


# --- F113: whose trouble ------------------------------------------------------------------------------------


def test_F113_refusals_and_limits_open_nothing(keyed: Agent) -> None:
    for observation in (REFUSED, reply({}, status=404), reply({}, status=429), reply({}, status=401)):
        fail(keyed, 5, observation)
    with wall.within(keyed.tenant.pk):
        assert not Circuit.objects.exists()


@pytest.fixture
def south(tenant: Tenant) -> Agent:
    return registered(make_client(make_tenant("south")), idempotency=KEY)


def test_F113_another_tenant_is_unaffected(keyed: Agent, south: Agent) -> None:
    fail(keyed, 3)
    assert credit(open_run(keyed)).answer == "wait"
    assert credit(open_run(south)).answer == "execute"
    with wall.within(south.tenant.pk):
        assert not Circuit.objects.exists()


# --- half open ----------------------------------------------------------------------------------------------


def test_F110_one_trial_at_a_time_and_two_that_went_well_close_it(keyed: Agent) -> None:
    settle_them(fail(keyed, 3))
    outlast_the_pause()
    first, second = open_run(keyed), open_run(keyed)
    trial = credit(first)
    assert (trial.answer, state(keyed)) == ("execute", "half_open")
    assert credit(second).error.code == "circuit_open"
    report(first, trial, reply(RESULTS["apply_credit"]), tool="apply_credit")
    assert state(keyed) == "half_open"
    advance_clock(seconds=16)
    trial = credit(second)
    report(second, trial, reply(RESULTS["apply_credit"]), tool="apply_credit")
    assert state(keyed) == "closed"
    assert told(keyed) == ["opened", "half_open", "closed"]
    assert standing(first)[0] == standing(second)[0] == "executing"


def test_F112_a_trial_that_fails_opens_it_again_for_twice_as_long(keyed: Agent) -> None:
    settle_them(fail(keyed, 3))
    pauses = [circuit(keyed).cooldown_seconds]
    for _ in range(5):
        advance_clock(seconds=circuit(keyed).cooldown_seconds + 1)
        settle_them(fail(keyed, 1))
        assert state(keyed) == "open"
        pauses.append(circuit(keyed).cooldown_seconds)
    assert pauses == [15, 30, 60, 120, 240, 300]


def test_F111_a_trial_whose_holder_dies_gives_its_slot_back_when_its_lease_ends(keyed: Agent) -> None:
    settle_them(fail(keyed, 3))
    outlast_the_pause()
    dead = open_run(keyed)
    assert credit(dead).answer == "execute"
    advance_clock(seconds=46)
    other = open_run(keyed)
    trial = credit(other)
    assert trial.answer == "execute"
    report(other, trial, reply(RESULTS["apply_credit"]), tool="apply_credit")
    with wall.within(keyed.tenant.pk):
        ends = CircuitSlot.objects.order_by("id").values_list("went_well", flat=True)
        assert list(ends) == [None, True]
    tick()
    assert standing(dead)[0] in ("verifying", "recovering")


def test_the_slots_of_trials_that_are_over_go_with_the_next_trip_and_one_that_is_under_way_stays(
    agent: Agent,
) -> None:
    keyed = registered(agent, idempotency=KEY, circuit={"slots": 2})
    settle_them(fail(keyed, 3))
    for _ in range(3):
        advance_clock(seconds=circuit(keyed).cooldown_seconds + 1)
        settle_them(fail(keyed, 1))
    assert slots(keyed) == []
    advance_clock(seconds=circuit(keyed).cooldown_seconds + 1)
    under_way, failing = open_run(keyed), open_run(keyed)
    permits = [credit(under_way), credit(failing)]
    assert [one.answer for one in permits] == ["execute", "execute"]
    report(failing, permits[1], reply({}, status=503), tool="apply_credit")
    assert state(keyed) == "open"
    assert slots(keyed) == [under_way.run_id]


def slots(agent: Agent) -> list[uuid.UUID]:
    with wall.within(agent.tenant.pk):
        return list(CircuitSlot.objects.values_list("attempt__run_id", flat=True))


def test_F114_a_write_without_a_key_is_no_trial_and_the_worker_tries_instead(unkeyed: Agent, looks: Looks) -> None:
    looks.say(ABSENT)
    settle_them(fail(unkeyed, 3))
    waiting = open_run(unkeyed)
    assert credit(waiting).answer == "wait"
    advance_clock(seconds=31)
    for number in (1, 2):
        assert credit(waiting).answer == "wait", "the circuit is half open at best"
        work(unkeyed.tenant.pk)
        assert len(looks.asked) == number
        advance_clock(seconds=31)
    assert state(unkeyed) == "closed"
    assert tries(waiting) == []
    assert credit(waiting).answer == "execute"
    assert "look_started" not in kinds(waiting)


def test_F114_a_trial_that_fails_keeps_it_open(unkeyed: Agent, looks: Looks) -> None:
    looks.say(BROKEN)
    settle_them(fail(unkeyed, 3))
    waiting = open_run(unkeyed)
    credit(waiting)
    advance_clock(seconds=31)
    credit(waiting)
    work(unkeyed.tenant.pk)
    assert (state(unkeyed), circuit(unkeyed).cooldown_seconds) == ("open", 30)


def test_F114_the_worker_prefers_the_connectors_health(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def read(question: Any, path: str) -> Finding:
        asked.append(path)
        return Finding("absent", "The health read answered 204.")

    monkeypatch.setattr(worker.health, "read", read)
    registered(agent, health="/up")
    settle_them(fail(agent, 3))
    waiting = open_run(agent)
    credit(waiting)
    advance_clock(seconds=31)
    credit(waiting)
    work(agent.tenant.pk)
    assert asked == ["/up"]


def test_F114_where_nothing_harmless_goes_it_never_opens_but_the_record_says_what_is_wrong(keyed: Agent) -> None:
    for _ in range(12):
        case = open_run(keyed)
        report(case, propose(case, "void_credit"), DOWN, tool="void_credit")
    assert circuit(keyed, "tool:void_credit").state == "closed"
    assert told(keyed) == ["faulty"]


# --- F115: finding out --------------------------------------------------------------------------------------


def test_F115_a_look_waits_for_its_circuit_its_task_is_open_and_its_clock_runs(unkeyed: Agent, looks: Looks) -> None:
    [lost, *others] = fail(unkeyed, 3, timed_out())
    settle_them(others)
    assert state(unkeyed) == "open"
    before = lost.task()
    advance_clock(seconds=6)
    look(lost)
    assert looks.asked == []
    assert lost.task().due_at == before.due_at, "the customer's clock runs on"
    assert open_tasks(lost) == [("reconcile_write", "external_outcome_unknown")]
    assert lost.action().due_at is not None
    looks.say(present("cr_7"))
    advance_clock(seconds=40)
    look(lost)
    assert standing(lost)[0] == "executing"
    assert state(unkeyed) == "half_open", "the look was the first trial"


def test_F115_a_look_that_was_ordered_before_it_opened_is_not_made_and_not_forgotten(
    unkeyed: Agent, looks: Looks
) -> None:
    [lost] = fail(unkeyed, 1, timed_out())
    advance_clock(seconds=6)
    sweep(ring=lambda decision_id: None)
    settle_them(fail(unkeyed, 2, DOWN))
    assert state(unkeyed) == "open"
    work(unkeyed.tenant.pk)
    assert looks.asked == []
    assert lost.action().due_at > circuit(unkeyed).until
    assert open_tasks(lost) == [("reconcile_write", "external_outcome_unknown")]


def test_F115_look_ups_that_fail_count_too(unkeyed: Agent, looks: Looks) -> None:
    looks.say(failed("The look-up's answer is not JSON."), BROKEN)
    lost = fail(unkeyed, 2, timed_out())
    assert state(unkeyed) == "closed"
    advance_clock(seconds=6)
    for case in lost:
        look(case)
    assert len(looks.asked) == 2
    assert state(unkeyed) == "open"
    assert circuit(unkeyed).reason == BROKEN.fact


def test_F109_a_wait_that_would_outlast_the_runs_time_is_a_persons_at_once(keyed: Agent) -> None:
    fail(keyed, 3)
    late = open_run(keyed, deadline_at=_soon(keyed))
    assert credit(late).answer == "wait"
    assert standing(late) == ("escalated", "needs_human", "deadline_exceeded")
    assert tries(late) == []


def _soon(agent: Agent) -> Any:
    with wall.within(agent.tenant.pk):
        return circuit(agent).until


# --- F108: going on -----------------------------------------------------------------------------------------


def recover(agent: Agent) -> None:
    outlast_the_pause()
    for _ in range(2):
        succeed(open_run(agent))
        advance_clock(seconds=1)
    assert state(agent) == "closed"


def test_F108_what_waited_goes_under_a_budget_and_new_work_at_once(agent: Agent) -> None:
    registered(agent, idempotency=KEY, circuit={"retries_per_second": 2})
    settle_them(fail(agent, 3))
    waiting = [open_run(agent) for _ in range(6)]
    assert {credit(case).answer for case in waiting} == {"wait"}
    recover(agent)
    settle_them(waiting)
    given = [credit(case).answer for case in waiting]
    assert given == ["execute", "execute", "wait", "wait", "wait", "wait"]
    assert credit(open_run(agent)).answer == "execute"
    held = waiting[2]
    assert held.action().reason_code == "circuit_open"
    advance_clock(seconds=62)
    assert credit(held).answer == "execute"


def test_a_run_that_waited_goes_on_by_itself_once_it_is_asked_for(keyed: Agent) -> None:
    settle_them(fail(keyed, 3))
    case = open_run(keyed)
    turn(case)
    credit(case)
    advance_clock(seconds=31)
    tick()
    assert "ready" in kinds(case)
    succeed(case)
    assert [attempt.circuit for attempt in tries(case)] == [PAYMENTS]
