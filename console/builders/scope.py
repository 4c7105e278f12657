"""Intent and authorized scope: what was asked, granted, attempted, and whether it goes beyond."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from console import looks
from console.builders import words
from console.builders.record import Record
from console.looks import Look
from console.pages.task import Scope
from recovery.work.approvals import REVIEW
from runs.models import Action, Run

SHOWN_FIELDS = 6


def of(record: Record, action: Action | None, now: datetime) -> Scope:
    """`action` is the call that the task is about, or None for a task about the run."""
    run, granted = record.run, record.run.scope or {}
    exceeds, why = _exceeds(run, action)
    return Scope(
        asked=run.intent,
        asked_note=f"Customer reference {run.customer_ref}" if run.customer_ref else "",
        granted=_granted(granted),
        granted_note=_until(granted, now),
        attempted=_attempted(action) if action else "No call of its own",
        attempted_note=f"Step `{action.step}`" if action else "",
        exceeds=exceeds,
        exceeds_note=why,
        source=f"Requested by {run.requester}" if run.requester else "",
        asked_at=run.opened_at,
    )


def arguments(action: Action) -> list[tuple[str, str]]:
    """The redacted arguments as field and text, in their order; nested values in short form."""
    held: Any = action.arguments
    return [(str(name), plain(value)) for name, value in held.items()] if isinstance(held, dict) else []


def _granted(scope: dict[str, Any]) -> str:
    parts = []
    limit = words.amount(scope.get("max_amount_minor"), scope.get("currency") or "")
    if limit:
        parts.append(f"Up to {limit} a call")
    for field, ids in (scope.get("ids") or {}).items():
        shown = ", ".join(f"`{_quiet(one)}`" for one in ids[:SHOWN_FIELDS])
        parts.append(f"{field} {shown}{' and more' if len(ids) > SHOWN_FIELDS else ''}")
    return "; ".join(parts) or "No limit recorded"


def _until(scope: dict[str, Any], now: datetime) -> str:
    ends: datetime | None = parse_datetime(scope["expires_at"]) if scope.get("expires_at") else None
    return f"until {words.moment(ends, now)}" if ends else ""


def _attempted(action: Action) -> str:
    amount = words.amount(action.value_minor, action.currency)
    fields = [f"{name} `{_quiet(value)}`" for name, value in arguments(action)[:SHOWN_FIELDS]]
    return "; ".join(filter(None, [f"`{action.tool}`{' ' + amount if amount else ''}", *fields]))


def _exceeds(run: Run, action: Action | None) -> tuple[Look, str]:
    limit = (run.scope or {}).get("max_amount_minor")
    if action is not None and action.reason_code == "policy_denied" and action.error_field.startswith(REVIEW):
        return looks.EXCEEDS["nothing"], "A reviewer rejected it"
    if action is not None and action.reason_code == "policy_denied":
        return looks.EXCEEDS["exceeds"], f"{action.error_field or 'The call'} was refused before dispatch"
    if not any((run.scope or {}).values()):
        return looks.EXCEEDS["unchecked"], ""
    if limit is not None and action is not None and action.value_minor is not None:
        return looks.EXCEEDS[
            "nothing"
        ], f"{words.amount(limit - action.value_minor, action.currency)} below the limit"
    return looks.EXCEEDS["nothing"], "Checked before dispatch"


def plain(value: Any) -> str:
    """A value as it travels: text as it is, anything else as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:119]}…"


def _quiet(text: object) -> str:
    """Backticks mark code in the templates; text from outside must not end the mark."""
    return str(text).replace("`", "'")
