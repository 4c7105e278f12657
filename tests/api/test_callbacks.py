"""A provider's message over HTTP: the raw body is what is signed, and a stranger hears one answer for everything."""

import json
import time
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recovery import callback_secrets
from recovery.models import InboxMessage
from recovery.rules import signatures
from runs import wall
from runs.models import Tenant
from tests.api.conftest import problem
from tests.factories import make_client, make_tenant, register

pytestmark = pytest.mark.django_db
PATH = "/api/v1/callbacks/north/payments"
BODY = b'{"credit_id": "cr_1",  "state": "succeeded"}'


@pytest.fixture
def north(db: None) -> Tenant:
    return make_tenant("north")


@pytest.fixture
def secret(north: Tenant) -> bytes:
    with wall.within(north.pk):
        return signatures.read(callback_secrets.create(north, "payments"))


def post(path: str, body: bytes, signature: str, *, message: str = "evt_1", stamp: str = "") -> HttpResponse:
    http = Client(raise_request_exception=False)
    headers = {
        "webhook-id": message,
        "webhook-timestamp": stamp or str(int(time.time())),
        "webhook-signature": signature,
    }
    return http.generic("POST", path, body, "application/json", headers=headers)


def signed(secret: bytes, body: bytes = BODY, path: str = PATH, **changes: Any) -> HttpResponse:
    """A sound message, of which a test changes what is sent after the signing."""
    stamp, message = str(int(time.time())), "evt_1"
    signature = changes.pop("signature", signatures.sign(secret, message, stamp, body))
    return post(path, changes.pop("sent", body), signature, **{"message": message, "stamp": stamp, **changes})


def kept(tenant: Tenant) -> int:
    with wall.within(tenant.pk):
        return InboxMessage.objects.count()


def test_a_sound_message_is_taken_and_its_repeat_is_welcome_too(north: Tenant, secret: bytes) -> None:
    assert (signed(secret).status_code, json.loads(signed(secret).content)) == (200, {"status": "duplicate"})
    assert kept(north) == 1


def test_a_message_that_no_contract_listens_to_is_taken_and_ignored(north: Tenant, secret: bytes) -> None:
    response = signed(secret)
    assert (response.status_code, json.loads(response.content)) == (200, {"status": "ignored"})


def test_a_message_of_a_call_that_is_not_known_yet_is_accepted_for_later(north: Tenant, secret: bytes) -> None:
    listens = {"source": "payments", "identity": "credit_id", "succeeded": ["succeeded"]}
    register(make_client(north), {"tools": [{"name": "apply_credit", "effect": "write", "callback": listens}]})
    response = signed(secret)
    assert (response.status_code, json.loads(response.content)) == (202, {"status": "waiting"})


@pytest.mark.security
def test_SEC_21_any_of_several_signatures_may_hold(secret: bytes) -> None:
    stamp = str(int(time.time()))
    right = signatures.sign(secret, "evt_1", stamp, BODY)
    assert signed(secret, signature=f"v1,bm90IHRoaXM= v2,{right[3:]} {right}", stamp=stamp).status_code == 200


@pytest.mark.security
def test_F077_a_body_that_was_written_anew_on_the_way_is_refused(north: Tenant, secret: bytes) -> None:
    problem(signed(secret, sent=json.dumps(json.loads(BODY)).encode()), 401)
    problem(signed(secret, sent=BODY + b"\n"), 401)
    assert kept(north) == 0


@pytest.mark.security
@pytest.mark.parametrize(
    "change",
    [
        {"message": "evt_2"},
        {"message": ""},
        {"message": "e" * 201},
        {"stamp": "0"},
        {"stamp": "soon"},
        {"stamp": "-1"},
        {"stamp": "9" * 400},
        {"signature": ""},
        {"signature": "v1,"},
        {"signature": "v1," + "A" * 43 + "="},
        {"signature": "é" * 44},
        {"path": "/api/v1/callbacks/south/payments"},
        {"path": "/api/v1/callbacks/north/mail"},
        {"path": "/api/v1/callbacks/%00/payments"},
        {"path": "/api/v1/callbacks/north/%00"},
        {"path": "/api/v1/callbacks/north/" + "p" * 500},
    ],
)
def test_F076_whatever_does_not_hold_hears_the_same_refusal(change: Any, north: Tenant, secret: bytes) -> None:
    refused = signed(secret, **change)
    problem(refused, 401)
    unknown = signed(secret, path="/api/v1/callbacks/nobody/nothing")
    assert refused.content == unknown.content
    assert "WWW-Authenticate" not in refused.headers
    assert kept(north) == 0


@pytest.mark.security
def test_F076_an_unknown_tenant_costs_as_many_questions_as_a_known_one(north: Tenant, secret: bytes) -> None:
    counts = []
    for path in (PATH, "/api/v1/callbacks/north/mail", "/api/v1/callbacks/nobody/payments"):
        with CaptureQueriesContext(connection) as asked:
            post(path, BODY, "v1,AAAA")
        counts.append(len(asked))
    assert len(set(counts)) == 1


@pytest.mark.security
@settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(body=st.binary(max_size=200), signature=st.text(max_size=120), message=st.text(max_size=40))
def test_F076_any_bytes_are_refused(body: bytes, signature: str, message: str, north: Tenant, secret: bytes) -> None:
    header = signature.encode("latin-1", "replace").decode("latin-1").replace("\n", "").replace("\r", "")
    ident = message.encode("latin-1", "replace").decode("latin-1").replace("\n", "").replace("\r", "")
    assert post(PATH, body, header, message=ident).status_code == 401
    assert kept(north) == 0


@pytest.mark.security
def test_F095_a_body_beyond_the_bound_is_refused_before_it_is_hashed(secret: bytes) -> None:
    problem(signed(secret, body=b'{"a": "' + b"x" * 256 * 1024 + b'"}'), 413)


@pytest.mark.parametrize("body", [b"", b"no json", b"[1]", b'"x"', b"\xff\xfe", b"[" * 5000])
def test_a_genuine_message_that_is_no_object_is_told_so(body: bytes, north: Tenant, secret: bytes) -> None:
    assert problem(signed(secret, body=body), 400) == {"body": "send a JSON object"}
    assert kept(north) == 0


def test_F096_what_cannot_be_stored_is_kept_in_a_form_that_can(north: Tenant, secret: bytes) -> None:
    body = b'{"credit_id": "cr\\u0000_1", "note": "\\ud800", "big": 1' + b"0" * 400 + b"}"
    assert signed(secret, body=body).status_code == 200
    assert kept(north) == 1


def test_no_token_is_asked_for_and_none_helps(secret: bytes) -> None:
    assert Client().get(PATH).status_code == 405
