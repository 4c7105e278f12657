"""The three answers on top of a task: what failed, did anything change, is retry safe."""

from __future__ import annotations

from datetime import datetime

from console import looks
from console.builders import words
from console.builders.attempts import came_back, missing, told
from console.builders.changed import OUTSIDE
from console.builders.evidence import words_of
from console.builders.record import Record
from console.looks import Look
from console.pages.common import Answer
from recovery.panel import STOPPED, Panel
from recovery.rules import messages, policy
from runs.models import Action, Attempt, Evidence

_CHANGED = {
    "unknown": "Outcome unknown: {what} may exist",
    "conflict": "Conflict: the records contradict each other",
    "partly": "Partly: only part of {what} is there",
    "yes": "Yes, proven: {what} exists once",
    "undone": "It did, and was undone",
    "partly_undone": "It did, and was undone only in part",
    "no": "No",
}
_UNCONFIRMED = "Believed, not confirmed: {what}"
"""Of a settled call whose later count nobody answered."""
_RUN_CHANGED = {
    "unknown": "Outcome unknown: more may have changed than is proven",
    "yes": "Yes, proven",
}
"""The same for a question about a whole run, which may have changed many things or one."""

_OUTSIDE = "The other system lists it; no call on record made it."

NEEDS_INPUT = "user_input_required"


def three(panel: Panel, record: Record, action: Action | None, answer: str) -> list[Answer]:
    """`answer` is what the task's call (or its run) changed."""
    return [
        _failed(panel, record, action),
        _changed(panel, record, action, answer),
        _retry(panel, record, action),
    ]


def _failed(panel: Panel, record: Record, action: Action | None) -> Answer:
    task = panel.task
    if action is None:
        look = Look("idle", "hand", messages.title(task.reason_code))
        return Answer("What failed", look, _stop_facts(panel, record) or _run_facts(record))
    tries = record.tries(action)
    if not tries:
        said = f"{action.tool}: {_lower(messages.title(task.reason_code))}"
        return Answer("What failed", Look("idle", "hand", said), "Nothing was sent.")
    last = tries[-1]
    named = f": {missing(action, last)}" if task.reason_code == NEEDS_INPUT and missing(action, last) else ""
    look = Look("idle", "timer", f"{action.tool}: {_lower(came_back(last).word)}{named}")
    amount = words.amount(action.value_minor, action.currency)
    sent = "permitted" if last.observed == "not_sent" else "sent"
    at = words.moment(last.dispatched_at, panel.situation.now)
    tried = f"attempt {last.number} of {record.limit(action)}, {sent} {at}"
    facts = ", ".join(filter(None, [amount, f"step `{action.step}`", tried]))
    return Answer("What failed", look, f"{facts}. The tool said: “{told(last)}”" if told(last) else f"{facts}.")


def _stop_facts(panel: Panel, record: Record) -> str:
    """Who stopped it, which switch and why, and at which call; empty for any other question."""
    if panel.task.reason_code != STOPPED:
        return ""
    step = f" It was about to call `{record.run.failed_step}`." if record.run.failed_step else ""
    return f"{panel.situation.stopped or 'The switch was lifted since'}.{step}"


def _run_facts(record: Record) -> str:
    run = record.run
    return (
        f"{run.turns} of {run.max_turns} turns, {run.tool_calls} of {run.max_tool_calls} calls. No call of its own."
    )


def _changed(panel: Panel, record: Record, action: Action | None, answer: str) -> Answer:
    amount = words.amount(action.value_minor, action.currency) if action else ""
    what = f"one {action.tool} of {amount}" if action and amount else "one effect"
    look = looks.ANYTHING_CHANGED[answer].saying(_CHANGED[answer].format(what=what))
    if panel.situation.unconfirmed:
        look = looks.ANYTHING_CHANGED["unknown"].saying(_UNCONFIRMED.format(what=what))
    if panel.task.reason_code == OUTSIDE:
        return Answer("Did anything change?", look.saying("Yes, outside"), _OUTSIDE)
    if action is None:
        look = look.saying(_RUN_CHANGED.get(answer, look.word))
        said = words.effects(len(record.standing), len(record.undone), len(record.partly))
        return Answer("Did anything change?", look, f"Effects of this run: {said}.")
    facts, tries = record.facts(action), record.tries(action)
    reads, now = action.effect == "read", panel.situation.now
    said = _items(record, action) or _last_fact(facts, tries, answer, now, reads=reads)
    return Answer("Did anything change?", look, said)


_ENDS = {
    "succeeded": "Done", "compensated": "Taken back", "refused_permanent": "Refused",
    "refused_transient": "Refused for now",
}  # fmt: skip


def _items(record: Record, action: Action) -> str:
    """The items of a call that carried many, by what became of each; empty for any other call."""
    ends: dict[str, list[str]] = {}
    for item in record.actions:
        if item.role == "item" and item.parent_id == action.pk:
            ends.setdefault(_ENDS.get(item.state, "Unknown"), []).append(item.step.removeprefix(f"{action.step}:"))
    return " ".join(f"{end}: {', '.join(names)}." for end, names in ends.items()).replace("`", "'")


def _last_fact(facts: list[Evidence], tries: list[Attempt], answer: str, now: datetime, *, reads: bool) -> str:
    probes = [fact for fact in facts if fact.kind == "probe"]
    if probes:
        made, last = words.plural(len(probes), "look-up"), probes[-1]
        return f"{made} made. {words.moment(last.started_at, now)}: {words_of(last)}"
    if facts:
        return facts[-1].fact
    if answer == "unknown":
        return "No look-up has been made yet."
    if answer == "yes":
        return "Proven by the provider's reply."
    if reads:
        return "It only reads, so it changed nothing."
    seen = {attempt.observed for attempt in tries}
    if seen <= {"not_sent"}:
        return "Nothing was sent." if not tries else "Nothing left the agent's machine, each try is proven not sent."
    if tries[-1].observation and tries[-1].observation.get("declared"):
        return "The tool refused it before anything was changed."
    return "The provider refused it." if "not_sent" not in seen else "It was refused, or was never sent."


def _input_words(action: Action | None, record: Record) -> str:
    tries = record.tries(action) if action else []
    field = missing(action, tries[-1] if tries else None) if action else ""
    what = f"the field `{field}`" if field else "what was asked for"
    return f"Nothing happened. The same call would be refused again; the requester has to change {what} first."


def _retry(panel: Panel, record: Record, action: Action | None) -> Answer:
    question = "Is retry safe?"
    if action is not None and action.state == "approved":
        return Answer(question, looks.APPROVED, "It is approved, and is sent once the agent proposes it again.")
    if panel.task.reason_code == "approval_required" and not panel.situation.settled:
        return Answer(question, looks.RETRY_SAFE["after_approval"], "Nothing was sent yet. It waits for an approval.")
    if panel.task.reason_code == NEEDS_INPUT and not panel.situation.settled:
        return Answer(question, looks.RETRY_SAFE["after_input"], _input_words(action, record))
    if panel.case is None or panel.situation.settled:
        _, sentence, rule = policy.retry_safe(panel.situation)
        return Answer(question, looks.RETRY_SAFE["nothing_to_retry"], sentence, rule)
    key, sentence, rule = policy.retry_safe(panel.situation)
    look = looks.RETRY_SAFE[key]
    if key == "not_yet":
        look = look.saying("Not yet: it could happen twice")
    return Answer(question, look, sentence, rule)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
