"""Which verbs may be done for many tasks at once, and what a dry run says of one of them. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from recovery.rules import authority
from recovery.rules.policy import Situation, Verb, find
from recovery.rules.situation import ABILITY_OF

VERBS = (
    "reconcile", "claim", "release", "assign", "snooze", "comment", "retry", "resume", "replay", "discard", "cancel",
)  # fmt: skip
CLOSING = ("cancel", "discard")
"""Verbs that end something: never without a filter (U06)."""
LOOKED_UP = ("reconcile",)
"""Verbs of which more is known only once a worker has asked."""
ONE_BY_ONE = {
    "approve": "an approval is given to one call, by somebody who has read it.",
    "reject": "a refusal is given to one call, by somebody who has read it.",
    "attest": "each statement rests on a reference of its own.",
    "compensate": "each undo has a plan of its own, and is agreed to as it stands.",
    "waive": "what stays of each effect is accepted by itself.",
    "top_up": "each budget has a ceiling of its own.",
    "request_input": "each question makes a link of its own.",
    "provide_input": "each answer is a value of its own.",
    "reopen": "why a question is asked again differs from task to task.",
}
"""Why the other verbs are never done in bulk, as a sentence goes on after "never in bulk:"."""
MOST_ITEMS = 5000
FEW = 50
"""How many items somebody may do at once whose role has no `bulk`: as the verb, and no more (SECURITY 2)."""
ABILITY = "bulk"
MOST_A_MINUTE = 3000
RULES_OF_DONE = ("task", "settled", "decided")


class Sight(NamedTuple):
    """What the dry run says of one item: its class, the rule, and one sentence."""

    kind: str
    rule: str
    sentence: str


def refusal(abilities: Collection[str], verb: str, items: int) -> str:
    """Why somebody with these abilities may not do the verb for so many; empty where they may."""
    if ability_of(verb) not in abilities:
        return "Your role does not include this."
    if items > FEW and ABILITY not in abilities:
        return f"Your role may do this for at most {FEW} tasks at once."
    return ""


def ability_of(verb: str) -> str:
    """The ability that the verb takes; who may claim may give back."""
    return "claim" if verb == "release" else ABILITY_OF.get(verb, verb)


def classify(at: Situation, name: str) -> Sight:
    """What would become of this item if it had its turn now: by the rule that draws its button."""
    answer = find(at, name)
    if answer.allowed:
        return _allowed(at, answer)
    if answer.rule == "role":
        return _as("not_permitted", answer)
    if answer.rule in RULES_OF_DONE or (name == "release" and not at.mine and at.held_by is None):
        return _as("already_done", answer)
    if name != "reconcile" and find(at, "reconcile").allowed:
        return _as("check_first", answer)
    return _as("blocked", answer)


def _allowed(at: Situation, answer: Verb) -> Sight:
    if answer.name == "claim" and at.mine:
        return Sight("already_done", "claim", "You hold it already.")
    if second_person(at, answer.name):
        return Sight("blocked", "four_eyes", "It takes a second person, who has to see this one by itself.")
    return _as("will_run", answer)


def second_person(at: Situation, name: str) -> bool:
    """Whether the verb would only ask for a second person's word here."""
    return (name == "replay" and authority.replayed_by_two(at)) or (
        name == "discard" and authority.discarded_by_two(at)
    )


def _as(kind: str, answer: Verb) -> Sight:
    return Sight(kind, answer.rule, plain(answer.sentence))


def plain(sentence: str) -> str:
    """The sentence of a blocked button without its first word."""
    said = sentence.removeprefix("Blocked: ")
    return said[:1].upper() + said[1:]


def begin_now(rate: int, *, last_minute: int, last_moments: int) -> int:
    """How many more may be begun now at `rate` a minute.

    Never more than `rate` in any minute, and spread over it: no more in MOMENT seconds than their share.
    """
    share = -(-rate * MOMENT // 60)
    return max(0, min(rate - last_minute, share - last_moments))


MOMENT = 5
"""Seconds; as long as the sweep's period."""


def ended(*, done: int, total: int) -> str:
    """The state of an operation none of whose items is pending: nothing that failed or was skipped is hidden."""
    return "done" if done == total else "partly_done"
