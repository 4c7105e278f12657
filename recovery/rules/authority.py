"""The verbs that spend a person's authority: agree or refuse, raise a ceiling, replay, vouch, undo.

Pure. Each takes the situation and answers with the button: allowed, or blocked with its rule and one sentence.
"""

from __future__ import annotations

from recovery.rules.decide import Action, decide
from recovery.rules.situation import Situation, Verb, allowed, barred, blocked, moment, surely_nothing, unattended

LETTER_OPEN = ("recorded", "in_review")
LETTER_WORDS = {
    "replay_requested": "a replay was asked for already.",
    "replaying": "a replay is under way.",
    "recovered": "the call was recovered.",
    "discarded": "it was discarded.",
}


def concerns(at: Situation, name: str) -> bool:
    """Whether a verb has to do with a task of this kind at all, allowed or not."""
    call = at.evidence is not None and at.evidence.effect == "write" and not at.settled
    tried = call and not at.awaiting_approval
    could_undo = tried and at.evidence is not None and at.evidence.compensable
    return {
        "approve": at.awaiting_approval or bool(at.attested) or second_word(at),
        "reject": at.awaiting_approval or bool(at.attested),
        "replay": bool(at.letter),
        "discard": bool(at.letter),
        "top_up": at.fired is not None,
        "attest": tried or correctable(at),
        "request_input": bool(at.question),
        "provide_input": bool(at.question),
        "compensate": at.rolling_back or at.undoable > 0 or could_undo,
        "waive": bool(at.waivable) or at.rolling_back,
    }.get(name, True)


def second_word(at: Situation) -> bool:
    """Whether nothing but a second person's word keeps a call from being sent again.

    It is proven that it did nothing, and its amount is more than one person may decide (DECISIONS 2, gate).
    """
    if at.evidence is None or not at.held or not at.over_threshold:
        return False
    return surely_nothing(at.evidence) and decide(at.evidence._replace(gate="open")).action is Action.RETRY


def approve(at: Situation) -> Verb:
    if second_word(at) and not at.attested:
        return _second_word(at)
    if at.decided and not at.attested:
        return blocked("approve", "decided", f"already decided: {at.decided}.")
    bar = barred(at, "approve")
    if bar is not None:
        return bar
    if at.attested:
        return _confirm(at)
    if not at.awaiting_approval:
        return blocked("approve", "approval", "nothing of this task waits for an approval.")
    if at.approve_until is not None and at.approve_until <= at.now:
        return blocked("approve", "expired", f"the time for an approval ended at {moment(at.approve_until, at.now)}.")
    if at.requester:
        return blocked("approve", "four_eyes", "you asked for this run; somebody else approves it.")
    sentence = "Lets exactly this call be sent, once it is proposed again. Changed arguments need a new approval."
    return allowed("approve", "8g", sentence)


def _second_word(at: Situation) -> Verb:
    """The second person's word for what its holder may not decide alone; the holder's own is none."""
    if "approve" not in at.abilities or not at.task_open:
        return barred(at, "approve") or blocked("approve", "task", "the task is resolved.")
    if at.mine or at.requester:
        return blocked("approve", "four_eyes", "you act on this run yourself; somebody else approves it.")
    if at.held_by is None:
        return blocked("approve", "four_eyes", "nobody holds this task; the one who claims it needs another's word.")
    return allowed("approve", "8i", "It is proven that nothing happened. You are the second person for one more try.")


def _confirm(at: Situation) -> Verb:
    if at.attester:
        own = "attested it" if at.asked_verb == "attest" else "asked for it"
        return blocked("approve", "four_eyes", f"you {own} yourself; somebody else confirms it.")
    if at.asked_void:
        return blocked("approve", "attest", at.asked_void)
    counts = "it counts" if at.asked_verb == "attest" else "it is done"
    return allowed("approve", "attest", f"{at.attested}. Your word makes it two, and then {counts}.")


def reject(at: Situation) -> Verb:
    if at.decided and not at.attested:
        return blocked("reject", "decided", f"already decided: {at.decided}.")
    bar = barred(at, "reject")
    if bar is not None:
        return bar
    if at.attested:
        return allowed("reject", "attest", f"{at.attested}. Refused, it counts for nothing and the task goes back.")
    if not at.awaiting_approval:
        return blocked("reject", "approval", "nothing of this task waits for an approval.")
    return allowed("reject", "8c", "Ends this call for good; the agent is told that it is not permitted.")


def top_up(at: Situation) -> Verb:
    bar = barred(at, "top_up")
    if bar is not None:
        return bar
    if not at.run_open or at.run_state == "cancelling":
        return blocked("top_up", "run", "the run has ended.")
    if at.fired is None:
        return blocked("top_up", "I8", "what stopped this is no budget of the run that can be raised.")
    if at.topped_up:
        return blocked("top_up", "I8", f"this run was topped up once already ({at.topped_up.replace('_', ' ')}).")
    sentence = f"Raises the ceiling of {at.fired.limit:,} {at.fired.label} once, by at most {at.fired.most:,}."
    return unattended(at, "top_up") or allowed("top_up", "I8", sentence)


def replay(at: Situation) -> Verb:
    bar = barred(at, "replay") or _letter(at, "replay")
    if bar is not None:
        return bar
    if at.check_under_way:
        return blocked("replay", "look", "a check is under way; its answer comes first.")
    if at.evidence is None or at.settled:
        return blocked("replay", "settled", "the call is settled; there is nothing to send again.")
    answer = decide(at.evidence._replace(attempts_left=True, gate="open"))
    if answer.action is not Action.RETRY:
        return blocked("replay", answer.rule, "one more try would not be safe, or not be permitted, now.")
    if at.attested:
        return blocked("replay", "attest", f"{at.attested}; it waits for a second person.")
    bar = unattended(at, "replay")
    if bar is not None:
        return bar
    sentence = "One more try of exactly this call, under its own identity"
    if replayed_by_two(at):
        return allowed("replay", answer.rule, f"{sentence}; above the threshold, once a second person agrees.")
    return allowed("replay", answer.rule, f"{sentence}.")


