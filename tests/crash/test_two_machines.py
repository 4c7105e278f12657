"""Two workers on two machines: one is cut off in its work and comes back; nothing is lost, nothing done twice."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from recovery.models import Decision
from runs import wall
from runs.models import Effect
from tests.crash.case import CreditCase, taken_back
from tests.crash.machines import Machines, machines
from tests.crash.network import CannotRun, network
from tests.crash.test_deploys import looks_arrived
from tests.crash.test_every_point import credit_only, lose_the_reply, take_back, voids
from tests.postgres import Cluster
from tests.stack import wait_for
from tests.stories.billing import Agent
from tests.stories.conftest import product
from tests.stories.telling import action_state, invoice

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=["valkey", "rabbitmq"])
def hub(
    request: pytest.FixtureRequest, cluster: Cluster, template: str, django_db_blocker: DjangoDbBlocker
) -> Iterator[Machines]:
    """A hub with a broker of each kind; where it cannot be made, that is a failure that says why."""
    try:
        with network() as lines:
            run = functools.partial(machines, network=lines, kind=request.param)
            with product(cluster, template, django_db_blocker, run=run) as hub:
                yield hub
    except CannotRun as missing:
        pytest.fail(str(missing), pytrace=False)


@pytest.fixture
def agent(hub: Machines) -> Agent:
    return Agent(hub.sandbox_url, invoice())


def slow(hub: Machines, operation: str, kind: str, **field: str) -> None:
    """The next request of this sort takes longer than it takes to cut a line."""
    hub.sandbox.fault("payments", operation, [{"do": "delay", "seconds": 3}], kind=kind, field=field)


def test_F007_F015_a_worker_cut_off_in_its_look_and_in_its_send_is_replaced_and_does_nothing_twice(
    hub: Machines, agent: Agent
) -> None:
    look_cut_off(CreditCase(hub, agent))
    send_cut_off(CreditCase(hub, Agent(hub.sandbox_url, invoice()), changes={"made": taken_back}))
    works_alone(hub, "second", CreditCase(hub, Agent(hub.sandbox_url, invoice())))


def look_cut_off(case: CreditCase) -> None:
    hub = case.stack
    assert isinstance(hub, Machines)
    lose_the_reply(case)
    slow(hub, "credits", "read", action_id=case.calls()[0].action_id)
    hub.start_worker_on("second")
    hub.later(5)
    wait_for(lambda: bool(looks_arrived(case)), "the look at the provider")
    hub.network.cut("second")
    hub.start_worker_on("first")
    hub.later(60)
    wait_for(lambda: action_state(hub, case.reference) == "succeeded", "the first worker to conclude")
    hub.network.heal("second")
    case.go_on()
    case.holds()
    with wall.within(hub.tenant.pk):
        assert Effect.objects.filter(run=case.run, step="apply_credit").count() == 1
    assert [one.number for one in case.tries()] == [1]


def send_cut_off(case: CreditCase) -> None:
    """Both work; whichever has sent the undo is cut off before it hears the answer."""
    hub = case.stack
    assert isinstance(hub, Machines)
    credited = credit_only(case)
    hub.kill("first")
    slow(hub, "voids", "write", credit=credited)
    before = len(hub.sandbox.arrivals(operation="voids", method="POST"))
    take_back(case)
    wait_for(lambda: len(hub.sandbox.arrivals(operation="voids", method="POST")) > before, "the void")
    hub.network.cut("second")
    hub.start_worker_on("first")
    case.go_on(lambda: case.run.ended_at is not None)
    hub.network.heal("second")
    case.holds()
    assert len(voids(hub, credited)) == 1
    assert len(hub.sandbox.arrivals(operation="voids", method="POST")) == before + 1
    assert [one.number for one in case.tries("void_credit")] == [1]


def works_alone(hub: Machines, which: str, case: CreditCase) -> None:
    """The machine that was cut off does the next case by itself."""
    hub.kill("first")
    lose_the_reply(case)
    hub.later(60)
    wait_for(lambda: action_state(hub, case.reference) == "succeeded", f"the {which} worker to look")
    case.go_on()
    case.holds()
    with wall.within(hub.tenant.pk):
        assert not Decision.objects.filter(state__in=("requested", "running")).exists()
