"""What a person may do about a task, and for everything else the rule and the sentence that says why not.

Pure. The same answer draws the buttons, gates the POST and is asked again by the worker (DECISIONS 4).
"""

from __future__ import annotations

from dataclasses import replace

from recovery.rules import authority, desk
from recovery.rules.decide import Action, NextAction, decide
from recovery.rules.evidence import Evidence
from recovery.rules.situation import (
    LABELS,
    Situation,
    Verb,
    allowed,
    asked_by_hand,
    barred,
    blocked,
    moment,
    surely_nothing,
    unattended,
)

__all__ = ["ACTING", "LABELS", "Situation", "Verb", "find", "retry_safe", "shown", "surely_nothing", "verbs"]

RECOMMENDABLE = ("reconcile", "retry", "resume", "request_input")
"""What a page may point at: nothing that ends, spends or vouches for anything; that is the person's own choice."""


def verbs(at: Situation) -> tuple[Verb, ...]:
    """The verbs of a task in their fixed order, at most one of them recommended."""
    made = [rule(at) for rule in ACTING.values()]
    best = next((verb.name for verb in made if verb.allowed and _is_advice(at, verb.name)), None)
    marked = [verb.as_recommended() if verb.name == best else verb for verb in made]
    return (*marked, *(rule(at) for rule in desk.VERBS.values()))


def _is_advice(at: Situation, name: str) -> bool:
    """An undo that was refused for good may be ordered anew, and nothing says that it would go better."""
    return name in RECOMMENDABLE and not (name == "resume" and _undo_refused(at))


def _undo_refused(at: Situation) -> bool:
    refused = at.evidence is not None and at.evidence.observation in ("permanent_reject", "policy_denied")
    return at.rolling_back and refused


def shown(at: Situation) -> tuple[Verb, ...]:
    """The verbs that act and that concern a task of this kind; the others would only be blocked on it."""
    return tuple(verb for verb in verbs(at) if verb.name in ACTING and authority.concerns(at, verb.name))


def find(at: Situation, name: str) -> Verb:
    return next(verb for verb in verbs(at) if verb.name == name)


def retry_safe(at: Situation) -> tuple[str, str, str]:
    """Whether sending again is safe: (answer, sentence, rule); the answer is a key of the look table."""
    if at.evidence is None:
        return "not_applicable", "No call of this task is open.", ""
    answer = decide(at.evidence._replace(gate="open"))
    if at.settled:
        return "no", "The call is settled; there is nothing to send again.", answer.rule
    if at.awaiting_approval:
        return "after_approval", _NOT_APPROVED, answer.rule
    if answer.action is Action.RETRY:
        return "yes", _retry_sentence(answer), answer.rule
    if answer.action is Action.WAIT and surely_nothing(at.evidence):
        return "yes", "Nothing happened. The same call may be sent again when its circuit lets it.", answer.rule
    if answer.action in (Action.PROBE, Action.WAIT) and at.final_from and at.final_from > at.now:
        return (
            "not_yet",
            f"It could happen twice. A look-up counts as final from {moment(at.final_from, at.now)}.",
            answer.rule,
        )
    if answer.action in (Action.PROBE, Action.WAIT):
        return "check_first", "It could happen twice. A look-up has to settle it first.", answer.rule
    if at.evidence.effect == "read":
        return "yes", _read_again(at, answer), answer.rule
    if surely_nothing(at.evidence):
        why = _WHY_NOT_AGAIN.get(answer.reason, "it may not be sent again")
        return "no", f"Nothing happened, but {why}.", answer.rule
    return "no", _BROKE if at.bound_broke else _why_not(at.evidence), answer.rule


def _read_again(at: Situation, answer: NextAction) -> str:
    why = _WHY_NOT_AGAIN.get(answer.reason, "")
    more = "; a replay gives it one more" if at.letter in authority.LETTER_OPEN else ""
    return f"It only reads, so nothing can happen twice{f', but {why}' if why else ''}{more}."


