"""One person before one task: all that bears on what may be done, and a verb as an answer to it.

Pure; the rules of the verbs stand in policy.py and authority.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from recovery.rules.evidence import Evidence

LABELS = {
    "claim": "Claim",
    "release": "Release",
    "reconcile": "Check what happened",
    "approve": "Approve",
    "reject": "Reject",
    "replay": "Replay once",
    "retry": "Retry the same call",
    "top_up": "Top up the budget",
    "resume": "Let the run go on",
    "attest": "Attest what happened",
    "compensate": "Undo what was done",
    "waive": "Accept what stays",
    "discard": "Discard the dead letter",
    "cancel": "Cancel the run",
    "request_input": "Ask the requester",
    "provide_input": "Answer for the requester",
    "assign": "Hand over",
    "accept": "Accept the handover",
    "decline": "Decline the handover",
    "withdraw": "Take the offer back",
    "snooze": "Snooze",
    "reopen": "Reopen",
    "comment": "Comment",
    "send": "Send the call",
    "trial": "Try the circuit",
}
ABILITY_OF = {
    "reject": "approve",
    "discard": "replay",
    "request_input": "resume",
    "provide_input": "resume",
    "assign": "claim",
    "accept": "claim",
    "decline": "claim",
    "withdraw": "claim",
    "snooze": "claim",
    "reopen": "claim",
}
"""The ability that a verb takes where it is not its own: who may agree may refuse, who may claim may hand over."""


@dataclass(frozen=True)
class Ceiling:
    """The budget that stopped a run: its column, its unit in words, its value, and the most it may be raised by."""

    field: str
    label: str
    limit: int
    most: int


@dataclass(frozen=True)
class Situation:
    """All that bears on the question. `evidence` is None for a task about the run itself.

    in_flight, held    whether the call is out, or stands still until somebody acts; `unconfirmed` whether it is
                    settled and nobody answered its later count, `check_again` whether that may be made once more.
    decided         who approved or rejected the call already; `requester` whether this person asked for the run,
                    `approve_until` when the wait for an approval ends.
    attested        what waits for a second person's word, said or asked for by `asked_verb`; `attester` whether it is
                    this person's own, `asked_void` why it can no longer be agreed to, in a sentence.
    fired           the ceiling that stopped the run, `topped_up` the one that was raised before, if any.
    letter          the state of the dead letter behind the task.
    stopped         the switch that would stop this run again, who set it and why; empty where none stands.
    rolling_back    whether undoing was ordered before, `undo_again` how many effects are left if it is taken up
                    again.
    waivable        what may be accepted here: "undo" that an effect stays whole, "residual" what an undo left of it,
                    and of a run that has ended "part", "conflict" or "kept" (giving_up.ENDED); `waive_bar` why
                    nothing may, `rest_over` whether it is more than one person may accept.
    askable         whether a look-up or a poll can say what came of this call.
    demoted         whether the look-up's connector broke its bounds; `bound_broke` whether an effect of this call
                    showed that, and nothing else contradicts it.
    by_hand         whether the system of this call is one that no request reaches (connector kind manual).
    outside         whether the task is about what happened outside: no agent works on its run.
    agent_gone      why no agent goes on with the run, in words; empty while one may.
    undoable        how many proven effects can be undone; `doubtful` how many other writes may have happened.
    snoozed_until   until when the task is put off. `twin`: the open task that asks about the same already.
    sent_write      whether the call of the task is a write that left.
    question        the field that the requester has to change; `unaskable` says why a form cannot ask for it.
    answer_until    until when the requester may answer.
    offered_to, offered_by    whose yes a handover waits for until `offer_until`, and who offers it; `offer_mine` and
                    `offer_given` whether that is this person.
    """

    abilities: frozenset[str]
    task_open: bool
    mine: bool
    held_by: str | None
    held_until: datetime | None
    run_state: str
    run_open: bool
    evidence: Evidence | None
    settled: bool
    awaiting_approval: bool
    tool: str
    final_from: datetime | None
    last_look_kept: bool
    check_under_way: bool
    open_calls: int
    ceiling: str | None
    over_threshold: bool
    now: datetime
    in_flight: bool = False
    held: bool = False
    unconfirmed: bool = False
    check_again: bool = False
    decided: str = ""
    requester: bool = False
    approve_until: datetime | None = None
    attested: str = ""
    attester: bool = False
    asked_verb: str = "attest"
    asked_void: str = ""
    fired: Ceiling | None = None
    topped_up: str = ""
    letter: str = ""
    rolling_back: bool = False
    undo_again: int = 0
    waivable: str = ""
    waive_bar: str = ""
    rest_over: bool = False
    plan_words: str = ""
    undoable: int = 0
    doubtful: int = 0
    stopped: str = ""
    askable: bool = True
    demoted: bool = False
    bound_broke: bool = False
    by_hand: bool = False
    outside: bool = False
    agent_gone: str = ""
    snoozed_until: datetime | None = None
    twin: str = ""
    sent_write: bool = False
    question: str = ""
    unaskable: str = ""
    answer_until: datetime | None = None
    offered_to: str = ""
    offered_by: str = ""
    offer_mine: bool = False
    offer_given: bool = False
    offer_until: datetime | None = None


@dataclass(frozen=True)
class Verb:
    """One button: whether it may be pressed, the rule that says so, and one sentence for tooltip, 409 and audit."""

    name: str
    label: str
    allowed: bool
    rule: str
    sentence: str
    recommended: bool = False

    def as_recommended(self) -> Verb:
        return replace(self, recommended=True)


def allowed(name: str, rule: str, sentence: str) -> Verb:
    return Verb(name, LABELS[name], True, rule, sentence)


def blocked(name: str, rule: str, sentence: str) -> Verb:
    return Verb(name, LABELS[name], False, rule, f"Blocked: {sentence}")


def barred(at: Situation, name: str) -> Verb | None:
    """What stops every verb that acts: no right, no open task, somebody else's claim."""
    if ABILITY_OF.get(name, name) not in at.abilities:
        return blocked(name, "role", "your role does not include this.")
    if not at.task_open:
        return blocked(name, "task", "the task is resolved.")
    if at.held_by is not None and not at.mine:
        until = f" until {moment(at.held_until, at.now)}" if at.held_until else ""
        return blocked(name, "claim", f"{at.held_by} holds this task{until}.")
    return None


