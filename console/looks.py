"""How each state looks: the one mapping from a state's name to its colour class, icon and word.

A template asks for the badge of a look; it never compares a state. Solid means that a record proves the state
or that a person decided it; a look that is not solid is drawn with a dashed edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

MEANINGS = ("ok", "unk", "warn", "bad", "move", "idle")


@dataclass(frozen=True, slots=True)
class Look:
    """What one state looks like: a meaning (see MEANINGS), a lucide icon name, a word, and whether it is proven."""

    css: str
    icon: str
    word: str
    solid: bool = True

    def saying(self, word: str) -> Look:
        """The same look with another word: the badge keeps its meaning and says what exactly came back."""
        return replace(self, word=word)


Looks = Mapping[str, Look]


def _table(**looks: Look) -> Looks:
    return MappingProxyType(looks)


PROVEN = Look("ok", "circle-check", "Proven")
UNKNOWN = Look("unk", "circle-question-mark", "Unknown", solid=False)
PLANNED = Look("idle", "circle-dashed", "Planned", solid=False)
PENDING = Look("idle", "circle-dashed", "Pending", solid=False)
REQUESTED = Look("idle", "arrow-right", "Requested", solid=False)
DISPATCHED = Look("move", "send", "Dispatched", solid=False)
WAITING = Look("move", "clock", "Waiting")
STILL_TRYING = Look("move", "rotate-cw", "Still trying")
CONFLICT = Look("bad", "circle-x", "Conflict")
PARTLY = Look("warn", "circle-slash", "Partly")
COMPENSATED = Look("ok", "undo-2", "Compensated")
UNDO_STOPPED = Look("warn", "circle-slash", "Undo stopped")
GIVEN_UP = Look("warn", "circle-minus", "Given up")
UNDOING = Look("move", "undo-2", "Undoing", solid=False)
IRREVERSIBLE = Look("idle", "lock", "Irreversible")
BLOCKED = Look("idle", "ban", "Blocked")
REFUSED = Look("bad", "circle-x", "Refused")
FAILED = Look("bad", "circle-x", "Failed")
APPROVAL = Look("warn", "user-check", "Needs approval")
APPROVED = Look("ok", "user-check", "Approved")
CHECK_FIRST = Look("unk", "scan-search", "Check first", solid=False)
CHECKING = Look("move", "scan-search", "Checking", solid=False)
HELD = Look("warn", "hand", "Held for a person")
CHANGED_MARK = Look("warn", "triangle-alert", "Changed")
NEW_MARK = Look("warn", "triangle-alert", "New")
SECOND_PERSON = Look("warn", "user-check", "Second person")
AGREES = Look("ok", "circle-check", "Agrees with the ledger")
DISAGREES = Look("bad", "circle-x", "Does not agree with the ledger")
CONTESTED = Look("bad", "circle-x", "The ledger no longer supports it")
NOT_TOLD = Look("idle", "circle-minus", "Nothing to tell yet")

ROLLED_BACK = Look("ok", "undo-2", "Rolled back")
"""A run that failed because all it had done was to be undone, and was: its end on the wire stays `failed`."""

PARTLY_COMPENSATED = PARTLY.saying("Partly compensated")
"""A run of which a part stays that was to be taken back: never green (F142)."""

RUN = _table(
    planning=Look("idle", "circle-dashed", "Planning", solid=False),
    executing=Look("move", "refresh-cw", "Running"),
    waiting_for_tool=Look("move", "send", "Waiting for tool", solid=False),
    verifying=Look("move", "scan-search", "Verifying", solid=False),
    recovering=STILL_TRYING,
    escalated=Look("warn", "hand", "Escalated"),
    compensating=UNDOING,
    cancelling=Look("move", "circle-slash", "Cancelling", solid=False),
    completed=Look("ok", "circle-check", "Completed"),
    failed=FAILED,
    cancelled=Look("idle", "circle-minus", "Cancelled"),
)

OUTCOME = _table(
    ok=Look("ok", "circle-check", "ok"),
    retryable=Look("move", "rotate-cw", "retryable"),
    needs_input=Look("warn", "message-square", "needs_input"),
    needs_human=Look("warn", "hand", "needs_human"),
    fatal=Look("bad", "circle-x", "fatal"),
    cancelled=Look("idle", "circle-minus", "cancelled"),
)

ACTION = _table(
    proposed=Look("idle", "circle-dashed", "Proposed", solid=False),
    rejected=REFUSED,
    awaiting_approval=APPROVAL,
    approved=Look("idle", "user-check", "Approved"),
    permitted=DISPATCHED,
    succeeded=PROVEN,
    refused_transient=STILL_TRYING.saying("Refused for now"),
    refused_permanent=REFUSED,
    unknown=UNKNOWN,
    probing=CHECKING,
    partial=PARTLY.saying("Partly, so far"),
    partial_final=PARTLY.saying("Partly done"),
    conflict=CONFLICT,
    absent=UNKNOWN.saying("Not found yet"),
    absent_final=Look("idle", "circle-minus", "Did not happen"),
    processing=Look("unk", "hourglass", "In progress", solid=False),
    probe_failed=UNKNOWN.saying("Look-up failed"),
    held=HELD,
    void=Look("idle", "circle-minus", "Void"),
    compensating=UNDOING,
    compensated=COMPENSATED,
    compensation_held=UNDO_STOPPED,
)

EFFECT = _table(
    planned=PLANNED,
    pending=PENDING,
    dispatched=DISPATCHED,
    proven=PROVEN,
    verified=Look("ok", "circle-check", "Verified"),
    unknown=UNKNOWN,
    partial=PARTLY.saying("Partly done"),
    conflict=CONFLICT,
    compensating=UNDOING,
    compensated=COMPENSATED,
    partly_compensated=PARTLY.saying("Partly compensated"),
    undo_stopped=UNDO_STOPPED,
    given_up=GIVEN_UP,
    irreversible=IRREVERSIBLE,
    absent=Look("idle", "circle-minus", "Did not happen"),
    refused=REFUSED,
    blocked=BLOCKED,
    skipped=Look("idle", "circle-minus", "Skipped"),
    settle_first=UNKNOWN.saying("Settle first"),
)

PLAN = _table(
    done=COMPENSATED,
    outside=COMPENSATED.saying("Undone outside"),
    partly=PARTLY.saying("Partly compensated"),
    waived=GIVEN_UP,
    running=UNDOING,
    approval=APPROVAL,
    held=UNDO_STOPPED,
    settle_first=UNKNOWN.saying("Settle first"),
    impossible=Look("warn", "ban", "Cannot be undone"),
    remaining=PLANNED.saying("Remaining"),
)
"""Where a line of a plan stands; in the order in which its summary counts."""

REVERSAL = _table(
    reversible=Look("idle", "undo-2", "Reversible"),
    irreversible=IRREVERSIBLE,
    check_first=CHECK_FIRST,
    undone=Look("ok", "undo-2", "Already undone"),
    undone_in_part=PARTLY.saying("Undone in part"),
    no_way=Look("idle", "ban", "No undo"),
    too_late=Look("warn", "hourglass", "Window over"),
)
"""Whether an effect can be taken back at all, apart from how far that has come."""

UNDO = _table(
    proposed=REQUESTED,
    approved=REQUESTED.saying("Approved, not sent"),
    permitted=DISPATCHED,
    succeeded=PROVEN,
    refused_transient=STILL_TRYING.saying("Refused for now"),
    refused_permanent=FAILED.saying("Refused"),
    rejected=REFUSED.saying("Not approved"),
    void=FAILED.saying("Did not happen"),
)
"""How far the undo of a line has come, where that says more than the line; other states look as any call's."""