def _why_not(evidence: Evidence) -> str:
    if evidence.verdict == "partial_final":
        return "Only a part of it happened; the whole call sent again would do that part twice."
    return "Nothing proves that it would not happen twice."


_BROKE = "An effect turned up where a look-up had ruled it out; sent again, it would happen twice."
_NOT_APPROVED = "It waits for an approval; nothing is sent before that."
_WHY_NOT_AGAIN = {
    "retry_exhausted": "all its tries are used",
    "deadline_exceeded": "the deadline has passed",
    "budget_exhausted": "a budget is used up",
    "permanent_reject": "the same call would be refused again",
    "policy_denied": "the run is not authorized to do it",
}


def _reconcile(at: Situation) -> Verb:
    bar = barred(at, "reconcile")
    if bar is not None:
        return bar
    if at.evidence is None or (at.settled and not at.unconfirmed):
        return blocked("reconcile", "settled", "no call is open, so there is nothing to look up.")
    if at.in_flight:
        return blocked("reconcile", "look", "the call is still out; its own answer comes first.")
    if at.check_under_way:
        return blocked("reconcile", "look", "a check is under way; its answer appears here.")
    if at.unconfirmed and at.check_again:
        return allowed("reconcile", "F029", _look_sentence(at))
    if at.last_look_kept and at.final_from is not None and at.now < at.final_from:
        return blocked("reconcile", "bound", f"the last look-up is kept for {moment(at.final_from, at.now)}.")
    if at.bound_broke and at.askable:
        return allowed("reconcile", "F028", _look_sentence(at))
    answer = decide(asked_by_hand(at.evidence, askable=at.askable, demoted=at.demoted))
    if answer.action is Action.PROBE and at.evidence.looks == "spent":
        return allowed("reconcile", answer.rule, f"{_LAST_LOOK[at.evidence.verdict]} {_look_sentence(at)}")
    if answer.action is Action.PROBE:
        return allowed("reconcile", answer.rule, _look_sentence(at))
    if at.by_hand:
        return blocked("reconcile", answer.rule, f"nobody can be asked about {at.tool}: look there, and attest it.")
    if not (at.evidence.reconcilable and at.askable):
        return blocked("reconcile", answer.rule, f"no look-up is declared for {at.tool}.")
    if at.evidence.looks == "spent" or at.unconfirmed:
        return blocked("reconcile", answer.rule, "all look-ups that the contract allows have been used.")
    if surely_nothing(at.evidence):
        return blocked("reconcile", answer.rule, "it is certain already that nothing happened.")
    return blocked("reconcile", answer.rule, "a look-up would not change what is known.")


_LAST_LOOK = {
    "probe_failed": "The last look-up got no answer and none is made by itself any more; check once it can answer.",
    "processing": "It was under way when last asked about, and nobody asks by itself any more.",
    "absent": "Nothing was found so far, and nobody asks by itself any more.",
}
"""What a person reads who may check once the look-ups are used up; the verdicts are those of `asked_by_hand`."""


def _look_sentence(at: Situation) -> str:
    asks = f"Asks the provider for the effect of {at.tool} by its action identity. Reads only, sends nothing."
    if at.demoted:
        return f"{asks} Its bounds were not kept: an effect that it finds is proof, finding nothing is none."
    if at.final_from is None:
        return f"{asks} No bound is declared, so finding nothing will prove nothing."
    if at.final_from > at.now:
        return f"{asks} Finding nothing counts only from {moment(at.final_from, at.now)}."
    return f"{asks} Its answer will be final."


def _retry(at: Situation) -> Verb:
    bar = barred(at, "retry")
    if bar is not None:
        return bar
    if at.evidence is None or at.settled:
        return blocked("retry", "settled", "no call is open, so there is nothing to send.")
    if at.check_under_way:
        return blocked("retry", "look", "a check is under way; its answer comes first.")
    if at.letter in ("replay_requested", "replaying"):
        return blocked("retry", "letter", "a replay is granted already; the agent sends the call once it is resumed.")
    answer = decide(at.evidence._replace(gate="open"))
    if answer.action is not Action.RETRY or at.awaiting_approval:
        _, sentence, rule = retry_safe(at)
        return blocked("retry", rule, sentence[0].lower() + sentence[1:])
    if at.over_threshold:
        return blocked("retry", answer.rule, "the amount is above the threshold; a second person has to approve it.")
    return unattended(at, "retry") or allowed("retry", answer.rule, _retry_sentence(answer))


