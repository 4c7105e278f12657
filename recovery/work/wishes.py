"""A person's wish as a form carries it, what a verb leaves behind, and the ways in which it can be turned down."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime

from runs.models import Person

CLAIM_MINUTES = 30


@dataclass(frozen=True)
class Order:
    """A person's wish, as the form carries it.

    code        a reviewer's code for a rejection, as the tool declares it (`review.reject_codes`)
    amount      what a top-up adds; None for the most that is allowed
    outcome, reference    what is attested ("present" or "absent"), and the provider's own reference for it
    to          the id of the colleague a task is handed to; empty for the team
    until       when a snoozed task wakes
    value       what the requester said, as text, told on their behalf
    listed      one of a frozen list: whatever has moved since, it is overtaken, whichever the verb (U01)
    """

    task_id: uuid.UUID
    by: Person
    reason: str
    evidence_hash: str
    version: int
    key: str
    request_id: str = ""
    code: str = ""
    amount: int | None = None
    outcome: str = ""
    reference: str = ""
    to: str = ""
    until: datetime | None = None
    value: str = ""
    listed: bool = False


@dataclass(frozen=True)
class Done:
    """What a verb did, in a sentence, and what its decision keeps beside the evidence."""

    words: str
    kept: dict[str, object] = field(default_factory=dict)


class NoSuchTask(Exception):
    """There is no such task for this person."""


class Refused(Exception):
    """The verb is not allowed now; the message is the sentence that the disabled button carries."""

    def __init__(self, sentence: str, rule: str) -> None:
        super().__init__(sentence)
        self.rule = rule


class Overtaken(Exception):
    """The form rests on older facts; the message says what happened since. Nothing was changed or sent.

    `recorded` is the same sentence for the history, where "you" would be whoever reads it.
    """

    def __init__(self, sentence: str, recorded: str = "") -> None:
        super().__init__(sentence)
        self.recorded = recorded or sentence


class ReasonMissing(Exception):
    """A verb that acts wants a reason in words."""


class Unusable(Exception):
    """A field of the form cannot be used as it stands; the message says what would be right."""

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = name
