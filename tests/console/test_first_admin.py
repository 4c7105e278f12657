"""The first page of an empty installation, and the ordinary way in afterwards."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from console import invitation
from recovery import permissions
from runs import wall
from runs.models import Event, Person, Tenant
from tests import factories
from tests.console.conftest import House

pytestmark = pytest.mark.django_db

FORM = {
    "tenant": "Nordlicht Energie",
    "name": "Ada Lindqvist",
    "email": "ada@people.example",
    "password": factories.PASSWORD,
}


@pytest.fixture
def link() -> str:
    return f"/first-admin/{invitation.issue()}/"


def test_the_link_makes_an_admin_of_a_new_tenant_and_signs_in(client: Client, link: str) -> None:
    assert client.get(link).status_code == 200
    response = client.post(link, FORM)
    assert (response.status_code, response.headers["Location"]) == (302, "/")
    ada = Person.objects.get()
    [tenant_id] = permissions.tenants_of(ada)
    with wall.within(tenant_id):
        assert (Tenant.objects.get().slug, Tenant.objects.get().name) == ("nordlicht-energie", "Nordlicht Energie")
    assert permissions.may(ada, "administer", tenant_id)
    page = client.get("/").content.decode()
    assert "No open tasks." in page
    assert "Ada Lindqvist" in page


def test_the_link_works_once(client: Client, link: str) -> None:
    client.post(link, FORM)
    assert Client().get(link).status_code == 404
    assert Client().post(link, {**FORM, "email": "eve@people.example"}).status_code == 404
    assert Person.objects.count() == 1


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("tenant", "", "This field is required."),
        ("tenant", "!!!", "Use at least one letter or digit."),
        ("email", "nobody", "Enter a valid email address."),
        ("password", "short", "at least 12 characters"),
        ("password", "ada@people.example", "too similar"),
        ("name", "a\0b", "Null characters are not allowed."),
    ],
)
def test_what_cannot_be_used_is_said_at_its_field(
    client: Client, link: str, field: str, value: str, words: str
) -> None:
    response = client.post(link, {**FORM, field: value})
    assert response.status_code == 422
    errors = re.search(rf'id="id_{field}_error">(.*?)</div>', response.content.decode(), re.DOTALL)
    assert errors
    assert words in errors[1]
    assert not Person.objects.exists()
    assert client.get(link).status_code == 200


@pytest.mark.parametrize("token", ["x", "%00", "a" * 300])
def test_another_link_does_not_exist(client: Client, link: str, token: str) -> None:
    assert client.get(f"/first-admin/{token}/").status_code == 404
    assert client.post(f"/first-admin/{token}/", FORM).status_code == 404


def test_a_form_from_another_site_makes_nobody(link: str) -> None:
    assert Client(enforce_csrf_checks=True).post(link, FORM).status_code == 403
    assert not Person.objects.exists()


def sign_in(client: Client, password: str) -> int:
    form = {"login": "alice@people.example", "password": password}
    return client.post("/accounts/login/?next=/runs/", form).status_code


def test_somebody_signs_in_with_address_and_password_and_goes_on(house: House, client: Client) -> None:
    assert client.get("/accounts/login/").status_code == 200
    assert sign_in(client, "wrong-" + factories.PASSWORD) == 200
    assert client.get("/").status_code == 302
    assert sign_in(client, factories.PASSWORD) == 302
    page = client.get("/").content.decode()
    assert "Alice" in page
    assert "success" not in page.lower()


def test_signing_out_is_a_post(house: House, client: Client) -> None:
    sign_in(client, factories.PASSWORD)
    client.post("/accounts/logout/")
    assert client.get("/").status_code == 302


def test_the_second_factor_is_reached_from_the_rail(house: House) -> None:
    alice = house.browser("alice")
    assert 'href="/accounts/2fa/"' in alice.get("/").content.decode()
    assert "Authenticator App" in alice.get("/accounts/2fa/").content.decode()


def test_nobody_signs_up_alone(client: Client) -> None:
    page = client.get("/accounts/signup/")
    assert page.status_code == 200
    assert "password1" not in page.content.decode()
    client.post("/accounts/signup/", {"email": "eve@people.example", "password1": "x" * 20, "password2": "x" * 20})
    assert not Person.objects.exists()


def signins(house: House) -> list[tuple[str, str]]:
    with wall.within(house.nordlicht.pk):
        rows = Event.objects.filter(run=None, actor_kind="person").order_by(*Event.IN_ORDER)
        assert all(row.request_id for row in rows)
        return list(rows.values_list("kind", "actor"))


def test_every_sign_in_is_recorded_in_the_tenants_of_the_person(house: House, client: Client) -> None:
    sign_in(client, "wrong-" + factories.PASSWORD)
    sign_in(client, factories.PASSWORD)
    assert signins(house) == [("sign_in_failed", "Alice"), ("signed_in", "Alice")]
    with wall.within(house.harbor.pk):
        assert not Event.objects.filter(run=None, actor_kind="person").exists()


def test_a_failed_sign_in_of_nobody_is_nobodys_history(house: House, client: Client) -> None:
    client.post("/accounts/login/", {"login": "eve@people.example", "password": "x"})
    assert signins(house) == []


def test_a_link_that_was_used_says_so_and_what_to_do(client: Client, link: str) -> None:
    stale = client.get("/first-admin/nothing/").content.decode()
    assert "This link was used or is too old" in stale
    assert "manage.py invite_admin" in stale
    client.post(link, FORM)
    used = Client().get(link).content.decode()
    assert "ask an admin for an account" in used


def test_a_sign_in_before_anybody_exists_points_at_the_link(client: Client) -> None:
    assert "Nobody can sign in yet." in client.get("/accounts/login/").content.decode()
    factories.make_person("zoe")
    page = client.get("/accounts/login/").content.decode()
    assert "Nobody can sign in yet." not in page
    assert page.index('class="btn fill"') < page.index('id="passkey_login"')


def test_somebody_who_was_added_first_does_not_use_up_the_link(client: Client, link: str) -> None:
    factories.make_person("ada", factories.make_tenant("nordlicht-energie"), "support")
    refused = client.post(link, FORM)
    assert refused.status_code == 422
    said = refused.content.decode()
    assert "There is a tenant of that name already" in said
    assert "manage.py add_person makes them an admin" in said
    assert client.post(link, {**FORM, "tenant": "Harbor", "email": "eve@people.example"}).status_code == 302
