"""Whether a connector kept the bounds that its tools declare, and what its word is worth where it did not (F028).

Pure. A demoted connector's bounds count as undeclared: its look-ups are never final, and no key lives by them.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.manifest import Tool

from recovery.rules.known import Fact

SHOWS_AN_EFFECT = ("present", "present_final", "partial", "partial_final", "undone")
_WEAKER = {"absent_final": "absent", "partial_final": "partial", "present_final": "present"}


def violated(facts: Sequence[Fact]) -> bool:
    """Whether an effect turned up of a try of which it had been proven that there is none and would be none.

    Two effects count too where one of the tries had been disproven: one of them is either that one, or was delivered
    twice, and nobody can tell them apart.
    """
    disproven = 0
    for fact in facts:
        if fact.verdict == "absent_final":
            disproven = max(disproven, fact.after_attempt)
        twice = fact.verdict == "conflict" and (fact.count or 0) > 1 and disproven > 0
        if twice or (fact.verdict in SHOWS_AN_EFFECT and 0 < fact.after_attempt <= disproven):
            return True
    return False


def undeclared(tool: Tool) -> Tool:
    """The tool's contract without the bounds that its look-up does not keep."""
    if tool.reconcile is None:
        return tool
    rule = tool.reconcile.model_copy(update={"max_in_flight_seconds": None, "max_visibility_lag_seconds": None})
    return tool.model_copy(update={"reconcile": rule})


def weakened(verdict: str) -> str:
    """What a verdict that rested on such a bound is still worth."""
    return _WEAKER.get(verdict, verdict)
