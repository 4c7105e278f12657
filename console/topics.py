"""What the words of the console mean: a short answer where a word stands, and a page of help behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from django.conf import settings

RULE = re.compile(r"^### (\d+[a-z]?)\n(.+?)(?=\n#|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Topic:
    """`short` answers in a sentence or two; `more` are paragraphs (may hold `code`); `see` are other topics."""

    slug: str
    name: str
    short: str
    more: list[str] = field(default_factory=list)
    see: list[str] = field(default_factory=list)


TOPICS = (
    Topic(
        "unknown-outcome",
        "Unknown outcome",
        "The call left, and nothing proves whether it took effect. It is not a failure: it may have worked.",
        [
            "A write counts as sent from the moment it was permitted. A timeout, a broken line or an answer that "
            "proves nothing leaves it unknown; only a look-up, a callback, a late report or a person's word "
            "settles it.",
            "Sending it again could do it twice. So Steadyhand looks first, and sends again only where that is safe.",
        ],
        ["final-from", "evidence", "retry-safe"],
    ),
    Topic(
        "final-from",
        "When a look-up is final",
        "A look-up that finds nothing proves it only after the longest time in which the effect could still appear.",
        [
            "Each connector declares how long a call may stay in flight and how late an effect may become visible. A "
            "look that starts after both is final. Before that, `not found` means `not found yet`.",
            "Without both bounds no look is ever final, and a person has to settle the call.",
        ],
        ["unknown-outcome", "evidence"],
    ),
    Topic(
        "evidence",
        "Strength of evidence",
        "Five bars say how much a fact proves; a record of the other system outweighs everything that was only said.",
        [
            "The strongest fact stands first. Facts that contradict each other stand side by side as a conflict, for "
            "the last word does not win.",
            "What an agent says about its own work is shown as a claim and proves nothing.",
        ],
        ["unknown-outcome", "final-from"],
    ),
    Topic(
        "effects",
        "Effects ledger",
        "What this run changed in other systems. Solid is proven by a record, dashed is not proven yet.",
        ["Sums are kept apart by currency and are never added. Compensated means that the undo itself is proven."],
        ["compensation", "unknown-outcome"],
    ),
    Topic(
        "retry-safe",
        "Is retry safe?",
        "Whether the same call may be sent once more without doing it twice.",
        [
            "Yes where nothing happened, or where the other system still knows the call's key and will take "
            "both sends "
            "as one. Check first where the outcome is unknown and a look-up can tell. No where nothing "
            "protects from a "
            "second effect.",
        ],
        ["unknown-outcome", "rules"],
    ),
    Topic(
        "rules",
        "Rules and blocked actions",
        "A blocked action says which rule stands in its way and what would change it.",
        [
            "The same table of rules draws the buttons, checks what is posted, and is asked again by the "
            "worker before "
            "anything is sent. The id beside a sentence leads to the rule itself.",
        ],
        ["retry-safe", "evidence"],
    ),
    Topic(
        "claim",
        "Claims",
        "A claim lasts 30 minutes, is extended while you act, and then goes back to the queue with a note.",
        [
            "While a task is claimed nothing is sent for its run automatically. Handing over needs the other "
            "to accept."
        ],
        ["rules"],
    ),
    Topic(
        "compensation",
        "Plan of what is undone",
        "Effects are taken back in reverse order, only by undos that were registered, and it stops at the "
        "first failure.",
        [
            "What cannot be taken back stays, with its amount, and a person signs for it. Rolled back is said only "
            "where each undo is proven.",
        ],
        ["effects"],
    ),
    Topic(
        "bulk",
        "Bulk and its canary",
        "The canary is a first few tasks: an outcome that was not expected among them suspends the whole operation.",
        [
            "The list is frozen before anything is done, and each task is judged again when its turn comes: what has "
            "changed since, or is no longer permitted, is skipped and says why.",
            "Stopping undoes nothing. Every task is done, skipped, failed or pending; together they are always the "
            "number that was frozen.",
        ],
        ["rules", "retry-safe"],
    ),
    Topic(
        "dead-letter",
        "Dead letters",
        "A call that used all its tries is kept here with everything that is known, and waits for a person.",
        ["It is sent again only by a decision: replay makes one more try under the same identity, discard ends it."],
        ["retry-safe"],
    ),
    Topic(
        "circuit",
        "Circuits",
        "After several faults in a short time a connector is given a rest: its circuit is open, and calls wait.",
        [
            "After its cool-down one trial call is let through. If it goes well the circuit closes, and what "
            "waited is "
            "let go little by little. A person may hold a circuit open, with a reason; nobody can force it closed.",
        ],
        ["stop"],
    ),
    Topic(
        "stop",
        "Stops",
        "A stop keeps calls from leaving: for everything, a workflow, a tool, a connector or one run.",
        [
            "Halt lets nothing leave. Drain lets runs that were open before go on. Quarantine hands each run "
            "that asks "
            "to a person. A stop undoes nothing.",
        ],
        ["circuit"],
    ),
)
BY_SLUG = {topic.slug: topic for topic in TOPICS}


@lru_cache(maxsize=1)
def rules() -> dict[str, str]:
    """Each rule of the decision table with its sentence, as docs/decisions.md has it."""
    text = (settings.BASE / "docs" / "decisions.md").read_text(encoding="utf-8")
    return {found[1]: " ".join(found[2].replace("**", "").split()) for found in RULE.finditer(text)}
