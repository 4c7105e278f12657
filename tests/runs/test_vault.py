"""Sealed values and keyed hashes: readable by their tenant only, and never guessable (SEC-34, SEC-37)."""

from __future__ import annotations

import uuid

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet, InvalidToken
from hypothesis import given
from hypothesis import strategies as st
from pytest_django.fixtures import Settings

from runs import vault
from runs.vault import Keys

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
ROOT = vault.new_sealed_key()


def tenant(sealed: bytes = ROOT) -> Keys:
    return vault.keys(uuid.uuid4(), sealed)


@given(JSON)
def test_what_is_sealed_comes_back_the_same(value: object) -> None:
    keys = tenant()
    assert vault.unseal(keys, vault.seal(keys, value)) == value


@given(JSON)
def test_another_tenant_opens_nothing_even_with_the_same_root(value: object) -> None:
    sealed = vault.seal(tenant(), value)
    with pytest.raises(InvalidTag):
        vault.unseal(tenant(), sealed)


def test_a_changed_byte_opens_nothing() -> None:
    keys = tenant()
    sealed = bytearray(vault.seal(keys, {"card": "4111"}))
    sealed[-1] ^= 1
    with pytest.raises(InvalidTag):
        vault.unseal(keys, bytes(sealed))


def test_the_same_value_is_never_sealed_the_same_way() -> None:
    keys = tenant()
    assert vault.seal(keys, 1) != vault.seal(keys, 1)


def test_hashes_differ_by_tenant_so_that_none_can_be_guessed() -> None:
    assert vault.hash_arguments(tenant(), b"{}") != vault.hash_arguments(tenant(), b"{}")


def identity(keys: Keys, **changes: object) -> str:
    of = {"run_id": uuid.UUID(int=1), "step": "s", "tool": "t", "tool_version": 1, "arguments_hash": "h"} | changes
    return vault.action_id(keys, **of)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [{"run_id": uuid.UUID(int=2)}, {"step": "x"}, {"tool": "x"}, {"tool_version": 2}, {"arguments_hash": "x"}],
)
def test_I9_every_part_of_a_call_is_part_of_its_identity(change: dict[str, object]) -> None:
    keys = tenant()
    assert identity(keys) == identity(keys)
    assert identity(keys, **change) != identity(keys)


def test_I9_parts_of_an_identity_cannot_flow_into_each_other() -> None:
    keys = tenant()
    assert identity(keys, step="a", tool="bc") != identity(keys, step="ab", tool="c")


def test_a_remote_key_is_stable_within_its_generation_and_hides_the_identity() -> None:
    keys = tenant()
    first, second = (vault.remote_key(keys, "invoice 7", one) for one in (1, 2))
    assert first == vault.remote_key(keys, "invoice 7", 1) != second
    assert "invoice" not in first


def test_SEC_37_an_older_installation_key_still_opens_and_a_foreign_one_does_not(settings: Settings) -> None:
    old, new = Fernet.generate_key(), Fernet.generate_key()
    tenant_id = uuid.uuid4()
    for keys in ((old,), (new, old), (new,)):
        settings.SEALING_KEYS = keys
        vault._installation.cache_clear()
        vault._unsealed.cache_clear()
        if keys == (old,):
            sealed, before = vault.new_sealed_key(), None
            before = vault.seal(vault.keys(tenant_id, sealed), "secret")
        elif keys == (new, old):
            assert vault.unseal(vault.keys(tenant_id, sealed), before) == "secret"
        else:
            with pytest.raises(InvalidToken):
                vault.keys(tenant_id, sealed)
    vault._installation.cache_clear()


def test_SEC_17_a_secret_is_long_and_stored_as_a_peppered_hash(settings: Settings) -> None:
    secret = vault.new_secret()
    assert len(secret) >= 43
    stored = vault.hash_secret(secret)
    settings.TOKEN_PEPPER = "another pepper"
    assert vault.hash_secret(secret) != stored
    assert secret.encode() not in stored