TASK = _table(
    open=Look("warn", "hand", "Open"),
    claimed=Look("idle", "user-check", "Claimed"),
    awaiting_approval=APPROVAL,
    executing=Look("move", "refresh-cw", "Being carried out"),
    resolved=Look("ok", "circle-check", "Resolved"),
    reopened=Look("warn", "hand", "Reopened"),
)

ATTEMPT = _table(
    dispatched=DISPATCHED,
    not_sent=Look("idle", "circle-minus", "Not sent"),
    unknown=UNKNOWN.saying("Outcome unknown"),
    ok_valid=Look("ok", "circle-check", "Valid reply"),
    ok_invalid=UNKNOWN.saying("Reply proves nothing"),
    transient_reject=WAITING.saying("Refused for now"),
    permanent_reject=REFUSED,
    policy_denied=Look("bad", "circle-x", "Refused by policy"),
    needs_input=Look("warn", "message-square", "Needs input"),
)

VERDICT = _table(
    none=Look("unk", "circle-question-mark", "No look-up yet", solid=False),
    present=Look("ok", "circle-check", "Found once"),
    present_final=Look("ok", "circle-check", "Found once, final"),
    absent=UNKNOWN.saying("Not found, not final"),
    absent_final=Look("idle", "circle-minus", "Not there, final"),
    partial=PARTLY.saying("Partly, not final"),
    partial_final=PARTLY.saying("Partly, final"),
    undone=Look("idle", "undo-2", "Taken back outside"),
    processing=Look("unk", "hourglass", "Still in progress", solid=False),
    conflict=CONFLICT,
    probe_failed=UNKNOWN.saying("Look-up failed"),
    job_failed=Look("bad", "circle-x", "The job failed"),
)

