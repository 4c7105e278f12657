"""What is stored in clear: no secret in any of its usual shapes, and still enough to read (SEC-34, F099)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.redact import MAX_DEPTH, MAX_TEXT, clean_text, fault, redact

CANARIES = [
    "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "glpat-abcdefghij1234567890",
    "AKIAIOSFODNN7EXAMPLE",
    "xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcHrzqqgy",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "Bearer 9f86d081884c7d659a2feaa0c55ad015",
    "basic YWxpY2U6cXVpZXQtaGFyYm91cg==",
    "4111 1111 1111 1111",
    "5500-0055-5555-5559",
    "378282246310005",
    "DE89 3704 0044 0532 0130 00",
    "GB82WEST12345698765432",
    "https://alice:quiet-harbour@db.example.org/x",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEA7 and then the text was cut",
    "sh_01a22c1335bb74eaaecdceb61c118e55_01a22c1335bb74eaaecdceb61c118e56_9X8ExkyL6gAbCdEfGhIjKlMnOpQrStUv",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
]
SECRET_FIELDS = [
    "password", "new_password", "passwd", "client_secret", "secretKey", "api_key", "apiKey", "api-key",
    "access_token", "Authorization", "cookie", "Set-Cookie", "credentials", "private_key", "cvv", "cvc", "pin",
    "otp", "ssn",
    "session_id",
    "card_number", "cardNumber", "iban", "refresh_token", "X-Api-Key",
    "pw", "pwd", "db_pwd", "userPwd", "auth", "X-Auth", "access_key", "accessKey", "signing_key", "passwd_hash",
    "password_hash", "passcode", "PASSCODE", "pass", "passphrase", "pin_code", "mfa", "bearer", "jwt", "pan",
    "apikey", "mot_de_passe", "kennwort",
]  # fmt: skip
PLAIN = [
    "INV-20931",
    "acct_8841",
    "The customer was charged twice on 2026-03-14 at 09:18.",
    "01a22c13-35bb-74ea-aecd-ceb61c118e55",
    "01a22c1335bb74eaaecdceb61c118e55",
    "apply_credit_to_the_account_of_the_customer",
    "1234567890123456789",
    "https://api.example.org/v1/credits?reference=abc",
    "3f786850e387550fdab836ed7e6dc881de23001b",
]


@pytest.mark.parametrize("secret", CANARIES)
@pytest.mark.parametrize("shape", ["{}", "call failed: {} was refused", '{{"note": "{}"}}', "url?x={}&y=1"])
def test_F099_a_secret_is_taken_out_of_any_text(secret: str, shape: str) -> None:
    core = max(secret.replace("\n", " ").split(" "), key=len)
    cleaned = clean_text(shape.format(secret))
    assert core not in cleaned
    assert "redacted" in cleaned


@pytest.mark.parametrize("field", SECRET_FIELDS)
def test_SEC_34_a_field_with_a_telling_name_is_never_stored(field: str) -> None:
    stored = redact({"outer": [{field: "quiet harbour", "other": 1}]})
    assert "harbour" not in json.dumps(stored)
    assert stored["outer"][0]["other"] == 1


NAMED_SECRETS = [
    "password=harbour77", "pw=harbour77", "Password: harbour77", "api_key: harbour77", '{"api_key": "harbour77"}',
    '{\\"client_secret\\": \\"harbour77\\"}', "https://h.example/cb?token=harbour77&x=1",
    "?a=1&access_token=harbour77",
    "passcode = 'quiet harbour77'", 'secret="quiet \\"harbour77"', "Authorization: Bearer harbour77",
    "db_password=harbour77;", "access_key=/harbour77", "sid=1; session_id=harbour77", "cvv:harbour77",
    "token=" + "y" * 3000 + "harbour77",
]  # fmt: skip


@pytest.mark.parametrize("text", NAMED_SECRETS)
def test_F099_a_secret_that_a_text_names_is_taken_out(text: str) -> None:
    for whole in (text, f"call failed: {text}", f"{text}, and more"):
        cleaned = clean_text(whole, 9000)
        assert "harbour77" not in cleaned
        assert clean_text(cleaned, 9000) == cleaned


@pytest.mark.parametrize(
    "number", [4111111111111111, 5500005555555559, 378282246310005, 6011111111111117, 4222222222222]
)
def test_SEC_34_a_card_written_as_a_number_is_taken_out(number: int) -> None:
    assert redact({"x": [number], "y": float(number)}) == {"x": ["[redacted card]"], "y": "[redacted card]"}


@pytest.mark.parametrize(
    "number", [4111111111111112, 1_700_000_000_003, 12_000, -4111111111111111, 10**400, 1e300, True]
)
def test_other_numbers_stay(number: float) -> None:
    assert redact({"x": number}) == {"x": number}


def test_times_in_milliseconds_are_no_cards() -> None:
    assert all(redact(moment) == moment for moment in range(1_700_000_000_000, 1_700_000_000_200))


def test_a_value_is_stored_only_so_deep() -> None:
    value: Any = "the end"
    for _ in range(900):
        value = [value]
    stored = json.dumps(redact(value))
    assert stored.count("[") == MAX_DEPTH + 1
    assert "nested too deep" in stored


HOSTILE = [
    "password" * 8000, 'password="' * 7000, "a" * 65_536, "pass_" + "a" * 60_000,
    "sh_" + "_" * 60_000, "eyJ" * 20_000,
    "-----BEGIN " * 6000,
    "bearer" + " " * 60_000, "://a" * 15_000, "token:    " * 6000, "AB12" * 15_000, "=x" * 30_000,
    "-----BEGIN PRIVATE KEY-----" + "-----END " * 6000,
    '\\"' * 30_000, "key='" * 13_000, "4" * 65_536, "4 " * 32_000,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_SEC_16_no_text_takes_long_to_clean(text: str) -> None:
    began = time.process_time()
    clean_text(text)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    "reference", ["case-20931", "01a22c13-35bb-74ea-aecd-ceb61c118e55", "run-1700000000003", "Größe 7"]
)
def test_a_plain_reference_may_be_stored(reference: str) -> None:
    assert fault(reference) is None


@pytest.mark.parametrize(
    "reference", ["a\u202eb", "a\x00", "a\nb\x1b", "ref 4111111111111111", *CANARIES[:8], "password=x1"]
)
def test_SEC_34_a_reference_that_could_not_be_stored_is_refused(reference: str) -> None:
    assert fault(reference) is not None


@pytest.mark.parametrize("text", PLAIN)
def test_what_an_operator_needs_stays_readable(text: str) -> None:
    assert clean_text(text) == text
    assert redact({"note": text}) == {"note": text}


def test_declared_fields_are_hidden_by_name_and_by_path() -> None:
    value = {"name": "Jo", "address": {"street": "Elm 1", "city": "Bern"}, "items": [{"diagnosis": "x"}]}
    stored = redact(value, sensitive=["name", "address.street", "items.diagnosis"])
    assert stored == {
        "name": "[redacted str]",
        "address": {"street": "[redacted str]", "city": "Bern"},
        "items": [{"diagnosis": "[redacted str]"}],
    }


def test_a_secret_in_a_field_name_is_taken_out_too() -> None:
    assert "4eC39" not in json.dumps(redact({"sk_live_4eC39HqLyjWDarjtT1zdp7dc": 1}))


def test_F096_what_cannot_be_seen_is_shown() -> None:
    assert clean_text("a\u202eb\u200bc\x00d\ud800e") == "a\\u202eb\\u200bc\\u0000d\\ud800e"


@given(st.text(max_size=300), st.integers(1, 250))
def test_no_text_outgrows_its_column(text: str, limit: int) -> None:
    assert len(clean_text(text, limit)) <= limit


def test_a_long_text_says_how_much_was_cut() -> None:
    assert clean_text("word " * MAX_TEXT).endswith("more characters]")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_whatever_comes_in_can_be_stored(value: Any) -> None:
    text = json.dumps(redact(value), allow_nan=False)
    text.encode()
    assert "\\u0000" not in text.replace("\\\\u0000", "")


@given(JSON)
def test_redacting_twice_changes_nothing_more(value: Any) -> None:
    once = redact(value)
    assert redact(once) == once


@pytest.mark.parametrize("identity", ["ab4111111111111111cdef0123456789", "01a22c00-0000-4000-8411-111111111111"])
def test_an_id_that_happens_to_hold_a_card_number_is_still_an_id(identity: str) -> None:
    assert clean_text(f"run {identity} waits") == f"run {identity} waits"
    assert fault(identity) is None, "a reference that the SDK makes up must open a run"


@given(st.uuids())
def test_no_uuid_is_taken_for_a_secret(identity: Any) -> None:
    for text in (identity.hex, str(identity)):
        assert clean_text(text) == text
        assert fault(text) is None


def test_a_card_beside_other_words_is_hidden_though_they_look_like_ids() -> None:
    assert "4111" not in clean_text("4111 1111 1111 1111 for 01a22c00-0000-4000-8000-111111111111")
    assert "4111" not in clean_text("pay-4111-1111-1111-1111")


@pytest.mark.parametrize(
    "name",
    [
        "charges-basic/steadyhand-basic-drop-n-123456789",
        "charges-basic/steadyhandbasiclat12345678n17",
        "billing/order-4711-2026-11-30-retry-2-eu-west-1",
        "resolve_billing_case/INV-20931/customer_8841/3",
    ],
)
def test_a_name_of_words_and_numbers_is_no_secret_however_long(name: str) -> None:
    assert clean_text(name) == name
    assert fault(name) is None


@pytest.mark.parametrize(
    "token",
    [
        "aB3x-9Kd0_Zq7LmN2pR5sT8vW1yX4cE6gH",
        "dGhpcy1pcy1h/c2VjcmV0+dG9rZW4tMDAx",
        "q1w2e3r4t5y6u7i8o9p0a1s2d3f4g5h6j7",
    ],
)
def test_a_token_with_separators_is_still_a_secret(token: str) -> None:
    assert clean_text(f"it is {token}") == "it is [redacted token]"
