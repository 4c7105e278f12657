"""manage.py stop: the switch for whoever has a shell and no browser."""

from __future__ import annotations

import io
import re

import pytest
from django.core.management import call_command

from console.embedded.errors import Trouble
from runs import wall
from runs.models import Event, Tenant
from tests.factories import Case, advance_clock, make_client, make_person, make_tenant, open_run, propose, register

BY = ("--by", "omar@people.example", "--reason", "The provider double-books.")


def said(*arguments: str) -> str:
    out = io.StringIO()
    call_command("stop", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def north(db: None) -> Tenant:
    tenant = make_tenant("north")
    make_person("omar", tenant, "oncall")
    make_person("alice", tenant)
    return tenant


@pytest.fixture
def case(north: Tenant) -> Case:
    agent = make_client(north)
    register(agent)
    return open_run(agent)


def test_a_switch_is_set_listed_and_lifted(case: Case) -> None:
    assert said("list", "north") == "Nothing is stopped in North.\n"
    text = said("set", "north", "halt", "tool", "apply_credit", *BY)
    assert "halt tool apply_credit, by Omar: The provider double-books." in text
    assert propose(case).answer == "stop"
    assert said("list", "north") == text.removeprefix("Set. ")
    number = re.findall(r"[0-9a-f-]{36}", text)[0]
    assert said("lift", "north", number, *BY).startswith("Lifted.")
    assert propose(case).answer == "execute"


def test_the_history_says_who_and_from_which_shell(case: Case) -> None:
    said("set", "north", "halt", "everything", *BY)
    with wall.within(case.tenant.pk):
        event = Event.objects.get(kind="stop_set")
    assert event.actor == "Omar"
    assert event.request_id.endswith("(command line)") or event.request_id == "command line"


def test_a_switch_for_some_minutes_ends_by_itself(case: Case) -> None:
    assert " UTC, by Omar" in said("set", "north", "halt", "everything", "--minutes", "5", *BY)
    advance_clock(minutes=5)
    assert said("list", "north") == "Nothing is stopped in North.\n"
    assert propose(case).answer == "execute"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("set", "north", "halt", "tool", "apply_credti", *BY), "no workflow declares such a tool"),
        (("set", "north", "halt", "everything", "--minutes", "0", *BY), "at least one minute"),
        (("set", "north", "halt", "everything", "--by", "nobody@people.example", "--reason", "x"), "Nobody signs in"),
        (("set", "north", "halt", "everything", "--by", "alice@people.example", "--reason", "x"), "your role"),
        (("lift", "north", "7", *BY), "No such switch stands"),
        (("lift", "north", "01890000-0000-7000-8000-000000000000", *BY), "No such switch stands"),
        (("list", "south"), "There is no tenant 'south'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(case: Case, arguments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(Trouble, match=sentence):
        said(*arguments)
    assert propose(case).answer == "execute"
