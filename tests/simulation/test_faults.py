"""Every fault that a simulation can play, alone in a calm episode, and then any two of them together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pytest

from tests.simulation import campaigns
from tests.simulation.campaigns import Cell
from tests.simulation.episode import play, replay_line, theatre
from tests.simulation.faults import FAULTS, SIMULATED, WAITING, calm

SEEDS = 8


@pytest.fixture(scope="module")
def stage() -> Iterator[None]:
    with theatre():
        yield


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.usefixtures("stage")
def test_a_fault_comes_to_what_it_must(fault: str) -> None:
    for seed in range(SEEDS):
        setup = calm(fault, seed)
        try:
            FAULTS[fault].expects(play(setup))
        except AssertionError as wrong:
            raise AssertionError(f"{FAULTS[fault].what}: {wrong}\n    {replay_line(setup)} --trace") from wrong


def test_every_fault_that_a_simulation_can_show_is_played() -> None:
    assert set(FAULTS) == SIMULATED - set(WAITING)


@pytest.mark.long
def test_any_two_faults_together_break_nothing() -> None:
    pairs = [
        Cell(f"{one}+{two}", number, 1, None, (one, two)) for number, (one, two) in enumerate(combinations(FAULTS, 2))
    ]
    broken = [line for one in campaigns.together(pairs) for line in one.broken]
    assert not broken, campaigns.told(broken)