def _retry_sentence(answer: NextAction) -> str:
    return {
        "8i": "It is proven that nothing happened; the same call may be sent again under its identity.",
        "9d": "The provider recognises our key, so sending again cannot do it twice.",
        "2i": "A read changes nothing; it may be made again.",
    }.get(answer.rule, "The same call may be sent again.")


def _resume(at: Situation) -> Verb:
    bar = barred(at, "resume")
    if bar is not None:
        return bar
    if not at.run_open or at.run_state == "cancelling":
        return blocked("resume", "run", "the run has ended.")
    if at.stopped:
        return blocked("resume", "stop", f"{at.stopped}; it is lifted first.")
    if at.outside:
        return blocked("resume", "run", "no agent works on this: it was found in another system.")
    if at.rolling_back and at.undo_again and not at.attested:
        return allowed("resume", "I15", _again_sentence(at))
    if at.rolling_back:
        return blocked("resume", "run", "the run is being undone; it does not go on forward.")
    if at.open_calls == 1 and at.evidence is not None and not at.settled and surely_nothing(at.evidence):
        return blocked("resume", "I5", f"{at.tool} did nothing and is not settled yet; the run goes on after that.")
    if at.open_calls:
        return blocked("resume", "I5", "a call of this run is not settled; what follows would rest on a guess.")
    if at.ceiling is not None:
        return blocked("resume", "I8", f"a ceiling is reached: {at.ceiling.replace('_', ' ')}.")
    go_on = allowed("resume", "I5", "Every call is settled; the agent may go on from the last proven state.")
    return unattended(at, "resume") or go_on


def _again_sentence(at: Situation) -> str:
    left = at.undo_again
    more = f", and then the other {left - 1}" if left > 1 else ""
    anew = f"It is ordered anew{more}; what is undone is not repeated."
    if _undo_refused(at):
        return f"This undo was refused for good: it will be again, unless something changed there. {anew}"
    return f"It is proven that this undo did nothing. {anew}"


def _cancel(at: Situation) -> Verb:
    verb = _stop(at)
    return replace(verb, label="Close the question") if at.outside else verb


def _stop(at: Situation) -> Verb:
    bar = barred(at, "cancel")
    if bar is not None:
        return bar
    if not at.run_open or at.run_state == "cancelling":
        return blocked("cancel", "run", "the run has ended or is being cancelled.")
    if at.outside:
        return allowed("cancel", "gap", "You looked into it. What was found stays as it is in the other system.")
    write = at.evidence if at.evidence is not None and at.evidence.effect == "write" and not at.settled else None
    if write is not None and write.verdict == "partial_final":
        sentence = f"Stops everything not yet sent. The parts of {at.tool} that are proven stay and are listed."
        return allowed("cancel", "F135", sentence)
    if write is not None and not surely_nothing(write):
        sentence = f"Stops everything not yet sent. {at.tool} stays unknown: its task stays open until it is settled."
        return allowed("cancel", "F135", sentence)
    return allowed("cancel", "F134", "Stops everything not yet sent. What is proven stays and is listed.")


ACTING = {
    "reconcile": _reconcile,
    "approve": authority.approve,
    "reject": authority.reject,
    "replay": authority.replay,
    "retry": _retry,
    "top_up": authority.top_up,
    "resume": _resume,
    "attest": authority.attest,
    "compensate": authority.compensate,
    "waive": authority.waive,
    "discard": authority.discard,
    "request_input": desk.request_input,
    "provide_input": desk.provide_input,
    "cancel": _cancel,
}
"""The verbs that act, in the order in which they stand."""
WITH_REASON = (*ACTING, "assign", "decline", "snooze", "reopen")
"""The verbs that want words for whoever reads the history."""
