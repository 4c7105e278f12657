"""What a task is about: the call that nobody has approved yet, or the dead letter of one that used all its tries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steadyhand.paths import MISSING, dig

from console import looks
from console.access import Visit
from console.builders import scope, words
from console.builders.attempts import came_back
from console.builders.record import Record
from console.pages.task import Letter, LetterTry, Request
from recovery.models import DeadLetter
from recovery.panel import Panel
from runs.models import Action, Attempt


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


def letter(panel: Panel, record: Record) -> Letter | None:
    """The record of a call that used all its tries."""
    found = panel.letter
    if found is None:
        return None
    seen = {attempt.number: attempt for attempt in record.attempts.get(found.action_id, [])}
    asked: dict[str, Any] = found.request.get("arguments") or {}
    return Letter(
        state=looks.look("dead_letter", found.state),
        failure=found.failure_class,
        generation=found.generation,
        request=[(str(name), scope.plain(value)) for name, value in asked.items()],
        tries=[_try(one, seen.get(one["number"])) for one in found.attempts],
        completed=[str(step) for step in found.completed_effects],
        owner=found.owner.name if found.owner else found.owner_team,
        next_action=next_of(found),
        recorded_at=found.recorded_at,
    )


def next_of(letter: DeadLetter) -> str:
    """What may be done with a letter now, in a sentence."""
    said: str = letter.next_action
    return _NEXT.get(letter.state, said)


_NEXT = {
    "replay_requested": "The replay is granted: the agent sends the call once it is resumed.",
    "replaying": "The replay is under way; its answer appears here.",
    "recovered": "Nothing is left to do: the call was recovered.",
    "discarded": "Nothing is left to do: the letter was discarded.",
}


def _try(one: dict[str, Any], attempt: Attempt | None) -> LetterTry:
    """In the words of the attempts' own table."""
    look = came_back(attempt) if attempt else looks.look("attempt", one["observed"] or "dispatched")
    said = f"{look.word} ({one['reason_code']})" if one["reason_code"] else look.word
    return LetterTry(one["number"], datetime.fromisoformat(one["at"]), said, one["layer"])


def _shown(arguments: Any, path: str) -> str:
    found = dig(arguments, path)
    return "not given" if found is MISSING else scope.plain(found)
