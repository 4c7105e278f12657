"""What the way in may answer: the five permits, not there, not now, and the shapes that several answers share."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

from steadyhand.contract import OUTCOME_OF, Permit, RunOpened, StructuredError

from recovery import fallbacks
from recovery.proposal import Prepared, Refusal
from recovery.rules import messages
from runs import definitions, vault
from runs.definitions import Definition
from runs.ids import parse_id
from runs.models import Run
from runs.querysets import read_clock

DISPATCH_WITHIN_SECONDS = 5.0
ASK_AGAIN_SECONDS = 1.0


class NotFound(Exception):
    """There is no such thing for this caller: missing, foreign and malformed ids are one and the same (SEC-09)."""


class Conflict(Exception):
    """The request came too late or crossed another; the message says which, in a sentence."""


def known_id(text: str) -> uuid.UUID:
    """The id in a body. Raises NotFound for text that is no id."""
    found = parse_id(text)
    if found is None:
        raise NotFound
    return found


def reads_of(definition: Definition) -> list[str]:
    return [tool.name for tool in definition.manifest.tools if tool.effect == "read"]


def run_opened(run: Run, *, resumed: bool) -> RunOpened:
    definition = definitions.of_run(run)
    return RunOpened(
        run_id=str(run.pk),
        workflow=definition.name,
        workflow_id=str(definition.id),
        workflow_version=definition.version,
        state=run.state,
        resumed=resumed,
        reads=reads_of(definition),
    )


def seconds_between(start: datetime, end: datetime) -> float:
    """Seconds from one database time to another, never negative."""
    return max(0.0, round((end - start).total_seconds(), 3))


# --- the permits ----------------------------------------------------------------------------------------------


def execute(prepared: Prepared, attempt: uuid.UUID, *, number: int, fence: int, key: str, **more: Any) -> Permit:
    """Dispatch now. `more`: `arguments` where only a part may be sent, `refresh_credential` before the dispatch."""
    return Permit(
        answer="execute",
        run_id=str(prepared.run_id),
        step=prepared.step,
        action_id=prepared.action_id,
        attempt_id=str(attempt),
        attempt=number,
        fence=fence,
        idempotency_key=key if prepared.tool.idempotency.kind == "key" else None,
        timeout_seconds=prepared.tool.timeout_seconds,
        dispatch_within_seconds=DISPATCH_WITHIN_SECONDS,
        **more,
    )


def replay(prepared: Prepared, sealed: bytes | memoryview | None) -> Permit:
    return replay_result(prepared, vault.unseal(prepared.facts.definition.keys, sealed) if sealed else None)


def replay_result(prepared: Prepared, result: Any) -> Permit:
    return Permit(
        answer="replay", run_id=str(prepared.run_id), step=prepared.step, action_id=prepared.action_id, result=result
    )


def wait(
    prepared: Prepared,
    due_at: datetime | None,
    *,
    reason: str | None,
    sentence: str = "",
    now: datetime | None = None,
) -> Permit:
    """Wait: until a time that is known, or, without one, until a person or a look-up has settled it.

    `sentence` says why where it is not the call itself that is waited for; `now` is the time if it was just read.
    """
    now = now or read_clock()
    ready = due_at is not None and due_at <= now
    shown = now + timedelta(seconds=ASK_AGAIN_SECONDS) if ready else due_at
    told = reason is not None and (bool(sentence) or OUTCOME_OF[reason].value != "retryable")
    return Permit(
        answer="wait",
        run_id=str(prepared.run_id),
        step=prepared.step,
        action_id=prepared.action_id,
        due_at=shown,
        wait_seconds=seconds_between(now, shown) if shown else None,
        error=messages.error_for_model(reason, detail=sentence) if told and reason else None,
    )


def soon(prepared: Prepared, reason: str | None, since: datetime | None = None) -> Permit:
    """The worker is at it, since then: ask again in a moment."""
    now = read_clock()
    return wait(prepared, now + timedelta(seconds=moment(now, since)), reason=reason, now=now)


def moment(now: datetime, since: datetime | None) -> float:
    """Seconds until it is worth asking again: a look or a send takes milliseconds, and what takes longer is asked for
    ever more rarely."""
    return min(ASK_AGAIN_SECONDS, 0.03 + seconds_between(since, now) / 4) if since else 0.03


def deny(prepared: Prepared, refusal: Refusal) -> Permit:
    error = messages.error_for_model(refusal.reason, field=refusal.field, detail=refusal.sentence)
    if refusal.suggested:
        error = error.model_copy(update={"suggested_actions": list(refusal.suggested)})
    error = fallbacks.name_in(error, prepared.tool, refusal.reason)
    return Permit(
        answer="deny", run_id=str(prepared.run_id), step=prepared.step, action_id=prepared.action_id, error=error
    )


def stop(run: Run, step: str) -> Permit:
    """The run takes no further calls, for the reason that it carries."""
    return stopped(run.pk, step, messages.error_for_model(run.reason_code or "stopped_by_operator"))


def stopped(run_id: uuid.UUID, step: str, error: StructuredError) -> Permit:
    return Permit(answer="stop", run_id=str(run_id), step=step, error=error)
