"""What is known about one action, as plain values: the only thing the decision table may look at."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast, get_args, get_type_hints

Effect = Literal["read", "write"]
Observation = Literal[
    "not_sent", "unknown", "ok_valid", "ok_invalid", "transient_reject", "permanent_reject", "policy_denied"
]
Key = Literal["none", "live", "expired"]
Verdict = Literal[
    "none",
    "present",
    "present_final",
    "absent",
    "absent_final",
    "partial",
    "partial_final",
    "processing",
    "conflict",
    "probe_failed",
]
Looks = Literal["due", "later", "spent"]
Proof = Literal["reply", "look", "look_final"]
Undo = Literal["none", "pending", "done", "held"]
Goal = Literal["forward", "rollback", "cancel"]
Circuit = Literal["closed", "half_slot", "shut"]
Gate = Literal["open", "shut"]


class Evidence(NamedTuple):
    """Everything known about one action at one moment (DECISIONS §2, §3; docs/decisions.md has each value).

    Built by name in code that mypy checks, or by `parse` from anything else.
    """

    effect: Effect
    observation: Observation
    key: Key
    reconcilable: bool
    verdict: Verdict
    looks: Looks
    proof: Proof
    compensable: bool
    undo: Undo
    goal: Goal
    attempts_left: bool
    budget_left: bool
    past_deadline: bool
    circuit: Circuit
    gate: Gate


class EvidenceError(ValueError):
    """Names the one field that cannot be read, and says in a sentence what would be accepted."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


VALUES: Mapping[str, tuple[str | bool, ...]] = {
    name: (True, False) if hint is bool else get_args(hint) for name, hint in get_type_hints(Evidence).items()
}
_NAMES = frozenset(VALUES)
_KINDS = [(name, type(values[0]), values) for name, values in VALUES.items()]


def parse(fields: Mapping[str, object]) -> Evidence:
    """The evidence in a plain mapping that holds exactly the fields of `Evidence`.

    Raises EvidenceError for a missing or unknown field, a value outside `VALUES` (1 is not true), or an
    `undo` outside a rollback.
    """
    if fields.keys() != _NAMES:
        raise _misnamed(fields)
    for name, kind, allowed in _KINDS:
        value = fields[name]
        if not isinstance(value, kind) or value not in allowed:
            raise EvidenceError(name, f"{name} must be {_choices(allowed)}")
    evidence = Evidence(**cast(Any, fields))
    if evidence.undo != "none" and evidence.goal != "rollback":
        raise EvidenceError("undo", "undo must be none unless the goal is rollback")
    return evidence


def _misnamed(fields: Mapping[str, object]) -> EvidenceError:
    # An unknown name comes first: a misspelt field is also a missing one, and the misspelling is the cause.
    for name in fields:
        if name not in _NAMES:
            return EvidenceError(str(name), f"unknown field; the fields are {', '.join(VALUES)}")
    missing = next(name for name in VALUES if name not in fields)
    return EvidenceError(missing, f"{missing} is missing; it must be {_choices(VALUES[missing])}")


def _choices(allowed: tuple[str | bool, ...]) -> str:
    words = [str(value).lower() if isinstance(value, bool) else value for value in allowed]
    return f"{', '.join(words[:-1])} or {words[-1]}"
