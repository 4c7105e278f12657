"""What is stored in clear: no secret in any of its usual shapes, and still enough to read (SEC-34, F099)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.redact import MAX_TEXT, clean_text, redact

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