def unattended(at: Situation, name: str) -> Verb | None:
    """What stops every verb that only lets the run's agent go on: it is let in no more (SEC-17, I13)."""
    if not at.agent_gone:
        return None
    return blocked(name, "agent", f"{at.agent_gone}; nobody would go on with this run.")


ASKED_AGAIN = ("probe_failed", "processing")
"""What a last look may have said for a person to order one more."""


def asked_by_hand(evidence: Evidence, *, askable: bool, demoted: bool) -> Evidence:
    """The evidence as a look meets it that a person orders: it need not be due, and the ceiling of looks is not the
    end of it after one that got no answer at all (a credential that was refused, say), found the job under way, or
    found nothing where the connector is `demoted`: no last look is kept there, and an effect may still turn up.
    `askable`: a look-up or a poll is there; a callback alone cannot be asked for.
    """
    asked_again = (*ASKED_AGAIN, "absent") if demoted else ASKED_AGAIN
    still_open = evidence.looks == "spent" and evidence.verdict in asked_again
    return evidence._replace(looks="due") if askable and (still_open or evidence.looks == "later") else evidence


def surely_nothing(evidence: Evidence) -> bool:
    """Whether the record proves that this call changed nothing: never left, refused, or a final look found none."""
    refused = evidence.observation in ("not_sent", "transient_reject", "permanent_reject", "policy_denied")
    return evidence.verdict == "absent_final" or (refused and evidence.verdict in ("none", "absent", "probe_failed"))


def moment(at: datetime, now: datetime) -> str:
    """A time inside a sentence, with its date where that is not today's."""
    day = "" if at.date() == now.date() else f"{at:%Y-%m-%d} "
    return f"{day}{at:%H:%M:%S} UTC"
