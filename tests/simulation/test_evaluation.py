"""The table of `make evaluate` in small: what it must show, and that it would show it if it were not so."""

from __future__ import annotations

import csv
import io
import random
from xml.etree import ElementTree

import pytest

from benchmarks.evaluation import measure, picture, tables
from benchmarks.evaluation.measure import NOTHING, WRONG_BOUND, Cell, Score, cells, episodes, scored, share
from benchmarks.evaluation.remote import CALM, FAULTS, LEVELS, NO_FAULTS, Effect, Faults, Level, Remote
from benchmarks.evaluation.ways import Told, Way
from recovery.rules import bounds

pytestmark = pytest.mark.simulation
EPISODES = 1000
OURS = ("ours unkeyed", "ours keyed")
REDELIVERY = FAULTS[3]
Scores = dict[Cell, Score]


@pytest.fixture(scope="module")
def scores() -> Scores:
    return {cell: episodes(cell, EPISODES, "reduced") for cell in cells()}


def of(scores: Scores, *ways: str) -> Scores:
    return {cell: score for cell, score in scores.items() if cell.way in ways}


def settled_by_a_look(cell: Cell) -> bool:
    """Not where a request may land at any time, and no key makes one of two."""
    return cell.way == "ours keyed" or not cell.faults.tail


# --- what must hold -----------------------------------------------------------------------------------------


def test_under_a_key_there_is_never_a_second_effect(scores: Scores) -> None:
    assert all(score.duplicates == 0 for score in of(scores, "ours keyed").values())


def test_without_a_key_no_second_effect_is_ours_and_every_redelivered_one_is_told(scores: Scores) -> None:
    mine = of(scores, "ours unkeyed")
    assert all((score.caused, score.unseen) == (0, 0) for score in mine.values())
    assert sum(score.duplicates for cell, score in mine.items() if cell.faults == REDELIVERY) > 0.3 * EPISODES


@pytest.mark.parametrize("lie", ["false_ok", "false_failed"])
def test_at_quiescence_nothing_that_was_said_is_false(scores: Scores, lie: str) -> None:
    assert all(getattr(score, lie) == 0 for score in of(scores, *OURS).values())


def test_the_goal_is_reached_as_often_as_by_looking_before_each_retry(scores: Scores) -> None:
    for cell, score in of(scores, *OURS).items():
        if settled_by_a_look(cell):
            assert score.goal >= scores[cell._replace(way="verify-before-retry")].goal, cell.name


def test_without_faults_everybody_reaches_the_goal_and_who_does_nothing_reaches_none(scores: Scores) -> None:
    calm = [score for cell, score in scores.items() if cell.level == CALM]
    assert {(score.goal, score.duplicates, score.human) for score in calm} == {(EPISODES, 0, 0)}
    nothing = scores[Cell(NOTHING, LEVELS[-1], FAULTS[0])]
    assert (nothing.goal, nothing.calls, nothing.duplicates) == (0, 0, 0)


def test_the_provider_is_hard_on_those_who_guess(scores: Scores) -> None:
    high = {(cell.way, cell.faults.name): score for cell, score in scores.items() if cell.level == LEVELS[-1]}
    assert high["blind retry", "paper"].duplicates > 0.2 * EPISODES
    assert high["verify-before-retry", "late, bounded"].caused > 0
    assert high["verify only", "redelivery 20 %"].false_ok > 0
    assert high["key only", "paper"].false_failed > 0


# --- that it would be seen ----------------------------------------------------------------------------------


def test_a_promise_that_is_not_kept_shows_in_the_row_that_makes_it(scores: Scores) -> None:
    assert scores[Cell(WRONG_BOUND, LEVELS[-1], FAULTS[2])].caused > 0


def test_without_the_later_count_a_redelivered_effect_would_be_a_false_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "recount_after", lambda tool, kind: None)
    assert episodes(Cell("ours unkeyed", LEVELS[-1], REDELIVERY), 200, "reduced").false_ok > 0


def test_without_waiting_for_the_bound_a_write_would_be_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "finalize", lambda said, **_: f"{said}_final" if said == "absent" else said)
    assert episodes(Cell("ours unkeyed", LEVELS[-1], FAULTS[1]), 300, "reduced").caused > 0


# --- how it is counted --------------------------------------------------------------------------------------


def effect(request: int, *, whole: bool = True, again: bool = False) -> Effect:
    return Effect(0.0, 0.0, request, whole, again)


