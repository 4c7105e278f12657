"""What a task is about: the call that nobody has approved yet, or the dead letter of one that used all its tries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steadyhand.paths import MISSING, dig

from console import looks
from console.access import Visit
from console.builders import scope, words
from console.builders.record import Record
from console.pages.task import Letter, LetterTry, Request
from recovery.panel import Panel
from runs.models import Action


def request(visit: Visit, panel: Panel, record: Record, action: Action | None) -> Request | None:
    """Exactly what would be sent, as it was recorded (redacted), for whoever has to agree; None for another task."""
    if action is None or not panel.situation.awaiting_approval:
        return None
    tool = record.tool(action)
    review = tool.review if tool else None
    return Request(
        fields=scope.arguments(action),
        tool=action.tool,
        identity=action.action_id,
        requester=record.run.requester or "nobody named",
        deciders=f"On-call and admins of {visit.named(action.tenant_id)}, but not whoever asked for it",
        amount=words.money(action.value_minor, action.currency),
        summary=review.summary if review else "",
        context=[(path, _shown(action.arguments, path)) for path in review.context] if review else [],
        until=action.due_at,
    )


def letter(panel: Panel) -> Letter | None:
    """The record of a call that used all its tries."""
    found = panel.letter
    if found is None:
        return None
    asked: dict[str, Any] = found.request.get("arguments") or {}
    return Letter(
        state=looks.look("dead_letter", found.state),
        failure=found.failure_class,
        generation=found.generation,
        request=[(str(name), str(value)) for name, value in asked.items()],
        tries=[_try(one) for one in found.attempts],
        completed=[str(step) for step in found.completed_effects],
        owner=found.owner.name if found.owner else found.owner_team,
        next_action=found.next_action,
        recorded_at=found.recorded_at,
    )


def _try(one: dict[str, Any]) -> LetterTry:
    look = looks.look("attempt", one["observed"] or "dispatched")
    said = ", ".join(str(part) for part in (one["status"], one["reason_code"]) if part)
    return LetterTry(
        one["number"], datetime.fromisoformat(one["at"]), f"{look.word} ({said})" if said else look.word, one["layer"]
    )


def _shown(arguments: Any, path: str) -> str:
    found = dig(arguments, path)
    return "not given" if found is MISSING else str(found)
