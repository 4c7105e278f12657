"""Ids from outside as they are stored: shown without secrets, and still told apart (SEC-34)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import settings

from recovery.rules import foreign
from runs import redact

FIRST, SECOND = "Qx7vT2mZr9LkB4nWc8YpD1sHf6JgA3eU", "mK5tRb1Vw9XzP3qLd7NcG2yJh8FsE4aU"
ODD = (FIRST, f"cr/{FIRST}", "4111 1111 1111 1111", "a\0b", "x" * 300, "cr_1\ud800", f"token={'y' * 250}")


@pytest.mark.parametrize("one", ["cr_1", "a" * 40, "INV-20931", "", "x" * 200])
def test_an_id_that_hides_nothing_stays_as_it_is(one: str) -> None:
    assert foreign.name(one) == one


def test_SEC_34_two_ids_under_the_same_mark_stay_two_and_neither_is_shown() -> None:
    shown = [foreign.name(one) for one in (FIRST, SECOND)]
    assert [one.partition("~")[0] for one in shown] == ["[redacted token]"] * 2
    assert len(set(shown)) == 2


@pytest.mark.parametrize("one", ODD)
def test_a_name_is_the_same_however_often_it_is_made_and_fits_its_column(one: str) -> None:
    made = foreign.name(one)
    assert foreign.name(one) == made == foreign.name(made)
    assert len(made) <= foreign.MAX_NAME
    assert made.isprintable()


def test_what_is_cut_off_still_counts() -> None:
    assert foreign.name("x" * 300 + "1") != foreign.name("x" * 300 + "2")


@pytest.fixture
def other_key() -> Iterator[None]:
    redact.tell_apart_by(b"another installation")
    yield
    redact.tell_apart_by(settings.TOKEN_PEPPER.encode())


@pytest.fixture
def usual() -> str:
    return foreign.name(FIRST)


def test_SEC_34_the_digest_is_the_installations_own(usual: str, other_key: None) -> None:
    assert foreign.name(FIRST) != usual
