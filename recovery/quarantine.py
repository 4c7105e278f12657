"""Messages on the queue that are not ours: kept by what they look like, with an owner, and never carried out (F057).

A message says which decision waits, and nothing else. Its body is not kept: anybody may have put in anything.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from typing import Any

from django.db.models import F

from recovery import tasks
from recovery.models import QuarantinedMessage
from recovery.work.nudges import A_MESSAGE
from runs import redact
from runs.ids import parse_id
from runs.querysets import database_now

EXECUTE: str = tasks.execute.name
MANY: str = tasks.execute_many.name
SWEEP: str = tasks.sweep.name
LARGEST_BYTES = 16 * 1024
"""A message of ours has some hundred bytes."""
OWNER = "Operations"


def wrong_with(name: Any, content_type: Any, body: bytes | str) -> str | None:
    """Why a message is none of ours, in words; None for an order to sweep or to carry out decisions."""
    if len(body) > LARGEST_BYTES:
        return f"too large: {len(body)} bytes"
    if content_type != "application/json":
        return "not JSON by its own word"
    if name not in (EXECUTE, MANY, SWEEP):
        return "no task of this product"
    given = _arguments(body)
    if name == SWEEP:
        return None if given == [] else "unknown arguments"
    if given is None or len(given) != 1:
        return "not the id of a decision"
    ids = given[0] if name == MANY else given
    return None if _are_ids(ids) else "not the id of a decision"


def _are_ids(told: Any) -> bool:
    return isinstance(told, list) and 0 < len(told) <= A_MESSAGE and all(parse_id(str(one)) for one in told)


def _arguments(body: bytes | str) -> list[Any] | None:
    """The positional arguments; None for a body that is none of Celery's, or brings others."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not (isinstance(told, list) and len(told) == 3 and isinstance(told[0], list) and told[1] == {}):
        return None
    return told[0]


def keep(reason: str, body: bytes | str, *, name: Any = "", content_type: Any = "") -> None:
    """Write the message down, once for each that looks the same and is still open; how often it came is counted."""
    raw = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(raw).hexdigest()
    seen = QuarantinedMessage.objects.filter(digest=digest, settled_at__isnull=True)
    if seen.update(times=F("times") + 1, last_at=database_now()):
        return
    QuarantinedMessage.objects.bulk_create(
        [
            QuarantinedMessage(
                reason=redact.clean_text(reason, 200),
                task=redact.clean_text(str(name), 120),
                content_type=redact.clean_text(str(content_type), 120),
                size=len(raw),
                digest=digest,
                owner_team=OWNER,
            )
        ],
        ignore_conflicts=True,
    )


def settle(message_id: uuid.UUID) -> bool:
    """Somebody has looked at it; False if there is no such open one."""
    return bool(
        QuarantinedMessage.objects.filter(pk=message_id, settled_at__isnull=True).update(settled_at=database_now())
    )


def of_headers(headers: Mapping[str, Any] | None) -> Any:
    """The task that a message names, if it names one."""
    return headers.get("task", "") if isinstance(headers, Mapping) else ""
