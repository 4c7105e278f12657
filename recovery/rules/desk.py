"""The verbs at a task itself: who has it, when it is asked, and what the requester is asked. Pure.

None of them sends a call; each answers with the button, allowed or blocked with its rule and one sentence.
"""

from __future__ import annotations

from dataclasses import replace

from recovery.rules.situation import Situation, Verb, allowed, barred, blocked, moment

CLAIM_WORDS = "Yours for 30 minutes; from now on nothing is sent by itself."


def claim(at: Situation) -> Verb:
    bar = barred(at, "claim")
    if bar is not None:
        return bar
    if at.attested:
        return blocked("claim", "attest", f"{at.attested}; a second person confirms or rejects it.")
    return allowed("claim", "claim", "Extends your claim by 30 minutes." if at.mine else CLAIM_WORDS)


def release(at: Situation) -> Verb:
    if not at.mine:
        return blocked("release", "claim", "you do not hold this task.")
    return allowed("release", "claim", "Gives the task back to the queue.")


def assign(at: Situation) -> Verb:
    bar = barred(at, "assign") or _vouched(at, "assign")
    if bar is not None:
        return bar
    if at.offered_to:
        return blocked("assign", "handover", f"{_offered(at)}; that is answered or taken back first.")
    return allowed("assign", "claim", "Offers the task to a colleague, who accepts it, or gives it back to the team.")


def accept(at: Situation) -> Verb:
    bar = _to_answer(at, "accept") or _vouched(at, "accept")
    if bar is not None:
        return bar
    if at.held_by is not None and not at.mine and at.held_by != at.offered_by:
        return blocked("accept", "claim", f"{at.held_by} holds this task by now.")
    return allowed("accept", "handover", "The task becomes yours, with a claim of 30 minutes.")


def decline(at: Situation) -> Verb:
    return _to_answer(at, "decline") or allowed("decline", "handover", "The task stays where it is.")


def withdraw(at: Situation) -> Verb:
    bar = _barred(at, "withdraw")
    if bar is not None:
        return bar
    if not at.offered_to:
        return blocked("withdraw", "handover", "nobody is offered this task.")
    if not at.offer_given:
        return blocked("withdraw", "handover", f"{at.offered_by} offers it, and takes it back or lets it end.")
    return allowed("withdraw", "handover", f"{at.offered_to} can accept it no more; it stays where it is.")


def _to_answer(at: Situation, name: str) -> Verb | None:
    """What stands between somebody and the answer to an offer."""
    bar = _barred(at, name)
    if bar is not None:
        return bar
    if not at.offered_to:
        return blocked(name, "handover", "nobody is offered this task.")
    if not at.offer_mine:
        return blocked(name, "handover", f"{_offered(at)}.")
    if at.offer_until is not None and at.offer_until <= at.now:
        return blocked(name, "expired", f"the offer ended at {moment(at.offer_until, at.now)}.")
    return None


def _barred(at: Situation, name: str) -> Verb | None:
    """As `barred`, for what is about a claim of somebody else."""
    return barred(replace(at, held_by=None), name)


def _offered(at: Situation) -> str:
    until = f" until {moment(at.offer_until, at.now)}" if at.offer_until else ""
    return f"it is offered to {at.offered_to}{until}"


def snooze(at: Situation) -> Verb:
    bar = barred(at, "snooze") or _vouched(at, "snooze")
    if bar is not None:
        return bar
    if at.awaiting_approval:
        return blocked("snooze", "F127", "an approval has its own time, and ends with it.")
    if at.offered_to:
        return blocked("snooze", "handover", f"{_offered(at)}; that is answered or taken back first.")
    if at.snoozed_until is not None:
        until = moment(at.snoozed_until, at.now)
        return allowed("snooze", "claim", f"It sleeps until {until}; this gives it another time.")
    return allowed("snooze", "claim", "Puts the task off until a time, or until something new is learned.")


def reopen(at: Situation) -> Verb:
    if "claim" not in at.abilities:
        return blocked("reopen", "role", "your role does not include this.")
    if at.task_open:
        return blocked("reopen", "task", "the task is open.")
    if at.twin:
        return blocked("reopen", "task", f"{at.twin} asks about the same already.")
    if not at.run_open and not at.sent_write:
        return blocked("reopen", "run", "the run has ended, and no write of this task was sent.")
    return allowed("reopen", "task", "Asks the question again; what was decided before stays in its history.")


def comment(at: Situation) -> Verb:
    if "comment" not in at.abilities:
        return blocked("comment", "role", "your role does not include this.")
    return allowed("comment", "note", "A note for your colleagues; it proves nothing.")


def request_input(at: Situation) -> Verb:
    bar = barred(at, "request_input") or _asked(at, "request_input")
    if bar is not None:
        return bar
    until = f" until {moment(at.answer_until, at.now)}" if at.answer_until else ""
    return allowed("request_input", "input", f"Makes a link that asks for {at.question} and nothing else{until}.")


def provide_input(at: Situation) -> Verb:
    bar = barred(at, "provide_input") or _asked(at, "provide_input")
    if bar is not None:
        return bar
    sentence = "What the requester told you goes back to the agent, which proposes a new call: it is checked like any"
    return allowed("provide_input", "input", f"{sentence}.")


def _asked(at: Situation, name: str) -> Verb | None:
    if not at.question:
        return blocked(name, "input", "nothing of this task waits for the requester.")
    if at.unaskable:
        return blocked(name, "input", at.unaskable)
    if at.answer_until is not None and at.answer_until <= at.now:
        return blocked(name, "expired", f"the time for an answer ended at {moment(at.answer_until, at.now)}.")
    return None


def _vouched(at: Situation, name: str) -> Verb | None:
    if not at.attested:
        return None
    return blocked(name, "attest", f"{at.attested}; a second person confirms or rejects it.")


VERBS = {
    "claim": claim,
    "release": release,
    "assign": assign,
    "accept": accept,
    "decline": decline,
    "withdraw": withdraw,
    "snooze": snooze,
    "reopen": reopen,
    "comment": comment,
}
"""The verbs that are always about the task, in the order in which they stand."""
