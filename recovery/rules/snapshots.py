"""What a recommendation rested on, as plain values: stored with the decision, hashed, and decided again on request.

Pure. A snapshot holds everything that the assembly reads, the moment, the fields that the table got and its answer:
a past recommendation is recomputed from the decision's own row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, cast, get_type_hints

from steadyhand.manifest import Tool

from recovery.rules import evidence as evidences
from recovery.rules.assembly import assemble
from recovery.rules.decide import TABLE_VERSION, Action, NextAction, decide
from recovery.rules.evidence import Evidence
from recovery.rules.known import Fact, Known, Try

MOMENT = ("looks_made", "due_at", "next_due_at", "deadline_at", "ends_at", "budget_left", "undo_in_time")
"""Parts of what is known that move with the clock: a form that was drawn a moment ago still fits them (F119)."""
UNREAD = frozenset({"title", "input_schema", "output_schema", "sensitive_fields", "review"})
PARTS = ("facts", "moment", "now", "evidence", "answer", "table_version")


class Again(NamedTuple):
    """A recommendation then and now. `differing`: fields of the evidence that come out otherwise, then and now."""

    then: NextAction
    now: NextAction
    version_then: int
    differing: dict[str, tuple[object, object]]
    intact: bool

    @property
    def same(self) -> bool:
        return self.intact and self.then == self.now and not self.differing


class Unreadable(ValueError):
    """The snapshot was stored before everything needed was kept, or for a decision about no call."""


def taken(known: Known, now: datetime, evidence: Evidence, answer: NextAction) -> dict[str, Any]:
    """The snapshot as JSON values; its `digest` covers all of it."""
    plain = cast(dict[str, Any], _plain(known))
    kept: dict[str, Any] = {
        "facts": {name: value for name, value in plain.items() if name not in MOMENT},
        "moment": {name: plain[name] for name in MOMENT},
        "now": now.isoformat(),
        "evidence": evidence._asdict(),
        "answer": list(answer),
        "table_version": TABLE_VERSION,
    }
    return kept | {"digest": _digest(kept)}


def hash_of(known: Known) -> str:
    """The evidence hash that a button carries: it changes when a fact does, not when time passes (F119)."""
    plain = cast(dict[str, Any], _plain(known))
    return _digest({name: value for name, value in plain.items() if name not in MOMENT})


def again(snapshot: Mapping[str, Any]) -> Again:
    """Assemble and decide from a stored snapshot with today's code. Raises Unreadable."""
    if not all(part in snapshot for part in PARTS):
        raise Unreadable("This decision keeps no facts that a recommendation could be computed from.")
    stored = evidences.parse(snapshot["evidence"])
    # A circuit is no fact of the call: what it was stands in the evidence only.
    computed = assemble(known_of(snapshot), datetime.fromisoformat(snapshot["now"]))._replace(circuit=stored.circuit)
    pairs = zip(Evidence._fields, stored, computed, strict=True)
    action, rule, reason = snapshot["answer"]
    return Again(
        then=NextAction(Action(action), rule, reason),
        now=decide(computed),
        version_then=snapshot["table_version"],
        differing={name: (was, is_now) for name, was, is_now in pairs if was != is_now},
        intact=snapshot.get("digest") == _digest({part: snapshot[part] for part in PARTS}),
    )


def hash_in(snapshot: Mapping[str, Any]) -> str:
    """The evidence hash that belongs to a stored snapshot."""
    return _digest(snapshot["facts"])


def known_of(snapshot: Mapping[str, Any]) -> Known:
    """What was known, as it was given to the assembly."""
    plain = {**snapshot["facts"], **snapshot["moment"]}
    return cast(
        Known,
        _read(
            Known,
            plain
            | {
                "tool": Tool.model_validate(plain["tool"]),
                "tries": tuple(_read(Try, one) for one in plain["tries"]),
                "facts": tuple(_read(Fact, one) for one in plain["facts"]),
            },
        ),
    )


def _plain(value: object) -> object:
    if isinstance(value, Tool):
        return value.model_dump(mode="json", exclude=set(UNREAD))
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value


def _read(kind: type, plain: Mapping[str, Any]) -> object:
    """A row again; a field that the row has lost since is left out, one that it has gained takes its default."""
    times = _times(kind)
    given = {field.name: plain[field.name] for field in fields(kind) if field.name in plain}
    return kind(
        **{
            name: datetime.fromisoformat(value) if name in times and isinstance(value, str) else value
            for name, value in given.items()
        }
    )


@lru_cache(maxsize=8)
def _times(kind: type) -> frozenset[str]:
    return frozenset(name for name, hint in get_type_hints(kind).items() if "datetime" in str(hint))


def _digest(plain: object) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