@pytest.mark.parametrize(
    ("told", "ledger", "true"),
    [
        ("ok", [effect(1)], {"goal"}),
        ("ok", [], {"false_ok"}),
        ("ok", [effect(1, whole=False)], {"false_ok"}),
        ("ok", [effect(1), effect(2)], {"false_ok", "duplicates", "caused", "unseen"}),
        ("ok", [effect(1), effect(1, again=True)], {"false_ok", "duplicates", "unseen"}),
        ("human", [effect(1), effect(1, again=True)], {"human", "duplicates"}),
        ("human", [effect(1)], {"human"}),
        ("failed", [effect(1)], {"false_failed"}),
        ("failed", [], set()),
        ("nothing", [], set()),
    ],
)
def test_an_episode_is_scored_by_the_ledger(told: Told, ledger: list[Effect], true: set[str]) -> None:
    score = scored(told, ledger, 3)
    assert {name for name in tables.SHARES if getattr(score, name)} == true
    assert (score.calls, score.calls_squared) == (3, 9)


@pytest.mark.parametrize(
    ("count", "of", "low", "high"), [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0)]
)
def test_intervals_are_wilsons(count: int, of: int, low: float, high: float) -> None:
    found = share(count, of)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_every_way_meets_the_same_fates(monkeypatch: pytest.MonkeyPatch) -> None:
    met: dict[str, list[str]] = {"blind retry": [], "ours keyed": []}

    def three_sends(name: str, **_: bool) -> Way:
        def way(remote: Remote, rng: random.Random) -> Told:
            met[name] += [remote.send(now + rng.random())[0] for now in (0.0, 100.0, 200.0)]
            return "nothing"

        return way

    monkeypatch.setattr(measure, "way_of", three_sends)
    for name in met:
        episodes(Cell(name, LEVELS[2]._replace(partial=0.0), FAULTS[0]), 100, "a")
    assert met["blind retry"] == met["ours keyed"]
    assert {"ok", "timeout", "conflict"} == set(met["ours keyed"])


def test_the_same_seed_gives_the_same_score() -> None:
    cell = Cell("ours keyed", LEVELS[2], FAULTS[1])
    assert episodes(cell, 50, "a") == episodes(cell, 50, "a") != episodes(cell, 50, "b")


# --- the provider -------------------------------------------------------------------------------------------


def remote(level: Level = CALM, faults: Faults = NO_FAULTS, *, keyed: bool = False) -> Remote:
    return Remote(random.Random(7), level, faults, keyed)


def test_two_sends_are_two_effects_and_one_under_a_key() -> None:
    for keyed, effects in ((False, 2), (True, 1)):
        shop = remote(keyed=keyed)
        assert [shop.send(now)[0] for now in (0.0, 5.0)] == ["ok", "ok"]
        assert len(shop.settle()) == effects


def test_what_lands_late_is_not_seen_before() -> None:
    shop = remote(CALM._replace(timeout=1.0), Faults("late", late=1.0))
    while not shop.coming:
        assert shop.send(0.0) == ("timeout", 10.0)
    lands = shop.coming[0].at
    assert (shop.look(lands - 0.1), shop.look(lands)) == (("absent", 0), ("present", 1))


def test_a_part_and_a_foreign_record_are_seen_as_what_they_are() -> None:
    torn, taken = remote(CALM._replace(partial=1.0)), remote(CALM._replace(conflict=1.0))
    assert (torn.send(0.0)[0], torn.look(1.0)) == ("timeout", ("partial", 1))
    assert (taken.send(0.0)[0], taken.look(1.0), taken.settle()) == ("conflict", ("conflict", 1), [])


def test_a_redelivered_request_is_counted_as_two_of_one_request() -> None:
    shop = remote(faults=Faults("again", redelivered=1.0))
    shop.send(0.0)
    assert [(one.request, one.again) for one in shop.settle()] == [(1, False), (1, True)]
    assert shop.look(100.0) == ("conflict", 2)


# --- how it is shown ----------------------------------------------------------------------------------------


def test_every_cell_is_in_the_csv_and_every_way_in_every_table(scores: Scores) -> None:
    rows = list(csv.DictReader(io.StringIO(tables.as_csv(scores))))
    assert {(row["way"], row["level"], row["faults"]) for row in rows} == {
        (cell.way, cell.level.name, cell.faults.name) for cell in cells()
    }
    page = tables.as_markdown(scores, seed="reduced", seconds=60.0)
    assert page.count("\n| ours keyed |") == len(LEVELS) * len(FAULTS) + 1
    assert f"{EPISODES:,} episodes" in page


def test_the_picture_is_an_svg_with_a_bar_for_every_figure(scores: Scores) -> None:
    drawn = picture.draw(scores)
    bars = [one for one in ElementTree.fromstring(drawn).iter() if one.get("class") in ("ours", "theirs")]
    assert len(bars) == len(picture.PANELS) * len(FAULTS) * len(measure.WAYS)
    assert "prefers-color-scheme: dark" in drawn


def test_the_short_table_has_the_range_over_all_faults(scores: Scores) -> None:
    assert "| ours keyed | 0.0 % | 0.0 % |" in tables.short(scores)
