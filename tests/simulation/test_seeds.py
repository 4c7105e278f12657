"""Ordinary and rough episodes by their seeds; the same seed is the same episode, here and on the command line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from runs.models import Action, Event
from runs.states import may_move
from tests.parts import BASE
from tests.simulation import campaigns
from tests.simulation.campaigns import Cell
from tests.simulation.episode import Setup, play, replay_line, theatre
from tests.simulation.fates import lost
from tests.simulation.outside import Outside
from tests.simulation.stories import story
from tests.simulation.tables import Refused
from tests.simulation.world import Broken, Crash

SEEDS = range(150)


@pytest.fixture
def stage() -> Iterator[None]:
    with theatre():
        yield


def test_every_invariant_holds_in_rough_weather() -> None:
    broken = [one for cell in campaigns.together(_cells(SEEDS)) for one in cell.broken]
    assert not broken, campaigns.told(broken)


@pytest.mark.long
def test_every_invariant_holds_for_ten_thousand_seeds() -> None:
    broken = [one for cell in campaigns.together(_cells(range(150, 10_000))) for one in cell.broken]
    assert not broken, campaigns.told(broken)


def _cells(seeds: range) -> list[Cell]:
    return [Cell(f"from {first}", first, min(25, seeds.stop - first)) for first in range(seeds.start, seeds.stop, 25)]


@pytest.mark.usefixtures("stage")
def test_the_same_seed_is_the_same_episode() -> None:
    def told(seed: int) -> list[tuple[object, ...]]:
        made = play(story(seed, Crash("C20", "after")), tracing=True)
        rows = made.world.memory.rows(Event)
        return [*[(line,) for line in made.world.trace], *[(row["at"], row["kind"], row["to_state"]) for row in rows]]

    assert told(11) == told(11)
    assert told(11) != told(12)


def test_a_seed_is_played_again_by_one_line() -> None:
    line = replay_line(story(3, Crash("C10", "after"), ("F027",)))
    command = [sys.executable, *line.split()[1:], "--trace"]
    done = subprocess.run(command, cwd=BASE, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all holds" in done.stdout
    assert "C10:after happens" in done.stdout


@pytest.mark.usefixtures("stage")
def test_what_breaks_names_its_seed_and_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Outside, "_leave", _twice)
    with pytest.raises(Broken, match="I17") as broken:
        play(Setup(5, told={"credit": [lost()]}))
    assert "python -m tests.simulation --seed 5" in broken.value.__notes__


@pytest.mark.usefixtures("stage")
def test_what_the_code_raises_names_its_seed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Outside, "_leave", _fails)
    with pytest.raises(ZeroDivisionError) as raised:
        play(Setup(5, told={"credit": [lost()]}))
    assert "python -m tests.simulation --seed 5" in raised.value.__notes__


def _fails(self: Outside, call: object, attempt: object) -> object:
    return 1 / 0


def _twice(self: Outside, call: object, attempt: object) -> object:
    self.remote.send(call, self.world.now)
    return self.remote.send(call, self.world.now)


@pytest.mark.usefixtures("stage")
def test_the_tables_in_memory_say_no_where_postgresql_does() -> None:
    made = play(Setup(1))
    action = made.rows(Action, tool="credit")[0]
    assert not may_move("action", action.state, "permitted")
    with pytest.raises(Refused):
        Action.objects.filter(pk=action.pk).update(state="permitted")
    with pytest.raises(Refused):
        Event.objects.update(kind="other")
