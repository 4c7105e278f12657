"""The database is restored from an older backup: what was sent since is found out, and never sent again (F068)."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connections

from console.embedded.errors import Trouble
from console.embedded.places import OWNER_ROLE
from recovery.answers import NotFound
from recovery.work import stops
from runs import wall
from runs.models import Action, Person, Tenant
from tests.conftest import point_at
from tests.factories import (
    RESULTS,
    Agent,
    Case,
    billing_manifest,
    make_person,
    open_run,
    propose,
    register,
    reply,
    report,
)
from tests.postgres import Cluster
from tests.recovery.stories import Looks, effects, look, open_tasks, present, press, script, standing, tries

Restore = Callable[[], None]
TAKEN = "2026-11-30T04:00:00+00:00"


@pytest.fixture
def ada(tenant: Tenant) -> Person:
    return make_person("ada", tenant, "admin")


@pytest.fixture
def case(agent: Agent, ada: Person) -> Case:
    register(agent, billing_manifest())
    return open_run(agent)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    return script(monkeypatch)


@pytest.fixture
def backup(cluster: Cluster) -> Callable[[], Restore]:
    """Copy the database as it stands; what is returned puts the copy in its place."""

    def backup() -> Restore:
        connections.close_all()
        copy = cluster.clone(settings.DATABASES["default"]["NAME"])
        return lambda: point_at(cluster, copy)

    return backup


def after_restore(taken: str = TAKEN) -> str:
    said = StringIO()
    call_command("after_restore", "north", backup_taken=taken, by=Person.objects.get(name="Ada").email, stdout=said)
    return said.getvalue()


def test_F068_a_call_that_the_backup_does_not_know_is_not_permitted_again(
    case: Case, backup: Callable[[], Restore]
) -> None:
    report(case, propose(case, "load_invoice"), reply(RESULTS["load_invoice"]), tool="load_invoice")
    restore = backup()
    permit = propose(case)
    report(case, permit, reply(RESULTS["apply_credit"]))
    restore()
    after_restore()
    assert effects(case) == []
    assert propose(case).answer != "execute"
    assert tries(case) == []
    assert standing(case) == ("escalated", "needs_human", "stopped_by_operator")
    assert len(open_tasks(case)) == 1
    with pytest.raises(NotFound):
        report(case, permit, reply(RESULTS["apply_credit"]))


def test_F068_a_call_that_may_have_been_sent_again_is_looked_up_before_anything_else(
    case: Case, backup: Callable[[], Restore], looks: Looks, cluster: Cluster
) -> None:
    report(case, propose(case), reply({"error": "busy"}, status=429, headers={"retry-after": "0"}))
    restore = backup()
    report(case, propose(case), reply(RESULTS["apply_credit"]))
    restore()
    after_restore()
    assert [(one.observed, one.layer == "after_restore") for one in tries(case)] == [
        ("transient_reject", False),
        ("unknown", True),
    ]
    looks.say(present("cr_1"))
    with psycopg.connect(cluster.dsn(OWNER_ROLE, settings.DATABASES["default"]["NAME"])) as owner:
        owner.execute("UPDATE rehearsal_clock SET shift = shift + interval '1 hour'")
    look(case)
    assert effects(case) == ["apply_credit"]
    assert len(tries(case)) == 2


def test_F068_a_call_in_flight_at_the_backup_is_unknown_and_its_old_fence_moves_nothing(
    case: Case, backup: Callable[[], Restore]
) -> None:
    permit = propose(case)
    restore = backup()
    restore()
    after_restore()
    with wall.within(case.tenant.pk):
        action = Action.objects.get(run_id=case.run_id)
    assert (action.state, action.fence > 1_000_000) == ("unknown", True)
    assert report(case, permit, reply({"error": "busy"}, status=429)).answer != "again"
    assert len(tries(case)) == 1


def test_F068_nothing_leaves_until_a_person_lifts_the_switch_and_lets_the_run_go_on(
    case: Case, backup: Callable[[], Restore], ada: Person
) -> None:
    backup()()
    assert "1 runs are with a person" in after_restore()
    assert "0 runs are with a person" in after_restore()
    press("resume", case, ada)
    assert propose(case).answer == "stop"
    with wall.within(case.tenant.pk):
        (switch,) = stops.listed(case.tenant.pk)
    stops.lift_stop(ada, case.tenant.pk, switch.pk, reason="Compared with the provider.")
    assert propose(case).answer == "execute"


@pytest.mark.parametrize(
    ("taken", "says"), [("yesterday", "must be a time"), ("2126-01-01T00:00:00Z", "in the future")]
)
def test_a_backup_is_taken_at_a_time_that_has_been(case: Case, taken: str, says: str) -> None:
    with pytest.raises(Trouble, match=says):
        after_restore(taken)
    assert standing(case)[0] == "planning"
