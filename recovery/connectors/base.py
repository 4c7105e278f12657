"""What a look-up is asked and what it may answer (DECISIONS 5). A connector never claims that its answer is final."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from steadyhand.connector import Answer, Ask
from steadyhand.contract import Observation
from steadyhand.judging import Seen, fields_of
from steadyhand.manifest import Connector, Idempotency, Look, Poll, Send

from recovery.rules import foreign
from recovery.rules.classify import Classified
from runs.redact import clean_text

Said = Literal["present", "absent", "partial", "undone", "processing", "conflict", "failed", "probe_failed"]


@dataclass(frozen=True)
class Whom:
    """Whom a connector serves: its name in the manifest, the tenant, and the secrets that sign to its endpoint."""

    name: str = ""
    tenant: str = ""
    secrets: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Outgoing:
    """One request that the worker makes itself: an undo, a poll, or a call that no agent may make."""

    action_id: str
    run_id: str
    key: str
    tool: str
    attempt: int
    arguments: dict[str, Any]
    send: Send
    connector: Connector
    idempotency: Idempotency
    timeout_seconds: float
    undoes: bool = False
    whom: Whom = field(default_factory=Whom)

    def ask(self) -> Ask:
        return Ask(
            tool=self.tool, action_id=self.action_id, run_id=self.run_id, key=self.key, arguments=self.arguments,
            tenant=self.whom.tenant, attempt=self.attempt,
        )  # fmt: skip


@dataclass(frozen=True)
class Polling:
    """How the end of an accepted job is asked for: the request, and how to read its answer.

    `outgoing` is None where the accepted reply lacks what the poll needs; `lacks` says what. `classify` types the
    answer by the poll tool's contract; `fits` says whether it may stand as the first tool's own result.
    """

    poll: Poll
    outgoing: Outgoing | None
    lacks: str
    accepted_id: str
    classify: Callable[[Observation], Classified]
    fits: Callable[[Any], bool]


@dataclass(frozen=True)
class Question:
    """Everything a look-up needs about one action. `arguments` are the real ones: only the worker holds them."""

    action_id: str
    run_id: str
    key: str
    arguments: dict[str, Any]
    connector: Connector
    look: Look | None
    polling: Polling | None = None
    tool: str = ""
    match: dict[str, Any] = field(default_factory=dict)
    whom: Whom = field(default_factory=Whom)

    def ask(self) -> Ask:
        return Ask(
            tool=self.tool, action_id=self.action_id, run_id=self.run_id, key=self.key, arguments=self.arguments,
            tenant=self.whom.tenant,
        )  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """What the outside system said: a verdict in a word and a sentence, how many effects it counted, and ours.

    `fault`: it did not answer, or answered that it is broken; its circuit counts that (F113).
    """

    verdict: Said
    fact: str
    count: int | None = None
    external_id: str = ""
    record: Any = None
    raw: Any = None
    fault: bool = False


def failed(fact: str, raw: Any = None, *, fault: bool = False) -> Finding:
    """The look-up itself did not answer; that says nothing about the effect (F042)."""
    return Finding("probe_failed", fact, raw=raw, fault=fault)


def read(answer: Answer, question: Question) -> Finding:
    """What the answer of a connector comes to that counts by itself: more than one effect is a conflict, whatever it
    calls it (F029), and one whose fields are not ours is none of ours to believe (F044, F045)."""
    seen = Seen(
        answer.verdict, answer.count, foreign.name(answer.external_id), answer.record, clean_text(answer.fact),
        raw=answer.record,
    )  # fmt: skip
    if seen.verdict != "failed" and seen.count is not None and seen.count > 1:
        return Finding(
            "conflict", seen.fact or f"{seen.count} records carry our reference.", seen.count, raw=seen.raw
        )
    if seen.verdict in ("present", "undone") and question.match:
        seen = fields_of(seen, question.match, question)
    return told(seen)


def told(seen: Seen) -> Finding:
    """The same in the words of the record, where `failed` is what a poll says of a job (base: probe_failed)."""
    said: Said = "probe_failed" if seen.verdict == "failed" else seen.verdict
    fact = seen.fact or _SENTENCES[seen.verdict].format(seen.external_id)
    kept = seen.record if said not in ("absent", "probe_failed") else None
    return Finding(said, fact, seen.count, seen.external_id, kept, seen.raw)


_SENTENCES = {
    "present": "One record is ours: {}.",
    "absent": "The connector found nothing of ours.",
    "partial": "{} is ours and not whole.",
    "undone": "{} is ours, and was taken back there.",
    "processing": "It is still being processed.",
    "conflict": "What the connector found contradicts itself.",
    "failed": "The connector got no answer.",
}
