"""Who is woken: an unknown write that matters, or that nothing will settle by itself; never a limit (ruling 13)."""

from dataclasses import replace

import pytest

from recovery.rules.paging import Question, pages
from tests.factories import Case, advance_clock, lose_the_reply, rate_limit
from tests.failures.conftest import Opener
from tests.recovery.stories import SILENT, TWICE, Looks, kinds, look, present, tasks

OPEN = Question("external_outcome_unknown", "write", True, False, False, answers_later=True)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"answers_later": False}, True),
        ({"over_threshold": True}, True),
        ({"irreversible": True}, True),
        ({"over_threshold": True, "unknown": False}, False),
        ({"effect": "read", "answers_later": False}, False),
        ({"reason_code": "approval_required", "over_threshold": True}, False),
        ({"reason_code": "retry_exhausted", "answers_later": False}, False),
        ({"reason_code": "retry_exhausted", "over_threshold": True}, True),
        ({"reason_code": "idempotency_key_conflict", "answers_later": False}, False),
        ({"reason_code": "conflicting_evidence", "answers_later": False}, True),
        ({"reason_code": "partial_effect", "answers_later": False}, True),
        ({"reason_code": "partial_effect", "answers_later": False, "unknown": False}, False),
        ({"reason_code": "compensation_failed", "unknown": False}, True),
        ({"reason_code": "credentials_invalid", "unknown": False, "answers_later": False}, False),
    ],
)
def test_what_pages(changes: dict[str, object], expected: bool) -> None:
    assert (pages(replace(OPEN, **changes)) is not None) == expected  # type: ignore[arg-type]


def paged(case: Case) -> list[bool]:
    return [task.paged_at is not None for task in tasks(case)]


def test_an_unknown_write_waits_for_its_looks_before_it_wakes_anybody(opened: Opener, looks: Looks) -> None:
    case = opened(max_looks=1, in_flight_seconds=None)
    lose_the_reply(case)
    assert paged(case) == [False]
    looks.say(SILENT)
    advance_clock(seconds=6)
    look(case)
    assert paged(case) == [True]
    assert kinds(case).count("paged") == 1


def test_an_unknown_write_that_a_look_settles_wakes_nobody(opened: Opener, looks: Looks) -> None:
    case = opened()
    lose_the_reply(case)
    looks.say(present())
    advance_clock(seconds=6)
    look(case)
    assert paged(case) == [False]


@pytest.mark.parametrize("promises", [{"irreversible": True}, {"reconcile": False}])
def test_an_unknown_write_that_matters_pages_at_once(opened: Opener, promises: dict[str, bool]) -> None:
    case = opened(**promises)
    lose_the_reply(case)
    assert paged(case) == [True]


def test_the_same_question_pages_once(opened: Opener, looks: Looks) -> None:
    case = opened(irreversible=True, max_looks=1, in_flight_seconds=None)
    lose_the_reply(case)
    advance_clock(seconds=6)
    look(case)
    assert kinds(case).count("paged") == 1


def test_two_effects_of_one_call_page(opened: Opener, looks: Looks) -> None:
    case = opened()
    lose_the_reply(case)
    looks.say(TWICE)
    advance_clock(seconds=6)
    look(case)
    assert paged(case) == [True]


def test_F147_a_limit_that_was_hit_pages_nobody(opened: Opener) -> None:
    case = opened()
    rate_limit(case)
    assert tasks(case) == []
