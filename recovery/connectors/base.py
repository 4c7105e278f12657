"""What a look-up is asked and what it may answer (DECISIONS 5). A connector never claims that its answer is final."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from steadyhand.manifest import Connector, Look

Said = Literal["present", "absent", "partial", "processing", "conflict", "probe_failed"]


@dataclass(frozen=True)
class Question:
    """Everything a look-up needs about one action. `arguments` are the real ones: only the worker holds them."""

    action_id: str
    run_id: str
    key: str
    arguments: dict[str, Any]
    connector: Connector
    look: Look | None


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
