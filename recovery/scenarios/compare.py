"""What differed between the right answer of a scenario and what the record holds, in sentences. Pure.

The order is that of the format: sends, outcome, side effect, task, alert, texts, checkpoints, and the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from recovery.scenarios import words
from recovery.scenarios.format import Scenario
from recovery.scenarios.seen import Moment, Seen


def differences(scenario: Scenario, seen: Seen) -> list[str]:
    """Every difference; an empty list is a pass."""
    expect = scenario.expect
    always = (_faults, _sends, _outcome, _texts, _checkpoints, _blocked, _audit)
    checks = always if _is_another_right_answer(expect, seen) else (*always, *_OF_THE_FIRST_ANSWER)
    return [line for check in checks for line in check(expect, seen)]


def _is_another_right_answer(expect: dict[str, Any], seen: Seen) -> bool:
    """What else is expected belongs to the first outcome; another accepted one has its own tasks and effects."""
    other = [pair for pair in expect.get("accept") or [] if pair.get("outcome") != expect.get("outcome")]
    return any(same(pair, seen.outcome, seen.reason) for pair in other)


def _faults(expect: dict[str, Any], seen: Seen) -> Iterator[str]:
    """An error that the code caught and logged is a fault all the same."""
    yield from (f"the log holds an error: {line}" for line in seen.faults)


def _sends(expect: dict[str, Any], seen: Seen) -> Iterator[str]:
    for tool, most in (expect.get("max_dispatches") or {}).items():
        sent = seen.sends.get(tool, seen.sends_of_step.get(tool, 0))
        if sent > most:
            yield f"{tool} was sent {sent} times, at most {most} are right"


def _outcome(expect: dict[str, Any], seen: Seen) -> Iterator[str]:
    right = [expect, *(expect.get("accept") or [])]
    if not any(same(pair, seen.outcome, seen.reason) for pair in right):
        wanted = " or ".join(f"{pair.get('outcome')}/{pair.get('reason_code')}" for pair in right)
        yield f"outcome {seen.outcome}/{seen.reason}, not {wanted}"


def same(pair: dict[str, Any], outcome: str | None, reason: str | None) -> bool:
    """Whether an outcome and a reason are the expected pair; a reason that is left out is any."""
    if pair.get("outcome") != outcome:
        return False
    wanted = pair.get("reason_code")
    return wanted is None or words.plain_reason(wanted) == words.plain_reason(reason)


def _failed_step(expect: dict[str, Any], seen: Seen) -> Iterator[str]:
    if not expect.get("failed_step"):
        return
    step = _step(str(expect["failed_step"]))
    begun = any(_step(known) == step for known in seen.states)
    # An undo that was not begun fails at the call that it would have undone.
    if _step(seen.failed_step or "") not in (step, step if begun else step.removeprefix("undo ")):
        yield f"failed step {seen.failed_step}, not {expect['failed_step']}"


def _step(name: str) -> str:
    """An undo goes by its step with a mark before or behind it."""
    undone = re.fullmatch(r"(?:undo[_:\-](.+))|(?:(.+)[_:\-]undo)", name)
    return f"undo {undone[1] or undone[2]}" if undone else name


def _may_repeat(expect: dict[str, Any], seen: Seen) -> Iterator[str]:
    """`no` and `only_missing_parts`: nothing that may already stand goes out again by itself."""
    said = (expect.get("side_effect") or {}).get("may_repeat")
    again = [step for step in seen.may_send if step in seen.effects]
    if said in ("no", "only_missing_parts") and again:
        yield f"{', '.join(again)} could be sent again although its effect is proven"


def _effects(expect: dict[str, Any], seen: Seen) -> Iterator[str]:
    wanted = (expect.get("side_effect") or {}).get("completed_effects")
    if wanted is not None and sorted(wanted) != sorted(seen.effects):
        yield f"completed effects {sorted(seen.effects)}, not {sorted(wanted)}"


def _states(expect: dict[str, Any], seen: Seen) -> Iterator[str]:
    for step, wanted in (expect.get("effect_states") or {}).items():
        found = next((name for name in seen.states if _step(name) == _step(step)), None)
        if found is None and _step(step).startswith("undo "):
            continue  # nothing was sent: where its original is not proven for good, that is right too
        state = words.effect_state(seen.states[found], step in seen.effects) if found else "none"
        if wanted in words.EFFECT_WORDS and state != words.EFFECT_WORDS[wanted]:
            yield f"the effect of {step} is {state}, not {wanted}"


def _task(expect: dict[str, Any], seen: Seen) -> Iterator[str]:
    wanted = expect.get("task", ...)
    opened = [task for task in seen.tasks if task["open"]]
    if wanted is None:
        yield from (f"a task of kind {task['kind']} pages" for task in opened if task["paged"])
    elif isinstance(wanted, dict):
        kind = words.plain_kind(str(wanted.get("kind")))
        found = [task for task in opened if kind in (words.plain_kind(task["kind"]), words.also(task))]
        if not found:
            yield f"no open task of kind {wanted.get('kind')}, but {[task['kind'] for task in opened]}"
        # One question is one task; two calls with open outcomes ask two, which the format counts as one cause.
        if len({(task["step"], task["reason"]) for task in found}) < len(found):
            yield f"{len(found)} open tasks ask the same"


def _alert(expect: dict[str, Any], seen: Seen) -> Iterator[str]:
    alert = expect.get("alert") or {}
    paged = [task for task in seen.tasks if task["paged"]]
    if alert.get("page") is True and not paged:
        yield "nobody was paged"
    if alert.get("page") is False and paged:
        yield f"somebody was paged for {', '.join(task['reason'] for task in paged)}"
    causes = len({task["reason"] for task in paged})
    if alert.get("page") is True and paged and causes != alert.get("count", causes):
        yield f"{causes} causes paged, not {alert['count']}"


def _texts(expect: dict[str, Any], seen: Seen) -> Iterator[str]:
    for surface, texts in (expect.get("must_not_contain") or {}).items():
        place = seen.surfaces.get(surface, seen.surfaces["record"])
        for text in texts if isinstance(texts, list) else [texts]:
            if text and (text in place or json.dumps(text)[1:-1] in place):
                yield f"{surface} holds {text!r}"


def _checkpoints(expect: dict[str, Any], seen: Seen) -> Iterator[str]:
    for number, check in enumerate(expect.get("checkpoints") or []):
        moment = seen.at_checkpoint(number)
        if moment is None:
            yield f"after {check['after_t']} s nothing was recorded"
        else:
            yield from _checkpoint(check, moment)


def _checkpoint(check: dict[str, Any], moment: Moment) -> Iterator[str]:
    right = [check, *(check.get("accept") or [])]
    if check.get("outcome") and not any(same(pair, moment.outcome, moment.reason) for pair in right):
        wanted = f"{check.get('outcome')}/{check.get('reason_code')}"
        yield f"after {check['after_t']} s: {moment.outcome}/{moment.reason}, not {wanted}"
    bounds = check.get("delay_seconds")
    if isinstance(bounds, dict):
        delay = -1.0 if moment.delay is None else moment.delay
        low, high = float(bounds.get("min", 0)), float(bounds.get("max", 1e12))
        if not low - 0.01 <= delay <= high + 0.01:
            yield f"after {check['after_t']} s: next try in {delay:.1f} s, not {low:g} to {high:g}"


def _retry(expect: dict[str, Any], seen: Seen) -> Iterator[str]:
    allowed = (expect.get("retry") or {}).get("allowed")
    if allowed is False and seen.may_send:
        yield f"{', '.join(seen.may_send)} would be sent again by itself"


def _attempts(expect: dict[str, Any], seen: Seen) -> Iterator[str]:
    wanted = expect.get("attempts")
    found = max(seen.attempts.values(), default=0)
    if isinstance(wanted, int) and found != wanted and not expect.get("accept"):
        yield f"{found} attempts, not {wanted}"


def _blocked(expect: dict[str, Any], seen: Seen) -> Iterator[str]:
    for step in expect.get("blocked_steps") or []:
        if seen.sends_of_step.get(step) or seen.attempts.get(step):
            yield f"{step} was sent, and had to be blocked"


def _letters(expect: dict[str, Any], seen: Seen) -> Iterator[str]:
    wanted = expect.get("dead_letter")
    if not isinstance(wanted, dict):
        return
    if len(seen.letters) != wanted.get("count", len(seen.letters)):
        yield f"{len(seen.letters)} dead letters, not {wanted['count']}"
    for letter in seen.letters:
        if wanted.get("has_owner") and not letter["owner"]:
            yield "a dead letter has no owner"
        if letter["attempts"] != wanted.get("attempt_history", letter["attempts"]):
            yield f"a dead letter with {letter['attempts']} attempts in its history, not {wanted['attempt_history']}"


_ACT = re.compile(r"(?P<who>\S+) (?P<verb>approve|reject|cancel|replay|claim|retry|resume|discard)\w* (?P<how>\w+)")


def _audit(expect: dict[str, Any], seen: Seen) -> Iterator[str]:
    """Lines of the shape "somebody verb accepted" or "… refused as late" are looked up in the history."""
    for line in expect.get("audit") or []:
        act = _ACT.match(str(line))
        if act is not None and not any(_is_audited(event, act) for event in seen.events):
            yield f"the history lacks: {line}"


def _is_audited(event: dict[str, Any], act: re.Match[str]) -> bool:
    refused = act["how"].startswith(("refus", "den", "late", "ignor"))
    mine = str(event["actor"]) == act["who"]
    if refused:
        return mine and event["kind"] == "refused" and event["data"].get("verb") == act["verb"]
    return mine and event["kind"] == f"verb_{act['verb']}"


_OF_THE_FIRST_ANSWER = (
    _failed_step, _may_repeat, _effects, _states, _task, _alert, _retry, _attempts, _letters,
)  # fmt: skip
