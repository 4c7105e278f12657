"""A task's clock: working hours, waits that stop it, what the sweep finds past its time, and the near deadline."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from steadyhand.contract import Observation

from recovery.models import HumanTask
from recovery.work.sweep import sweep
from runs import wall
from runs.models import Tenant
from tests.factories import Case, advance_clock, lose_the_reply, make_person, propose, report, turn
from tests.failures.conftest import Opener
from tests.recovery.stories import ABSENT, Looks, kinds, look, press, tick

ASKED = Observation(kind="exception", declared="needs_input", declared_field="account")
NINE_TO_FIVE = {"time_zone": "Europe/Berlin", "opens": "09:00", "closes": "17:00"}
BERLIN = ZoneInfo("Europe/Berlin")


def half_past_four_on_friday() -> datetime:
    """The next Friday, in Berlin."""
    today = now().astimezone(BERLIN).replace(hour=16, minute=30, second=0, microsecond=0)
    return today + timedelta(days=(4 - today.weekday()) % 7 or 7)


def set_clock(moment: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('app.now', %s, true)", [moment.isoformat()])


def promised(opened: Opener, **more: Any) -> Case:
    """A run whose manifest says how its tasks are timed."""
    case = opened(**more)
    turn(case)
    return case


def late(case: Case) -> HumanTask:
    sweep(ring=lambda decision_id: None)
    return case.task()


def test_time_is_counted_while_the_team_works(opened: Opener) -> None:
    friday = half_past_four_on_friday()
    set_clock(friday)
    case = promised(opened, sla_hours=NINE_TO_FIVE)
    task = lose_the_reply(case)
    monday = (friday + timedelta(days=3)).replace(hour=9, minute=30)
    assert task.due_at == monday, "half an hour is left on Friday, half on Monday"
    assert task.soon_at == monday - timedelta(minutes=15)


def test_the_tenants_hours_hold_where_the_workflow_names_none(opened: Opener, tenant: Tenant) -> None:
    with wall.within(tenant.pk):
        Tenant.objects.filter(pk=tenant.pk).update(policy={"sla_hours": NINE_TO_FIVE})
    friday = half_past_four_on_friday()
    set_clock(friday)
    assert lose_the_reply(promised(opened)).due_at == (friday + timedelta(days=3)).replace(hour=9, minute=30)


def test_a_task_past_its_time_is_marked_once_by_the_databases_clock(opened: Opener, looks: Looks) -> None:
    case = promised(opened, sla_seconds=600)
    lose_the_reply(case)
    advance_clock(minutes=9)
    assert late(case).breached_at is None
    advance_clock(minutes=2)
    breached = late(case).breached_at
    assert breached is not None
    advance_clock(minutes=5)
    assert late(case).breached_at == breached
    assert kinds(case).count("sla_breached") == 1


def test_the_clock_stands_still_while_the_requester_is_asked(opened: Opener, looks: Looks) -> None:
    case = promised(opened, sla_seconds=600, sla_pauses=["requester"])
    report(case, propose(case), ASKED)
    task = case.task()
    assert (task.pause, round(task.left_seconds or 0)) == ("requester", 600)
    advance_clock(minutes=30)
    assert late(case).breached_at is None
    advance_clock(minutes=40)  # the run's time is over, and with it the requester's: a colleague's question now
    tick()
    task = case.task()
    assert (task.reason_code, task.pause, task.paused_at) == ("input_deadline_passed", "", None)
    assert task.due_at is not None
    assert timedelta(minutes=9) < task.due_at - now() <= timedelta(minutes=10)
    assert [kind for kind in kinds(case) if kind.startswith("sla_")] == ["sla_paused", "sla_resumed"]


def test_without_a_declared_pause_the_clock_runs_on(opened: Opener, looks: Looks) -> None:
    case = promised(opened, sla_seconds=600)
    report(case, propose(case), ASKED)
    advance_clock(minutes=11)
    assert late(case).breached_at is not None


def test_a_snoozed_task_keeps_its_time_where_the_policy_says_so(opened: Opener, looks: Looks) -> None:
    case = promised(opened, sla_seconds=600, sla_pauses=["snoozed"], deadline_seconds=86400)
    lose_the_reply(case)
    mia = make_person("mia", case.tenant)
    press("snooze", case, mia, until=now() + timedelta(hours=2))
    assert case.task().pause == "snoozed"
    advance_clock(hours=1)
    assert late(case).breached_at is None


def test_a_task_that_is_settled_while_its_clock_stands_still_was_in_time(opened: Opener, looks: Looks) -> None:
    case = promised(opened, sla_seconds=600, sla_pauses=["snoozed"], deadline_seconds=86400)
    lose_the_reply(case)
    press("snooze", case, make_person("mia", case.tenant), until=now() + timedelta(hours=2))
    advance_clock(minutes=30)
    looks.say(ABSENT)
    look(case)
    task = case.task()
    assert (task.state, task.pause, task.left_seconds) == ("resolved", "", None)
    assert timedelta(minutes=9) < task.due_at - now() <= timedelta(minutes=10)


def test_a_breach_is_not_taken_back_by_a_pause(opened: Opener, looks: Looks) -> None:
    case = promised(opened, sla_seconds=600, sla_pauses=["snoozed"])
    lose_the_reply(case)
    advance_clock(minutes=11)
    press("snooze", case, make_person("mia", case.tenant), until=now() + timedelta(hours=2))
    assert case.task().pause == ""
    assert late(case).breached_at is not None


def test_the_customers_deadline_raises_the_priority_when_it_comes_near(opened: Opener, looks: Looks) -> None:
    case = promised(opened, deadline_seconds=7200, budgets={"max_elapsed_seconds": 7200})
    task = lose_the_reply(case)
    assert (task.consequence, task.priority_reason) == (2, "a write below the threshold")
    advance_clock(minutes=89)
    assert late(case).consequence == 2
    advance_clock(minutes=2)
    raised = late(case)
    assert (raised.consequence, raised.near_at) == (3, None)
    assert raised.priority_reason == "a write below the threshold; the customer's deadline is near"
    assert late(case).consequence == 3
    assert kinds(case).count("priority_raised") == 1


@pytest.mark.parametrize(
    ("promises", "rank", "words"),
    [
        ({}, 2, "a write below the threshold"),
        ({"irreversible": True}, 3, "it cannot be undone"),
        ({"deadline_seconds": 10}, 3, "a write below the threshold; the customer's deadline is near"),
    ],
)
def test_a_task_says_why_it_stands_where_it_stands(
    opened: Opener, promises: dict[str, Any], rank: int, words: str
) -> None:
    case = promised(opened, **promises)
    task = lose_the_reply(case)
    assert (task.consequence, task.priority_reason) == (rank, words)


def now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT app_now()")
        moment: datetime = cursor.fetchone()[0]
        return moment
