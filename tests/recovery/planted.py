"""Tables with one bug each, to show that the tests of the table can fail."""

from collections.abc import Callable

from recovery.rules.decide import TABLE, Action, Answer, Condition, NextAction, Rule, first_match
from recovery.rules.evidence import Evidence

Decide = Callable[[Evidence], NextAction]


def without(*rules: str) -> Decide:
    """The table with some lines left out."""
    return _deciding([rule for rule in TABLE if rule.id not in rules])


def changed(
    rule: str, *, when: Condition | None = None, action: Action | None = None, reason: str = "planted"
) -> Decide:
    """The table with another condition or another answer in one line."""
    assert rule in {line.id for line in TABLE}
    return _deciding([_line(line, when, action, reason) if line.id == rule else line for line in TABLE])


def before(rule: str, condition: Condition, action: Action, reason: str = "planted") -> Decide:
    """The table with a wrong line put in front of `rule`, under that rule's name."""
    wrong = Rule(rule, condition, _always(NextAction(action, rule, reason)))
    at = [line.id for line in TABLE].index(rule)
    return _deciding([*TABLE[:at], wrong, *TABLE[at:]])


def _line(line: Rule, when: Condition | None, action: Action | None, reason: str) -> Rule:
    answer = _always(NextAction(action, line.id, reason)) if action else line.answer
    return Rule(line.id, when or line.when, answer)


def _always(answer: NextAction) -> Answer:
    return lambda e: answer


def _deciding(table: list[Rule]) -> Decide:
    return lambda e: first_match(table, e)
