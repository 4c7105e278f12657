"""Twenty-seven points at which a process may die, three ways of dying, many seeds: nothing is lost, nothing twice."""

from __future__ import annotations

import pytest

from tests.simulation import campaigns
from tests.simulation.campaigns import Played
from tests.simulation.crashes import MODES, POINTS

SEEDS, MANY = 50, 1000
CELLS = [f"{point}-{mode}" for point in POINTS for mode in MODES]
REACHED = 0.5


@pytest.fixture(scope="module")
def played() -> dict[str, Played]:
    """Every cell with its seeds, played once on every core."""
    return {one.name: one for one in campaigns.together(campaigns.matrix(SEEDS))}


@pytest.mark.parametrize("cell", CELLS)
def test_a_process_may_die_here(cell: str, played: dict[str, Played]) -> None:
    _holds(played[cell], SEEDS)


@pytest.mark.long
def test_a_process_may_die_anywhere_a_thousand_times() -> None:
    parts = [cell for first in range(SEEDS, MANY, 95) for cell in campaigns.matrix(95, first=first)]
    broken = [line for one in campaigns.together(parts) for line in one.broken]
    assert not broken, campaigns.told(broken)


def _holds(one: Played, seeds: int) -> None:
    assert not one.broken, campaigns.told(one.broken)
    assert one.episodes == seeds
    assert one.crashed >= REACHED * seeds, f"{one.name} was reached in {one.crashed} of {seeds} episodes only"
