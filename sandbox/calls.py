"""The plain values that pass between the rooms of the sandbox: a call, a refusal, and what ends a call."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

MAX_BODY_BYTES = 256 * 1024
MAX_LIST_ITEMS = 500
MAX_HANG_SECONDS = 120


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request that reached a service; ``fields`` are path parameters with the body (or the query)."""

    service: str
    operation: str
    kind: str
    method: str
    path: str
    fields: dict[str, Any]
    reference: str = ""
    action_id: str = ""
    key: str = ""
    body_sha256: str = ""
    arrival_id: int = 0

    @property
    def arguments_hash(self) -> str:
        """What an idempotency key is compared by: the verb, the path and the arguments."""
        return hashlib.sha256(canonical([self.method, self.path, self.fields]).encode()).hexdigest()


class Refused(Exception):
    """The call is answered with an error object and changes nothing."""

    def __init__(self, status: int, code: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"code": code, "message": message, **more}}


class Forgotten(Exception):
    """The world was reset while this call was under way: it must leave no trace in the new one."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Bytes for the wire; ``sent_bytes`` below the body's length breaks off in the middle of it."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    sent_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Cut:
    """No reply: the connection ends by a reset (``rst``) or an orderly close (``fin``)."""

    how: str = "rst"
    outcome: str = "dropped"


Ending = Answer | Cut


def canonical(value: Any) -> str:
    """One text per JSON value, whatever the order of its keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def json_answer(status: int, body: Any, headers: dict[str, str] | None = None) -> Answer:
    """An ordinary JSON reply."""
    raw = json.dumps(body, ensure_ascii=False).encode()
    return Answer(status=status, body=raw, headers=headers or {})


def iso(at: float) -> str:
    """Seconds since 1970 as UTC text with milliseconds, cut and never rounded up."""
    text = datetime.fromtimestamp(int(at * 1000) / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def parse_time(text: str) -> float:
    """ISO 8601 with an offset as seconds since 1970; ``ValueError`` when it is naive or no time."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00").replace(" ", "+"))
    if moment.tzinfo is None:
        raise ValueError("a time needs an offset")
    return moment.timestamp()


def parse_json_object(raw: bytes) -> dict[str, Any]:
    """A JSON object without duplicate keys, non-finite numbers or lone surrogates, else ``Refused`` 400."""
    try:
        value = json.loads(raw.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
        canonical(value).encode()
    except (ValueError, RecursionError) as error:
        raise Refused(400, "invalid_json", f"The body is not usable JSON: {error}") from error
    if not isinstance(value, dict):
        raise Refused(400, "invalid_json", "The body must be a JSON object.")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key is given twice")
    return made


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")
