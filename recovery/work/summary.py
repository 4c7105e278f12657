"""What a colleague has to know who takes a task over: facts of the record, and no words of a model."""

from __future__ import annotations

from recovery.models import Decision
from recovery.panel import Panel
from recovery.rules import messages, policy
from recovery.rules.evidence import Evidence
from recovery.rules.situation import LABELS, moment, surely_nothing

MOST = 5


def of(seen: Panel) -> list[list[str]]:
    """Pairs of label and text, in a fixed order; every one is there."""
    return [
        ["What failed", _failed(seen)],
        ["Did anything change", _changed(seen)],
        ["Is retry safe", policy.retry_safe(seen.situation)[1]],
        ["Done so far", _done(seen)],
        ["Left", _left(seen)],
        ["Deadlines", _deadlines(seen)],
    ]


def _failed(seen: Panel) -> str:
    said = messages.title(seen.task.reason_code)
    failed = f"{seen.task.tool}: {said[:1].lower()}{said[1:]}." if seen.task.tool else f"{said}."
    action = seen.task.action
    fact = action.evidence.order_by("-id").values_list("fact", flat=True).first() if action is not None else None
    return f"{failed} {fact}" if fact else failed


def _changed(seen: Panel) -> str:
    evidence = seen.situation.evidence
    standing = list(seen.run.effects.filter(compensated_by=None).order_by("pk").values_list("step", flat=True)[:MOST])
    proven = f"Proven in this run: {', '.join(standing)}." if standing else "Nothing is proven in this run."
    return f"{_of_call(evidence)} {proven}" if evidence is not None else proven


def _of_call(evidence: Evidence) -> str:
    if evidence.effect == "read":
        return "No: the call only reads."
    if surely_nothing(evidence):
        return "No: it is proven that this call did nothing."
    if evidence.verdict == "conflict":
        return "The facts about this call contradict each other."
    if evidence.verdict in ("partial", "partial_final"):
        return "A part of this call happened."
    if evidence.verdict in ("present", "present_final") or evidence.observation == "ok_valid":
        return "Yes: this call took effect."
    return "Unknown: this call may have happened."


def _done(seen: Panel) -> str:
    made = Decision.objects.filter(task=seen.task).select_related("by").order_by("-id")[:MOST]
    now = seen.situation.now
    told = [
        f"{one.by or 'the clock'} chose “{LABELS.get(one.verb, one.verb)}” at {moment(one.requested_at, now)}"
        for one in reversed(list(made))
    ]
    action = seen.task.action
    tries = f"Tried {action.attempts} times, looked up {action.looks} times. " if action is not None else ""
    return f"{tries}{'; '.join(told) or 'Nobody has decided anything'}."


def _left(seen: Panel) -> str:
    at = seen.situation
    best = next((verb for verb in seen.verbs if verb.recommended), None)
    advice = f"Recommended: {best.label.lower()}." if best is not None else "No action is recommended."
    calls = "1 call is not settled." if at.open_calls == 1 else f"{at.open_calls} calls are not settled."
    return f"{calls} {advice}"


def _deadlines(seen: Panel) -> str:
    now, task = seen.situation.now, seen.task
    times = [("the task is due", task.due_at), ("the run's deadline is", seen.run.deadline_at),
             ("an approval counts until", seen.situation.approve_until), ("it sleeps until", task.snoozed_until),
             ("a look-up is final from", seen.situation.final_from)]  # fmt: skip
    told = "; ".join(f"{words} {moment(at, now)}" for words, at in times if at is not None)
    return f"{told[:1].upper()}{told[1:]}."
