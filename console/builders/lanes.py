"""A run on one time axis: its calls, the waits between them, look-ups, and what people did."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

from console import looks, waterfall
from console.builders import words
from console.builders.attempts import came_back
from console.builders.record import Record, answer_of
from console.builders.waits import next_try
from console.waterfall import Lane, Moment, Stretch, Waterfall
from recovery.rules import bounds
from recovery.rules.policy import LABELS
from runs.models import Action, Attempt, Event, Evidence

MOST_LANES = 40
_CSS = {"ok_valid": "ok", "ok_invalid": "unk", "unknown": "unk", "transient_reject": "warn", "not_sent": "idle"}
_ACTS = ("claim", "release", "reconcile", "retry", "resume", "cancel")


def draw(record: Record, events: list[Event], now: datetime, stopped_at: datetime | None) -> Waterfall:
    """`events` newest first; `stopped_at` is when a budget stopped the run. The axis ends with the run, or now."""
    run = record.run
    end = run.ended_at or now
    lanes = [lane for action in record.actions[:MOST_LANES] for lane in _of_call(record, action, end, now)]
    lanes += [*_planned(record), *_people(events, (end - run.opened_at) / 6)]
    return waterfall.draw(
        lanes or [Lane("No calls yet")],
        start=run.opened_at,
        end=max(end, run.opened_at + timedelta(seconds=1)),
        label=_label(record, end, now),
        fired_at=stopped_at,
        fired=(run.reason_code or "").replace("_", " "),
    )


def _label(record: Record, end: datetime, now: datetime) -> str:
    calls = words.plural(len(record.actions), "call")
    return f"The run from {words.moment(record.run.opened_at, now)} to {words.moment(end, now)}: {calls}."


def _of_call(record: Record, action: Action, end: datetime, now: datetime) -> list[Lane]:
    tries = record.tries(action)
    stretches = [_sent(one, end) for one in tries]
    if tries and action.settled_at is None and answer_of(action) == "unknown":
        since = tries[-1].ended_at or tries[-1].lease_until
        if since < end:
            stretches.append(
                Stretch(
                    since,
                    None if record.run.ended_at is None else end,
                    "unk",
                    _unknown_words(record, action, since, now),
                    True,
                )
            )
    elif tries and action.settled_at is not None and answer_of(action) in ("yes", "no"):
        stretches += _resolved(action, tries[-1])
    lanes = [Lane(action.step, stretches)]
    waits = [_wait(before, after) for before, after in pairwise(tries) if before.ended_at]
    if tries and action.state in ("refused_transient", "absent_final") and action.settled_at is None:
        since = tries[-1].ended_at or tries[-1].dispatched_at
        waits.append(Stretch(since, record.run.ended_at, "idle", next_try(record, action, now), True))
    if waits:
        lanes.append(Lane("wait", waits))
    looked = [Stretch(fact.started_at, fact.recorded_at, "idle", _found(fact))
              for fact in record.facts(action) if fact.kind == "probe"]  # fmt: skip
    return [*lanes, Lane("Look-up", looked)] if looked else lanes


def _unknown_words(record: Record, action: Action, since: datetime, now: datetime) -> str:
    tool = record.tool(action)
    final_at = bounds.final_from(tool, since) if tool else None
    final = f", a look-up is final from {words.moment(final_at, now)}" if final_at else ""
    return f"outcome unknown{final}"


def _sent(attempt: Attempt, end: datetime) -> Stretch:
    if attempt.observed is None:
        return Stretch(attempt.dispatched_at, None, "move", "dispatched", True)
    look = came_back(attempt)
    css = _CSS.get(attempt.observed, look.css)
    if attempt.observed == "unknown":
        return Stretch(attempt.dispatched_at, attempt.ended_at or end, "move", "dispatched", True)
    return Stretch(attempt.dispatched_at, attempt.ended_at, css, look.word)


def _resolved(action: Action, last: Attempt) -> list[Stretch]:
    """The time from a lost reply to its proof stays visible as unknown; what was proven stands at its end."""
    if last.observed != "unknown" or last.ended_at is None or action.settled_at is None:
        return []
    proven = answer_of(action) == "yes"
    return [
        Stretch(last.ended_at, action.settled_at, "unk", "", True),
        Stretch(
            action.settled_at, action.settled_at, "ok" if proven else "idle", "proven" if proven else "did not happen"
        ),
    ]


def _wait(before: Attempt, after: Attempt) -> Stretch:
    asked = before.retry_after_seconds
    said = f"Retry-After {words.lasting(asked)}" if asked else "backing off"
    return Stretch(before.ended_at or before.dispatched_at, after.dispatched_at, "idle", said)


def _planned(record: Record) -> list[Lane]:
    if record.run.ended_at is not None or not record.unsettled:
        return []
    blocker = record.unsettled[0]
    since = blocker.first_dispatched_at or blocker.created_at
    return [
        Lane(tool.name, [Stretch(since, None, "empty", f"blocked by {blocker.step}", True)])
        for tool in record.planned
    ]


def _people(events: list[Event], apart: timedelta) -> list[Lane]:
    """What people did; acts closer than `apart` share one mark, for their words would lie on each other."""
    moments: list[Moment] = []
    for event in reversed(events):
        said = _act(event)
        if said and moments and event.at - moments[-1].at < apart:
            moments[-1] = Moment(moments[-1].at, f"{moments[-1].text}; {said}")
        elif said:
            moments.append(Moment(event.at, said))
    return [Lane("Operator", [], moments)] if moments else []


def _found(fact: Evidence) -> str:
    word = looks.VERDICT[fact.verdict].word if fact.verdict in looks.VERDICT else fact.verdict
    return word[:1].lower() + word[1:]


def _act(event: Event) -> str:
    verb = event.kind.removeprefix("verb_")
    if event.actor_kind == "person" and verb in _ACTS and verb != event.kind:
        return f"{event.actor}: {LABELS[verb].lower()}"
    return "task opened" if event.kind == "task_opened" else ""