def replayed_by_two(at: Situation) -> bool:
    """Whether one more try moves more than one person may decide (DECISIONS 1)."""
    return at.over_threshold


def discard(at: Situation) -> Verb:
    bar = barred(at, "discard") or _letter(at, "discard")
    if bar is not None:
        return bar
    if at.attested:
        return blocked("discard", "attest", f"{at.attested}; it waits for a second person.")
    if discarded_by_two(at):
        sentence = "Sends nothing more of this call, once a second person agrees. What is unknown stays a question."
        return allowed("discard", "9h", sentence)
    return allowed("discard", "letter", "Gives this call up for good. Nothing more is sent, and the record stays.")


def discarded_by_two(at: Situation) -> bool:
    """Whether an effect of this run is unknown: a letter beside it is not given up on one person's word."""
    write = at.evidence is not None and at.evidence.effect == "write" and not at.settled
    own = write and at.evidence is not None and not surely_nothing(at.evidence)
    return own or at.doubtful > 0


def _letter(at: Situation, name: str) -> Verb | None:
    if not at.letter:
        return blocked(name, "letter", "no dead letter stands behind this task.")
    return None if at.letter in LETTER_OPEN else blocked(name, "letter", LETTER_WORDS[at.letter])


def attest(at: Situation) -> Verb:
    bar = barred(at, "attest")
    if bar is not None:
        return bar
    if at.attested:
        return blocked("attest", "attest", f"{at.attested}; it waits for a second person.")
    if correctable(at):
        more = "." if counts_alone(at) else ", once a second person confirms it."
        return allowed("attest", "F131", _CORRECTS + more)
    if at.evidence is None or at.settled or at.evidence.effect == "read":
        return blocked("attest", "settled", "no write is open, so there is nothing to vouch for.")
    if at.in_flight:
        return blocked("attest", "look", "the call is still out; its own answer comes first.")
    if at.check_under_way:
        return blocked("attest", "look", "a check is under way; its answer comes first.")
    if surely_nothing(at.evidence):
        return blocked("attest", "settled", "it is certain already that nothing happened.")
    if at.evidence.verdict == "partial_final":
        return blocked("attest", "5e", "it is certain that only a part happened; neither answer would be true.")
    if at.evidence.verdict == "conflict" and not at.bound_broke:
        return blocked("attest", "1", "the records contradict each other; one more word would not settle that.")
    sentence = "You state with the provider's reference "
    sentence += "that it happened" if at.bound_broke else "what happened"
    if counts_alone(at):
        return allowed("attest", "attest", f"{sentence}; your word counts at once.")
    return allowed("attest", "attest", f"{sentence}; it counts once a second person confirms it.")


_CORRECTS = "The run has ended: what you state is kept beside its record as a correction"


def correctable(at: Situation) -> bool:
    """Whether the record of a settled write may be found wrong: its run is over, and its task was opened again."""
    return at.task_open and at.settled and at.sent_write and not at.run_open


def counts_alone(at: Situation) -> bool:
    """Whether one word is enough: below the value threshold, from somebody who may approve (ruling 14)."""
    return "approve" in at.abilities and not at.over_threshold


def compensate(at: Situation) -> Verb:
    bar = barred(at, "compensate")
    if bar is not None:
        return bar
    if not at.run_open:
        return blocked("compensate", "run", "the run has ended; undoing what it did is a run of its own.")
    if at.rolling_back:
        return blocked("compensate", "run", "undoing was ordered already, and goes no further by itself than it can.")
    if at.run_state in ("planning", "cancelling"):
        what = "nothing was done yet." if at.run_state == "planning" else "the run is being cancelled."
        return blocked("compensate", "run", what)
    if at.doubtful:
        return blocked("compensate", "6b", "a write may have happened; it is settled first, and then undone.")
    if not at.undoable:
        return blocked("compensate", "6a", "nothing is proven that could be undone.")
    proven = "1 proven effect" if at.undoable == 1 else f"{at.undoable} proven effects"
    sentence = f"Undoes {proven}, the latest first; each undo is proven before the next."
    return allowed("compensate", "6e", f"{sentence} {at.plan_words}".rstrip())


def waive(at: Situation) -> Verb:
    bar = barred(at, "waive")
    if bar is not None:
        return bar
    if at.attested:
        return blocked("waive", "attest", f"{at.attested}; it waits for a second person.")
    if not at.waivable:
        return blocked("waive", "I15", at.waive_bar)
    second = " It takes a second person." if waived_by_two(at) else ""
    if at.waivable != "residual" and not at.run_open:
        return allowed("waive", "I2", f"{_ENDS}{second}")
    if at.waivable == "undo":
        sentence = "The effect stays and is listed; the next undo begins. It takes a second person."
        return allowed("waive", "I15", sentence)
    return allowed("waive", "F142", f"You accept what the undo left of it; then the run may end.{second}")


_ENDS = "The run has ended: its record stays as it stands, with your reason beside it, and the question is closed."


def waived_by_two(at: Situation) -> bool:
    """Whether what would be accepted is too much for one: a whole effect and a contradiction always, anything else
    above the threshold."""
    return at.waivable in ("undo", "conflict") or at.rest_over
