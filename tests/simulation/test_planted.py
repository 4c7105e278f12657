"""Every planted bug is caught: a simulator that finds nothing is worth as much as the bugs that it would find."""

from __future__ import annotations

import pytest

from tests.simulation import planted
from tests.simulation.episode import play, theatre
from tests.simulation.faults import FAULTS
from tests.simulation.planted import BUGS, GROUNDS, Bug


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "_"))
def test_a_planted_bug_is_caught(bug: Bug) -> None:
    with theatre() as patches:
        planted.plant(patches, bug)
        assert planted.caught(bug) is not None, f"{bug.name}: nothing was found on {bug.ground}"


def test_the_grounds_are_sound_where_nothing_is_planted() -> None:
    with theatre():
        for seed in range(3):
            for name, ground in GROUNDS.items():
                play(ground(seed))
                assert name not in FAULTS


def test_there_are_more_than_forty_different_bugs() -> None:
    assert len({(bug.where, bug.new) for bug in BUGS}) == len(BUGS) > 40
    assert all(name in FAULTS or name in GROUNDS for bug in BUGS for name in bug.ground)
