"""The first admin's link: one use, one day, and only while there is no admin."""

import io
import threading
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from console import invitation
from console.embedded.errors import Trouble
from console.models import Invitation
from runs.querysets import database_now
from tests import factories


def person(role: str = "admin") -> None:
    factories.make_person("ada", factories.make_tenant("north"), role)


@pytest.mark.django_db
def test_a_link_works_once() -> None:
    token = invitation.issue()
    assert invitation.is_open(token)
    assert invitation.redeem(token)
    assert not invitation.is_open(token)
    assert not invitation.redeem(token)


@pytest.mark.django_db
def test_the_link_itself_is_never_stored() -> None:
    token = invitation.issue()
    (row,) = Invitation.objects.values_list("digest", flat=True)
    assert token not in row


@pytest.mark.django_db
def test_a_link_ends_after_a_day() -> None:
    token = invitation.issue()
    Invitation.objects.update(expires_at=database_now() - timedelta(seconds=1))
    assert not invitation.redeem(token)


@pytest.mark.django_db
def test_a_new_link_ends_the_old_one() -> None:
    old, new = invitation.issue(), invitation.issue()
    assert not invitation.redeem(old)
    assert invitation.redeem(new)


@pytest.mark.django_db
@pytest.mark.parametrize("token", ["", "guess", "\x00", "ü" * 200])
def test_a_made_up_link_is_nothing(token: str) -> None:
    invitation.issue()
    assert not invitation.is_open(token)
    assert not invitation.redeem(token)


@pytest.mark.django_db
def test_no_link_once_there_is_an_admin() -> None:
    token = invitation.issue()
    person()
    assert not invitation.redeem(token)
    with pytest.raises(Trouble, match="There is an admin already"):
        invitation.issue()


@pytest.mark.django_db
def test_the_link_stays_good_while_only_others_were_added() -> None:
    token = invitation.issue()
    person("support")
    assert invitation.is_open(token)
    assert invitation.redeem(token)


@pytest.mark.django_db
def test_the_command_prints_the_link_and_then_holds_its_tongue() -> None:
    said = io.StringIO()
    call_command("invite_admin", address="http://127.0.0.1:9000/", stdout=said)
    token = said.getvalue().rpartition("/first-admin/")[2].strip().rstrip("/")
    assert invitation.is_open(token)
    person()
    quiet = io.StringIO()
    call_command("invite_admin", quiet_if_known=True, stdout=quiet)
    assert quiet.getvalue() == ""


@pytest.mark.races
def test_two_people_with_one_link_make_one_admin(fresh_database: str) -> None:
    token = invitation.issue()
    gate, won = threading.Barrier(2), []

    def use() -> None:
        try:
            gate.wait(timeout=10)
            with transaction.atomic():
                won.append(invitation.redeem(token))
        finally:
            connection.close()

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert sorted(won) == [False, True]
