"""Changing somebody's roles: by an admin, with a reason, and where it gives something by the word of two (SEC-08)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from recovery import permissions
from recovery.models import RoleChange
from recovery.rules import membership
from recovery.rules.membership import Change
from recovery.work import roles
from runs import wall
from runs.models import Event, Person
from tests import factories
from tests.console.conftest import House
from tests.console.desk import said
from tests.factories import advance_clock

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]
LIST = "/settings/members/?tenant=nordlicht"


def where(person: Person) -> str:
    return f"/settings/members/{person.pk}/roles/?tenant=nordlicht"


def ask(client: Client, person: Person, *wanted: str, **changes: Any) -> Any:
    """Choose roles, read the sheet, and send it."""
    sheet = client.get(where(person), {"tenant": "nordlicht", "role": ["", *wanted]})
    marks = dict(re.findall(r'type="hidden" name="(key|before)" value="([^"]*)"', sheet.content.decode()))
    return client.post(where(person), {"role": ["", *wanted], "reason": "A new job.", **marks, **changes})


def held(house: House, name: str) -> list[str]:
    return permissions.roles_of(house.people[name]).get(house.nordlicht.pk, [])


def changes(house: House) -> list[RoleChange]:
    with wall.within(house.nordlicht.pk):
        return list(RoleChange.objects.select_related("by", "second").order_by("id"))


@pytest.fixture
def eve(house: House) -> Person:
    """A second admin."""
    house.people["eve"] = factories.make_person("eve", house.nordlicht, "admin")
    return house.people["eve"]


def test_the_sheet_says_what_the_roles_would_change_and_reading_it_changes_nothing(
    house: House, sign_in: SignIn
) -> None:
    ada, alice = sign_in("ada"), house.people["alice"]
    assert f'href="{where(alice)}"' in ada.get(LIST).content.decode()
    assert "What changes" not in said(ada.get(where(alice)))
    page = said(ada.get(where(alice), {"tenant": "nordlicht", "role": ["oncall"]}))
    assert "From support to oncall" in page
    assert "retry the same call where that is safe no yes" in page
    assert "comment yes yes" in page
    assert held(house, "alice") == ["support"]


def test_a_single_admin_changes_roles_at_once_and_the_history_says_so(house: House, sign_in: SignIn) -> None:
    assert ask(sign_in("ada"), house.people["alice"], "oncall").status_code == 303
    assert held(house, "alice") == ["oncall"]
    with wall.within(house.nordlicht.pk):
        told = Event.objects.get(kind="roles_changed")
    assert (told.actor, told.reason) == ("Ada", "A new job.")
    assert (told.data["before"], told.data["after"]) == (["support"], ["oncall"])


def test_SEC_08_what_gives_an_ability_waits_for_a_second_admin(house: House, sign_in: SignIn, eve: Person) -> None:
    ada, alice = sign_in("ada"), house.people["alice"]
    assert "Ask a second admin" in said(ada.get(where(alice), {"tenant": "nordlicht", "role": ["oncall"]}))
    assert ask(ada, alice, "oncall").status_code == 303
    assert held(house, "alice") == ["support"], "nothing holds before the second word"
    [row] = changes(house)
    own = said(ada.get(LIST))
    assert "from support to oncall A new job." in own
    assert "Another admin answers this." in own
    answer = f"/settings/role-changes/{row.pk}/?tenant=nordlicht"
    assert "neither who asked nor whom it is about" in said(ada.post(answer, {"answer": "agree"}, follow=True))
    assert held(house, "alice") == ["support"]
    assert f'action="{answer}"' in sign_in("eve").get(LIST).content.decode()
    assert sign_in("eve").post(answer, {"answer": "agree"}).status_code == 303
    assert held(house, "alice") == ["oncall"]
    assert [(one.result, one.second) for one in changes(house)] == [("done", eve)]
    assert "No such change waits any more." in said(sign_in("eve").post(answer, {"answer": "agree"}, follow=True))


def test_a_second_admin_may_decline_and_what_nobody_answers_runs_out(
    house: House, sign_in: SignIn, eve: Person
) -> None:
    ada, alice = sign_in("ada"), house.people["alice"]
    ask(ada, alice, "oncall")
    [row] = changes(house)
    sign_in("eve").post(f"/settings/role-changes/{row.pk}/?tenant=nordlicht", {"answer": "decline"})
    assert held(house, "alice") == ["support"]
    ask(ada, alice, "oncall")
    assert "another change of this person" in said(ask(ada, alice, "viewer"))
    advance_clock(hours=73)
    late = changes(house)[-1]
    with pytest.raises(roles.NoSuchMember):
        roles.answer(eve, house.nordlicht.pk, late.pk, agrees=True)
    assert ask(ada, alice, "viewer").status_code == 303, "taking away needs no second word"
    assert held(house, "alice") == ["viewer"]
    assert [one.result for one in changes(house)] == ["declined", "expired", "done"]


def test_who_asked_has_to_be_an_admin_still_when_it_is_agreed_to(house: House, sign_in: SignIn, eve: Person) -> None:
    ask(sign_in("ada"), house.people["alice"], "oncall")
    [row] = changes(house)
    permissions.set_roles(house.people["ada"], house.nordlicht, ["viewer"])
    with pytest.raises(roles.Refused, match="may not be done any more"):
        roles.answer(eve, house.nordlicht.pk, row.pk, agrees=True)
    assert held(house, "alice") == ["support"]


def test_PostgreSQL_lets_nobody_be_their_own_second_person(house: House, sign_in: SignIn, eve: Person) -> None:
    ask(sign_in("ada"), house.people["alice"], "oncall")
    [row] = changes(house)
    with wall.within(house.nordlicht.pk), pytest.raises(IntegrityError), transaction.atomic():
        RoleChange.objects.filter(pk=row.pk).update(second=row.by, result="done", ended_at=row.expires_at)


def test_the_last_admin_cannot_go_and_nobody_changes_their_own_roles(
    house: House, sign_in: SignIn, eve: Person
) -> None:
    ada, eves = sign_in("ada"), sign_in("eve")
    assert "nobody changes their own roles" in said(ask(ada, house.people["ada"], "admin", "auditor"))
    assert where(house.people["ada"]) not in ada.get(LIST).content.decode()
    assert ask(ada, eve, "viewer").status_code == 303
    assert ask(eves, house.people["ada"], "viewer").status_code == 403
    assert held(house, "ada") == ["admin"]


@pytest.mark.parametrize("name", ["alice", "omar", "bob", "nia"])
def test_who_does_not_administer_changes_nothing(house: House, sign_in: SignIn, name: str) -> None:
    client, bob = sign_in(name), house.people["omar" if name == "bob" else "bob"]
    assert client.get(where(bob)).status_code == 403
    form = {"role": ["admin"], "reason": "x", "key": uuid.uuid4().hex, "before": "viewer"}
    assert client.post(where(bob), form).status_code == 403
    assert changes(house) == []


def test_F122_a_stranger_and_a_missing_person_answer_alike(house: House, sign_in: SignIn) -> None:
    ada, missing = sign_in("ada"), Person(pk=uuid.uuid4())
    for person in (house.people["charlie"], missing):
        assert ada.get(where(person)).status_code == 404
        form = {"role": ["admin"], "reason": "x", "key": uuid.uuid4().hex, "before": ""}
        assert ada.post(where(person), form).status_code == 404
    assert ada.get(f"/settings/members/{house.people['bob'].pk}/roles/").status_code == 404, "no tenant was named"
    assert ada.post(f"/settings/role-changes/{uuid.uuid4()}/?tenant=harbor").status_code == 404


def test_F116_a_second_click_changes_them_once(house: House, sign_in: SignIn) -> None:
    ada, alice, key = sign_in("ada"), house.people["alice"], uuid.uuid4().hex
    assert [ask(ada, alice, "oncall", key=key, before="support").status_code for _ in range(2)] == [303, 303]
    assert len(changes(house)) == 1


def test_roles_that_moved_meanwhile_send_nothing_and_keep_what_was_typed(house: House, sign_in: SignIn) -> None:
    answer = ask(sign_in("ada"), house.people["alice"], "oncall", before="viewer")
    assert answer.status_code == 409
    assert "somebody changed these roles meanwhile" in said(answer)
    assert "A new job.</textarea>" in answer.content.decode()
    assert held(house, "alice") == ["support"]


@pytest.mark.parametrize(
    ("form", "status", "words"),
    [
        ({"reason": " "}, 422, "Say why, in a few words."),
        ({"key": "x"}, 400, "The form was not whole."),
        ({"role": ["owner"]}, 403, "there is no such role"),
        ({"role": ["support"]}, 403, "has already"),
    ],
)
def test_a_form_that_cannot_be_used_says_why(
    house: House, sign_in: SignIn, form: dict[str, Any], status: int, words: str
) -> None:
    answer = ask(sign_in("ada"), house.people["alice"], "oncall", **form)
    assert answer.status_code == status
    assert words in said(answer)
    assert held(house, "alice") == ["support"]


def test_no_role_at_all_ends_what_they_see_of_this_tenant_only(house: House, sign_in: SignIn) -> None:
    permissions.grant_role(house.people["alice"], house.harbor, "viewer")
    page = said(sign_in("ada").get(where(house.people["alice"]), {"tenant": "nordlicht", "role": [""]}))
    assert "no role: this tenant is not seen any more" in page
    assert ask(sign_in("ada"), house.people["alice"]).status_code == 303
    assert permissions.roles_of(house.people["alice"]) == {house.harbor.pk: ["viewer"]}


FREE = Change(
    may=True, about_oneself=False, is_active=True, known=True, differs=True, gained={"retry"}, lost=(),
    other_admins=1, admins_left=1,
)  # fmt: skip


def test_somebody_who_was_deactivated_is_given_nothing() -> None:
    gone = Change(**{**{name: getattr(FREE, name) for name in FREE.__dataclass_fields__}, "is_active": False})
    assert "deactivated" in membership.refusal(gone)
    assert membership.refusal(FREE) == ""
