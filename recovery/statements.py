"""One person's word that counts for nothing until a second person's: a statement about a call, or a wish that is too
much for one (F130, SEC-08). It rests in its decision, bound to what it was said about.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from recovery.models import Decision, HumanTask
from runs.models import Person

VERDICTS = {"present": "present", "absent": "absent_final"}
"""What may be said, and what it is worth as evidence."""
WORDS = {"present": "it happened", "absent": "it did not happen"}
ASKED_FOR = ("waive", "replay", "discard")
"""Verbs that one person asks for and a second one carries out, where they are too much for one."""


@dataclass(frozen=True)
class Statement:
    """Who said it, and by which verb. `about` is the wish in words, `bound` what it was made about.

    Of an attestation `outcome` is what is vouched for, with the provider's own `reference`.
    """

    by: Person
    verb: str
    about: str = ""
    bound: dict[str, Any] = field(default_factory=dict)
    outcome: str = ""
    reference: str = ""

    def __str__(self) -> str:
        if self.verb == "attest":
            return f"{self.by} attests that {WORDS[self.outcome]} (reference {self.reference})"
        return f"{self.by} asks {self.about}"


def pending(task: HumanTask) -> Statement | None:
    """The word that waits for a second person; None where none does."""
    if task.state != "awaiting_approval":
        return None
    made = Decision.objects.filter(task=task, verb__in=("attest", *ASKED_FOR)).select_related("by").latest("id")
    assert made.by is not None  # noqa: S101  (only a person's word waits)
    kept = made.snapshot["attested"] if made.verb == "attest" else made.snapshot["asked"]
    return Statement(made.by, made.verb, **kept)