STOP = _table(
    standing=Look("bad", "octagon-pause", "Standing"),
    ended=Look("idle", "clock", "Ended by itself"),
    lifted=Look("idle", "play", "Lifted"),
)

HANDOVER = _table(
    offered=Look("warn", "user", "Offered", solid=False),
    accepted=Look("idle", "user-check", "Accepted"),
    declined=Look("idle", "circle-x", "Declined"),
    withdrawn=Look("idle", "undo-2", "Taken back"),
    expired=Look("idle", "clock", "Not accepted in time"),
)

CIRCUIT = _table(
    closed=Look("ok", "circle-check", "Closed"),
    open=Look("bad", "circle-slash", "Open"),
    half_open=Look("move", "scan-search", "Half open"),
    held_open=Look("bad", "hand", "Held open"),
)

FINAL = _table(
    now=Look("ok", "circle-check", "Now"),
    some=Look("warn", "hourglass", "For some"),
    later=Look("warn", "hourglass", "Later"),
    never=Look("bad", "ban", "Never"),
)
"""From when a look-up that finds nothing proves that nothing happened."""
NO_LOOK_UP = Look("idle", "ban", "No look-up")

LETTER = _table(
    recorded=Look("warn", "hand", "Recorded"),
    in_review=Look("warn", "hand", "In review"),
    replay_requested=REQUESTED.saying("Replay requested"),
    replaying=DISPATCHED.saying("Being replayed"),
    recovered=Look("ok", "circle-check", "Recovered"),
    discarded=Look("idle", "trash-2", "Discarded"),
)

DECISION = _table(
    requested=REQUESTED,
    running=DISPATCHED,
    done=Look("idle", "circle-minus", "Done"),
    refused=REFUSED,
    failed=FAILED,
)

BULK = _table(
    created=PLANNED.saying("Not started"),
    running=Look("move", "refresh-cw", "Running"),
    suspended=Look("warn", "pause", "Suspended"),
    done=Look("idle", "check", "Done"),
    partly_done=PARTLY.saying("Partly done"),
    cancelled=Look("idle", "circle-minus", "Stopped"),
)
SUSPENDED_BY_RULE = BULK["suspended"].saying("Suspended by rule")

BULK_ITEM = _table(
    pending=PENDING,
    done=Look("idle", "check", "Done"),
    skipped=Look("idle", "circle-minus", "Skipped"),
    failed=FAILED,
)

DRY_RUN = _table(
    will_run=Look("idle", "arrow-right", "Will run"),
    check_first=CHECK_FIRST.saying("Needs a check first"),
    blocked=BLOCKED,
    not_permitted=Look("idle", "lock", "Not permitted"),
    already_done=Look("idle", "circle-minus", "Already done"),
    unseen=PENDING.saying("Not looked at yet"),
)
"""What a dry run says; nothing of it is proven, so nothing of it is green."""

ANYTHING_CHANGED = _table(
    no=Look("idle", "circle-minus", "No"),
    yes=Look("ok", "circle-check", "Yes, proven"),
    unknown=UNKNOWN,
    partly=PARTLY.saying("Partly"),
    partly_undone=PARTLY.saying("Partly undone"),
    undone=COMPENSATED,
    conflict=CONFLICT,
)

RETRY_SAFE = _table(
    yes=Look("ok", "circle-check", "Yes"),
    same_id=Look("ok", "circle-check", "Yes, same id"),
    not_yet=Look("warn", "hourglass", "Not yet"),
    check_first=CHECK_FIRST,
    no=Look("bad", "ban", "No"),
    after_approval=Look("warn", "user-check", "After approval"),
    after_input=Look("idle", "message-square", "After input"),
    nothing_to_retry=Look("idle", "circle-minus", "Nothing to retry"),
)

WORLD = _table(
    possible=Look("unk", "circle-question-mark", "Possible", solid=False),
    ruled_out=Look("idle", "x", "Ruled out"),
    proven=PROVEN,
)

EXCEEDS = _table(
    nothing=Look("ok", "circle-check", "Nothing"),
    exceeds=Look("bad", "circle-x", "Exceeds"),
    unchecked=Look("idle", "circle-minus", "No limit recorded"),
)

NOTICE = _table(
    requested=Look("idle", "arrow-right", "Requested"),
    dispatched=Look("move", "send", "Dispatched"),
    verified=Look("ok", "circle-check", "Verified"),
    race=Look("idle", "info", "Somebody was faster"),
    info=Look("idle", "info", "Note"),
    moved=Look("warn", "triangle-alert", "The evidence moved"),
    stale=Look("warn", "triangle-alert", "Not live"),
    refused=Look("bad", "circle-alert", "Refused"),
)

