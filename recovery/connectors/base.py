"""What a look-up is asked and what it may answer (DECISIONS 5). A connector never claims that its answer is final."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from steadyhand.contract import Observation
from steadyhand.manifest import Connector, Idempotency, Look, Poll, Send

from recovery.rules.classify import Classified

Said = Literal["present", "absent", "partial", "processing", "conflict", "failed", "probe_failed"]


class Slots(Protocol):
    """What the templates of a request may name."""

    @property
    def action_id(self) -> str: ...
    @property
    def run_id(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def arguments(self) -> dict[str, Any]: ...


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


@dataclass(frozen=True)
class Finding:
    """What the outside system said: a verdict in a word and a sentence, how many effects it counted, and ours."""

    verdict: Said
    fact: str
    count: int | None = None
    external_id: str = ""
    record: Any = None
    raw: Any = None


def failed(fact: str, raw: Any = None) -> Finding:
    """The look-up itself did not answer; that says nothing about the effect (F042)."""
    return Finding("probe_failed", fact, raw=raw)
