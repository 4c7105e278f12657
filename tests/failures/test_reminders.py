"""An approval that nobody gives: asked for again, then of somebody else, then void; never given (F127, F128)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from pytest_django.fixtures import Settings

from recovery.models import HumanTask
from recovery.work.decisions import Overtaken, Refused
from recovery.work.sweep import sweep
from runs import wall
from runs.models import Event, Person, Tenant
from tests.factories import Case, advance_clock, make_person, propose
from tests.failures.conftest import Opener
from tests.recovery.stories import kinds, open_tasks, press, standing, tries

HOUR = {"requires_approval": True, "budgets": {"max_elapsed_seconds": 7200}, "approval_seconds": 3600}


@pytest.fixture
def case(opened: Opener) -> Case:
    """A credit that waits for an approval for an hour; it is asked for again after 30 and 48 minutes."""
    case = opened(**HOUR)
    propose(case)
    return case


def pass_time(**shift: float) -> None:
    advance_clock(**shift)
    for _ in range(2):  # a second sweep finds nothing more to do
        sweep(ring=lambda decision_id: None)


def asked(case: Case) -> tuple[int, str | None]:
    """How often it was asked for again, and who owns the question."""
    with wall.within(case.tenant.pk):
        task = HumanTask.objects.select_related("owner").get(pk=case.task().pk)
        return task.reminders, str(task.owner) if task.owner else None


def test_F127_it_is_asked_for_again_then_of_somebody_else_then_void(case: Case) -> None:
    make_person("ada", case.tenant, "admin")
    pass_time(minutes=29)
    assert asked(case) == (0, None)
    pass_time(minutes=2)
    assert asked(case) == (1, None)
    assert case.task().reminded_at is not None
    pass_time(minutes=18)
    assert asked(case) == (2, "Ada")
    pass_time(minutes=12)
    assert (tries(case), open_tasks(case)) == ([], [("decide_next", "approval_expired")])
    assert standing(case) == ("escalated", "needs_human", "approval_expired")
    assert [kinds(case).count(kind) for kind in ("reminded", "escalated_further", "approval_expired")] == [2, 1, 1]
    assert case.task().remind_at is None


def test_F127_the_team_names_who_is_asked_next(case: Case) -> None:
    make_person("ada", case.tenant, "admin")
    make_person("mia", case.tenant, "oncall")
    team = {"lead": "ada@people.example", "escalates_to": "mia@people.example"}
    with wall.within(case.tenant.pk):
        Tenant.objects.filter(pk=case.tenant.pk).update(policy={"teams": {"billing-support": team}})
    pass_time(minutes=49)
    pass_time(seconds=1)
    assert asked(case) == (2, "Mia")


def test_F127_an_approval_between_two_reminders_ends_them(case: Case, omar: Person) -> None:
    pass_time(minutes=31)
    press("approve", case, omar)
    pass_time(minutes=20)
    assert kinds(case).count("reminded") == 1
    assert propose(case).answer == "execute"


def test_F128_what_comes_too_late_is_refused_and_stands_in_the_history(case: Case, omar: Person) -> None:
    pass_time(minutes=61)
    with pytest.raises((Refused, Overtaken)):
        press("approve", case, omar)
    with wall.within(case.tenant.pk):
        refused = Event.objects.get(run_id=case.run_id, kind="refused", actor_kind="person")
    assert refused.data["verb"] == "approve"
    assert tries(case) == []


@pytest.mark.parametrize(
    ("shares", "after", "sent"), [([], 59, 0), ([0.1], 7, 1), ([0.9, 0.1], 7, 1), ([0.9, 0.1], 55, 2)]
)
def test_F127_the_workflow_says_how_often(opened: Opener, shares: list[float], after: int, sent: int) -> None:
    case = opened(**HOUR, approval_reminders=shares)
    propose(case)
    pass_time(minutes=after)
    pass_time(seconds=1)
    assert asked(case)[0] == sent


@pytest.fixture
def mailing(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A mail host is named; what is due after the commit is sent at once."""
    settings.SENDS_MAIL = True
    monkeypatch.setattr("django.db.transaction.on_commit", lambda then: then())
    return mail.outbox


def test_F127_who_may_approve_gets_mail_where_a_host_is_named(case: Case, omar: Person, mailing: list[Any]) -> None:
    make_person("bob", case.tenant, "viewer")
    pass_time(minutes=31)
    (sent,) = mailing
    assert (sent.bcc, sent.to) == (["omar@people.example"], [])
    assert sent.subject == f"T-{case.task().number} waits for an approval"
    assert "INV-20931" not in sent.body


@pytest.mark.parametrize("hosts", [["desk.example.org", "other.example.org"], []])
def test_F127_the_mail_leads_to_the_task_and_lets_nobody_in(
    case: Case, omar: Person, mailing: list[Any], settings: Settings, client: Client, hosts: list[str]
) -> None:
    settings.HOSTS = hosts
    pass_time(minutes=31)
    (sent,) = mailing
    link = sent.body.splitlines()[-1]
    base = "https://desk.example.org" if hosts else "http://"
    assert link.startswith(base)
    path = link[link.index("/", len("https://")) :]
    assert path == f"/tasks/{case.task().pk}/", "nothing in it speaks for its reader"
    assert client.get(path).status_code == 302


def test_F127_a_mail_host_that_is_down_keeps_no_row_from_being_written(
    case: Case, omar: Person, mailing: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(message: Any, fail_silently: bool = False) -> int:
        raise ConnectionRefusedError

    monkeypatch.setattr("django.core.mail.EmailMessage.send", down)
    pass_time(minutes=31)
    assert asked(case)[0] == 1


def test_a_reminder_is_counted_from_when_it_was_asked_for(case: Case) -> None:
    task = case.task()
    assert task.remind_at is not None
    assert abs(task.remind_at - task.opened_at - timedelta(minutes=30)) < timedelta(seconds=1)