CHECK = _table(
    waiting=WAITING.saying("Being asked"),
    never=Look("idle", "circle-minus", "Not tested"),
    answers=Look("ok", "circle-check", "Answers"),
    credential=Look("bad", "lock", "Credential not accepted"),
    address=Look("bad", "ban", "Cannot be asked"),
    refused=Look("bad", "circle-x", "Connection refused"),
    tls=Look("bad", "circle-x", "No TLS"),
    late=Look("bad", "clock", "No answer in time"),
    unreachable=Look("bad", "circle-x", "Not reached"),
    broken=Look("bad", "circle-x", "In trouble"),
    busy=Look("warn", "hourglass", "Busy"),
    wrong=Look("bad", "circle-x", "Wrong place"),
    shape=Look("bad", "circle-x", "Unusable answer"),
    believed=Look("bad", "triangle-alert", "Not to be believed"),
    abandoned=Look("warn", "circle-minus", "Given up"),
)
"""What came of the test of a connector (recovery/connectors/reach.py)."""

MEMBER = _table(
    active=Look("idle", "user-check", "Active"),
    deactivated=Look("idle", "ban", "Deactivated"),
    factor=Look("idle", "shield-check", "Set up"),
    password_only=Look("warn", "triangle-alert", "Password only"),
    may=Look("idle", "check", "yes"),
    may_not=Look("idle", "circle-minus", "no"),
)
"""Somebody with a role: whether they may sign in, by what, and what a role includes."""

CHANGE = _table(
    added=Look("idle", "plus", "Added"),
    removed=Look("idle", "circle-minus", "Removed"),
    changed=Look("idle", "rotate-cw", "Changed"),
    weaker=Look("warn", "triangle-alert", "Weaker"),
)
"""What became of a field between two versions of a workflow."""

ACTOR = _table(
    person=Look("idle", "user", "person"),
    agent=Look("idle", "bot", "agent"),
    rule=Look("idle", "scroll-text", "rule"),
    timer=Look("idle", "clock", "timer"),
    connector=Look("idle", "plug", "connector"),
    worker=Look("idle", "settings", "worker"),
)

TABLES: Mapping[str, Looks] = MappingProxyType(
    {
        "run": RUN,
        "outcome": OUTCOME,
        "action": ACTION,
        "effect": EFFECT,
        "task": TASK,
        "plan": PLAN,
        "reversal": REVERSAL,
        "undo": UNDO,
        "attempt": ATTEMPT,
        "verdict": VERDICT,
        "decision": DECISION,
        "dead_letter": LETTER,
        "stop": STOP,
        "circuit": CIRCUIT,
        "handover": HANDOVER,
        "bulk": BULK,
        "bulk_item": BULK_ITEM,
        "dry_run": DRY_RUN,
        "anything_changed": ANYTHING_CHANGED,
        "retry_safe": RETRY_SAFE,
        "world": WORLD,
        "exceeds": EXCEEDS,
        "notice": NOTICE,
        "change": CHANGE,
        "member": MEMBER,
        "check": CHECK,
        "actor": ACTOR,
    }
)

UNREADABLE = Look("warn", "triangle-alert", "Cannot be opened")

VERB_ICONS: Mapping[str, str] = MappingProxyType(
    {
        "claim": "user-check",
        "release": "log-out",
        "assign": "user",
        "accept": "user-check",
        "decline": "circle-x",
        "withdraw": "undo-2",
        "reconcile": "scan-search",
        "retry": "rotate-cw",
        "replay": "rotate-cw",
        "resume": "play",
        "compensate": "undo-2",
        "waive": "circle-minus",
        "attest": "file-text",
        "request_input": "message-square",
        "provide_input": "message-square",
        "approve": "circle-check",
        "reject": "circle-x",
        "cancel": "circle-x",
        "discard": "trash-2",
        "top_up": "plus",
        "hold_circuit": "pause",
        "release_circuit": "play",
        "set_stop": "octagon-pause",
        "lift_stop": "play",
        "comment": "message-square",
        "snooze": "alarm-clock-off",
        "reopen": "hand",
        "open": "arrow-right",
    }
)
DANGEROUS = frozenset({"cancel", "discard", "compensate", "waive", "set_stop", "hold_circuit"})
"""Verbs that end or undo something: their button is red."""


def look(kind: str, state: str) -> Look:
    """The look of `state` in the table `kind`; a LookupError names the pair when nobody gave it a look."""
    try:
        return TABLES[kind][state]
    except KeyError:
        raise LookupError(f"no look for the {kind} state {state!r}: add it to console/looks.py") from None
