"""What a person vouches for about a call, as it rests in a decision until a second person confirms it (F130)."""

from __future__ import annotations

from dataclasses import dataclass

from recovery.models import Decision, HumanTask
from runs.models import Person

VERDICTS = {"present": "present", "absent": "absent_final"}
"""What may be said, and what it is worth as evidence."""
WORDS = {"present": "it happened", "absent": "it did not happen"}


@dataclass(frozen=True)
class Statement:
    """What somebody vouches for, with the provider's own reference."""

    by: Person
    outcome: str
    reference: str

    def __str__(self) -> str:
        return f"{self.by} attests that {WORDS[self.outcome]} (reference {self.reference})"


def pending(task: HumanTask) -> Statement | None:
    """The statement that waits for a second person; None where none does."""
    if task.state != "awaiting_approval":
        return None
    made = Decision.objects.filter(task=task, verb="attest").select_related("by").latest("id")
    assert made.by is not None  # noqa: S101  (only a person attests)
    return Statement(made.by, **made.snapshot["attested"])
