"""The secrets of callbacks: made, rotated and listed by whoever runs the installation, and shown once."""

import io
import re

import pytest
from django.core.management import call_command

from console.embedded.errors import Trouble
from recovery.models import CallbackSecret
from recovery.rules import signatures
from runs import wall
from runs.models import Event, Tenant
from tests.factories import advance_clock, make_tenant

pytestmark = pytest.mark.django_db


@pytest.fixture
def harbor(db: None) -> Tenant:
    return make_tenant("harbor", "Harbor Travel")


def said(*arguments: str) -> str:
    out = io.StringIO()
    call_command("callback_secret", *arguments, stdout=out)
    return out.getvalue()


def secret_in(text: str) -> str:
    return re.findall(r"whsec_\S+", text)[0]


def test_a_secret_is_shown_once_and_kept_sealed(harbor: Tenant) -> None:
    text = said("create", "harbor", "payments")
    secret = secret_in(text)
    assert len(signatures.read(secret)) == 32
    assert "/api/v1/callbacks/harbor/payments" in text
    with wall.within(harbor.pk):
        [kept] = CallbackSecret.objects.all()
        assert secret.removeprefix("whsec_").encode() not in bytes(kept.sealed_secret)
        assert signatures.read(secret) not in bytes(kept.sealed_secret)
        assert secret not in str(list(Event.objects.values_list("data", flat=True)))
    assert "whsec_" not in said("list", "harbor")


def test_F078_a_rotation_ends_the_secret_before_it_after_the_overlap(harbor: Tenant) -> None:
    first = secret_in(said("create", "harbor", "payments"))
    second = secret_in(said("rotate", "harbor", "payments", "--overlap-hours", "2"))
    assert first != second
    assert said("list", "harbor").count("holds") == 2
    advance_clock(hours=3)
    lines = said("list", "harbor").splitlines()
    assert [line.split()[1] for line in lines] == ["ended", "holds"]


def test_a_second_rotation_never_prolongs_the_first(harbor: Tenant) -> None:
    said("create", "harbor", "payments")
    said("rotate", "harbor", "payments", "--overlap-hours", "1")
    said("rotate", "harbor", "payments", "--overlap-hours", "24")
    advance_clock(hours=2)
    assert said("list", "harbor").count("holds") == 2


def test_each_step_is_in_the_history(harbor: Tenant) -> None:
    said("create", "harbor", "payments")
    said("rotate", "harbor", "payments", "--overlap-hours", "0")
    with wall.within(harbor.pk):
        kinds = list(Event.objects.order_by(*Event.IN_ORDER).values_list("kind", flat=True))
    assert kinds == ["callback_secret_created", "callback_secret_rotated"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("rotate", "harbor", "payments"), "no secret to replace"),
        (("create", "harbor", "Pay ments"), "cannot name a source"),
        (("create", "harbor"), "cannot name a source"),
        (("create", "nobody", "payments"), "There is no tenant"),
    ],
)
def test_what_stands_in_the_way_is_one_sentence(arguments: tuple[str, ...], sentence: str, harbor: Tenant) -> None:
    with pytest.raises(Trouble, match=sentence):
        said(*arguments)


def test_a_source_has_one_first_secret_only(harbor: Tenant) -> None:
    said("create", "harbor", "payments")
    with pytest.raises(Trouble, match="rotate harbor payments"):
        said("create", "harbor", "payments")


def test_an_overlap_has_a_bound(harbor: Tenant) -> None:
    said("create", "harbor", "payments")
    with pytest.raises(Trouble, match="hours"):
        said("rotate", "harbor", "payments", "--overlap-hours", "9999")
