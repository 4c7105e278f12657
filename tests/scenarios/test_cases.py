"""Every scenario file beside this test, through the real code: one kind of incident each, with its right answer."""

from __future__ import annotations

import pytest

from recovery.scenarios import format
from tests.scenarios.playing import CASES, NAMES, differences


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_ends_as_it_should(db: None, name: str) -> None:
    assert differences(name) == []


def test_there_are_enough_of_them() -> None:
    assert len(NAMES) >= 75


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_named_after_its_case_and_everything_in_it_is_read(name: str) -> None:
    scenario = format.load(CASES / f"{name}.json")
    assert scenario.id == name
    assert scenario.expect.get("outcome")
