"""Settings, members: who has which role, for those who may see it, and what each role may do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from allauth.mfa.models import Authenticator
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.builders import members
from recovery import permissions
from runs.models import ABILITIES, Person
from tests import factories
from tests.console.conftest import House
from tests.console.desk import said
from tests.console.test_queue import OVERHEAD

pytestmark = pytest.mark.django_db
SignIn = Callable[[str], Client]
LIST = "/settings/members/"


@pytest.mark.parametrize("name", ["ada", "nia"])
def test_who_administers_or_audits_sees_everybody_of_the_tenant_and_nobody_else(
    house: House, sign_in: SignIn, name: str
) -> None:
    page = said(sign_in(name).get(LIST))
    assert "5 people" in page
    for person, role in (("Alice", "support"), ("Omar", "oncall"), ("Ada", "admin"), ("Nia", "auditor")):
        assert person in page
        assert role in page
    assert "charlie" not in page.lower()
    assert 'href="/settings/members/"' in sign_in(name).get("/settings/workflows/").content.decode()


@pytest.mark.parametrize("name", ["alice", "omar", "bob"])
def test_others_are_told_so_and_get_no_link(house: House, sign_in: SignIn, name: str) -> None:
    answer = sign_in(name).get(LIST)
    assert answer.status_code == 403
    assert "only who administers or audits a tenant sees its members" in said(answer)
    assert "nia@" not in answer.content.decode()
    assert "/settings/members/" not in sign_in(name).get("/settings/workflows/").content.decode()


def test_a_role_elsewhere_does_not_show_the_members_here(house: House, sign_in: SignIn) -> None:
    permissions.grant_role(house.people["ada"], house.harbor, "viewer")
    page = said(sign_in("ada").get(LIST))
    assert "charlie" not in page.lower()
    assert page.count("ada@people.example") == 1
    assert sign_in("ada").get(f"{LIST}?tenant=harbor").status_code == 403
    assert sign_in("alice").get(f"{LIST}?tenant=harbor").status_code == 404


def test_sign_in_second_factor_and_access_are_said(house: House, sign_in: SignIn) -> None:
    omar, bob = house.people["omar"], house.people["bob"]
    Authenticator.objects.create(user=omar, type=Authenticator.Type.TOTP, data={})
    Authenticator.objects.create(user=bob, type=Authenticator.Type.RECOVERY_CODES, data={})
    Person.objects.filter(pk=bob.pk).update(is_active=False)
    page = said(sign_in("ada").get(LIST))
    assert page.count("Set up") == 1, "codes for when it is lost are none"
    assert page.count("Deactivated") == 1
    assert page.count("Active") == 4
    assert page.count("never signed in") == 4
    assert "Ada you" in page


def test_each_ability_is_said_for_each_role(house: House, sign_in: SignIn) -> None:
    assert set(permissions.WORDS) == set(ABILITIES)
    html = sign_in("ada").get(LIST).content.decode()
    table = html[html.index('id="abilities"') :]
    held = sum(len(abilities) for abilities in permissions.ROLES.values())
    assert table.count("<span>yes</span>") == held
    assert table.count("<span>no</span>") == len(ABILITIES) * len(permissions.ROLES) - held


def test_the_list_is_bounded_and_goes_on(house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "PAGE", 2)
    ada, seen, where = sign_in("ada"), [], LIST
    for _ in range(3):
        html = ada.get(where).content.decode()
        seen += [name for name in ("ada@", "alice@", "bob@", "nia@", "omar@") if name in html]
        where = LIST + html[html.index("?after=") :].split('"')[0] if "?after=" in html else ""
    assert seen == ["ada@", "alice@", "bob@", "nia@", "omar@"]
    assert where == ""
    assert ada.get(f"{LIST}?after=x").status_code == 404


def test_more_people_cost_no_more_questions(house: House, sign_in: SignIn) -> None:
    ada = sign_in("ada")
    ada.get(LIST)
    with CaptureQueriesContext(connection) as few:
        ada.get(LIST)
    for number in range(5):
        factories.make_person(f"zoe{number}", house.nordlicht, "viewer")
    with CaptureQueriesContext(connection) as many:
        ada.get(LIST)
    assert len(many) == len(few)
    own = [one["sql"] for one in many if not any(word in one["sql"] for word in OVERHEAD)]
    assert len(own) <= 6, "\n\n".join(own)


def test_a_hostile_name_does_nothing(house: House, sign_in: SignIn) -> None:
    Person.objects.filter(pk=house.people["bob"].pk).update(name="<script>alert(1)</script>")
    html = sign_in("ada").get(LIST).content.decode()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html
