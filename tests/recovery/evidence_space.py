"""Every combination of evidence that may exist, an even sample of it, and one example to vary."""

from collections.abc import Iterator
from functools import cache
from itertools import islice, product

from recovery.rules.evidence import VALUES, Evidence, parse

SIZE = 4_354_560
SAMPLE_STEP = 97  # shares no factor with the number of values of any field, so the sample meets all of them


def evidence(**changes: object) -> Evidence:
    """A write that may go on in every respect and was never sent, with some fields changed."""
    usual = {
        "effect": "write",
        "observation": "not_sent",
        "key": "none",
        "reconcilable": True,
        "verdict": "none",
        "looks": "due",
        "proof": "reply",
        "compensable": True,
        "undo": "none",
        "goal": "forward",
        "attempts_left": True,
        "budget_left": True,
        "past_deadline": False,
        "circuit": "closed",
        "gate": "open",
    }
    return parse(usual | changes)


def everything() -> Iterator[Evidence]:
    """All combinations but those with an undo outside a rollback, in a fixed order."""
    undo, goal = Evidence._fields.index("undo"), Evidence._fields.index("goal")
    for values in product(*VALUES.values()):
        if values[undo] == "none" or values[goal] == "rollback":
            yield Evidence._make(values)


@cache
def sample() -> list[Evidence]:
    """About 45,000 combinations spread over all of them."""
    return list(islice(everything(), 0, None, SAMPLE_STEP))
