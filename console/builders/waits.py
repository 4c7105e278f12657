"""What a run waits for, in a sentence: a time, its agent, a look-up, or a person."""

from __future__ import annotations

from datetime import datetime

from console import looks
from console.builders import words
from console.builders.record import Record
from console.pages.common import Flash
from recovery import course
from recovery.rules import bounds
from recovery.work import orders
from runs.models import Action
from runs.states import RUN_OPEN

_REFUSED = ("refused_transient", "absent_final")


def of(record: Record, now: datetime, asked: str) -> Flash | None:
    """None for a run that has ended or has nothing open; `asked` names the task that a person is asked in."""
    if record.run.state not in RUN_OPEN:
        return None
    lines = [sentence(record, action, now) for action in record.unsettled]
    lines += [f"A person is asked in {asked}."] if asked else []
    if not lines and record.run.state == "recovering":
        lines = ["It waits for the agent to resume."]
    return Flash(looks.NOTICE["info"], "What it waits for", " ".join(lines)) if lines else None


def sentence(record: Record, action: Action, now: datetime) -> str:
    """What one open call waits for."""
    call, due_at = f"`{action.step}`", action.due_at
    if action.reason_code == "circuit_open" and due_at is not None:
        return f"{call}: the circuit of what it calls, asked again at {words.moment(due_at, now)}."
    if action.state in _REFUSED or course.goes_again_unsettled(action):
        return f"{call}: {next_try(record, action, now)}."
    if action.state == "proposed" and _by_worker(record, action):
        return f"{call}: the worker, to send it."
    if action.state == "permitted":
        tries = record.tries(action)
        until = f", due by {words.moment(tries[-1].lease_until, now)}" if tries else ""
        return f"{call}: the agent's report{until}."
    if action.state == "probing":
        return f"{call}: a look-up under way."
    if action.state == "awaiting_approval":
        until = f", until {words.moment(due_at, now)}" if due_at else ""
        return f"{call}: an approval{until}."
    if action.state == "approved":
        return f"{call}: the agent, to send what was approved."
    if due_at is not None:
        moment = f"a look-up, due {words.moment(due_at, now)}" if due_at > now else "a look-up, due now"
        return f"{call}: {moment}{_final(record, action, now)}."
    if action.reason_code == "user_input_required":
        field = f"`{action.error_field}`" if action.error_field else "what was asked for"
        return f"{call}: the requester, who has to change {field}."
    return f"{call}: a decision."


def next_try(record: Record, action: Action, now: datetime) -> str:
    """When the same call may go out again, and whose wish that is."""
    if action.due_at is None or action.due_at <= now:
        return f"{'the worker' if _by_worker(record, action) else 'the agent'}, to send it again"
    tries = record.tries(action)
    asked = tries[-1].retry_after_seconds if tries else None
    why = f" (the provider asked for {words.lasting(asked)})" if asked else ""
    return f"next try not before {words.moment(action.due_at, now)}{why}"


def _by_worker(record: Record, action: Action) -> bool:
    tool = record.tool(action)
    return tool is not None and orders.sent_by_worker(action, tool)


def _final(record: Record, action: Action, now: datetime) -> str:
    tool, tries = record.tool(action), record.tries(action)
    if tool is None or not tries or tries[-1].ended_at is None:
        return ""
    final_at = bounds.final_from(tool, tries[-1].ended_at)
    if final_at is None:
        return "; finding nothing proves nothing, for no bound is declared"
    return f"; final from {words.moment(final_at, now)}" if final_at > now else "; its answer is final"
