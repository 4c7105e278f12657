"""Every test runs in exactly one part."""

import itertools

from tests.parts import BESIDE_UNITS, PARTS, expression, lanes, parts


def _matches(text: str, marks: set[str]) -> bool:
    return all((word in marks) != word_is_negated for word, word_is_negated in _terms(text))


def _terms(text: str) -> list[tuple[str, bool]]:
    return [(term.removeprefix("not "), term.startswith("not ")) for term in text.split(" and ")]


def test_each_combination_of_marks_belongs_to_one_part() -> None:
    for size in range(4):
        for marks in itertools.combinations(PARTS, size):
            owners = [part for part in ["unit", *PARTS] if _matches(expression(part, long=True), set(marks))]
            assert len(owners) == 1, marks


def test_long_tests_wait_for_make_test_long() -> None:
    assert not _matches(expression("crash", long=False), {"crash", "long"})
    assert _matches(expression("crash", long=True), {"crash", "long"})


def test_every_part_runs_once_and_what_measures_moments_runs_alone() -> None:
    made = parts(long=False)
    rounds = list(lanes(made))
    ran = [part.name for rows in rounds for row in rows for part in row]
    assert sorted(ran) == sorted(part.name for part in made)
    assert {"unit", *BESIDE_UNITS} == {part.name for row in rounds[0] for part in row}
    assert all(len(rows) == len(rows[0]) == 1 for rows in rounds[1:])
