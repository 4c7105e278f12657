"""The table that turns evidence about one action into its one safe next action."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from recovery.rules.evidence import Evidence

TABLE_VERSION = 3


class Action(StrEnum):
    """What may happen next. Only RETRY, PROBE and COMPENSATE call the remote system."""

    CLOSE_OK = "CLOSE_OK"
    CLOSE_CANCELLED = "CLOSE_CANCELLED"
    CLOSE_NO_EFFECT = "CLOSE_NO_EFFECT"
    FATAL = "FATAL"
    HUMAN = "HUMAN"
    WAIT = "WAIT"
    RETRY = "RETRY"
    PROBE = "PROBE"
    COMPENSATE = "COMPENSATE"
    ASK_APPROVAL = "ASK_APPROVAL"


class NextAction(NamedTuple):
    """The answer: what to do, the id of the rule that says so, and a reason code."""

    action: Action
    rule: str
    reason: str


Condition = Callable[[Evidence], bool]
Answer = Callable[[Evidence], NextAction]


class Rule(NamedTuple):
    """One line of the table."""

    id: str
    when: Condition
    answer: Answer


# --- words of the conditions --------------------------------------------------------------------------------

_PERMANENT = frozenset({"permanent_reject", "policy_denied"})
_REFUSED = _PERMANENT | {"transient_reject"}
_NOTHING_LANDED = _REFUSED | {"not_sent"}
_FOUND = frozenset({"present", "present_final"})
_SOMETHING_THERE = _FOUND | {"partial", "partial_final", "processing"}
_NO_ANSWER = frozenset({"none", "probe_failed"})


def _read(e: Evidence) -> bool:
    return e.effect == "read"


def _looks_left(e: Evidence) -> bool:
    return e.reconcilable and e.looks != "spent"


def _up_for_a_write(e: Evidence) -> bool:
    return e.circuit == "closed" or (e.circuit == "half_slot" and e.key == "live")


def _partial_to_undo(e: Evidence) -> bool:
    return e.verdict == "partial_final" and e.goal == "rollback" and e.compensable


def _claimed(e: Evidence) -> bool:
    """Somebody says that the effect is there; whether that is proof is another question."""
    return e.observation == "ok_valid" or e.verdict in _FOUND


def _effect_to_undo(e: Evidence) -> bool:
    return e.goal == "rollback" and _claimed(e)


def _sure_enough_to_undo(e: Evidence) -> bool:
    return e.verdict == "present_final" or (e.verdict == "present" and e.key == "live")


def _must_look_before_undo(e: Evidence) -> bool:
    open_question = e.reconcilable or e.verdict in ("absent", "processing")
    return open_question and not _sure_enough_to_undo(e)


def _proven(e: Evidence) -> bool:
    """The effect exists once, as surely as the tool's contract asks (rules 7a, 7b)."""
    if e.verdict == "present":
        return e.proof != "look_final" or e.key == "live"
    return e.verdict == "present_final" or (
        e.observation == "ok_valid" and e.proof == "reply" and e.verdict in _NO_ANSWER
    )


def _no_effect(e: Evidence) -> bool:
    """It is certain that nothing happened (the rules of row 8)."""
    return e.observation in _NOTHING_LANDED or e.verdict == "absent_final"


def _same_key_helps(e: Evidence) -> bool:
    """What 9c, 9d, 9f and 9g share: a lost reply may be asked for again, a broken one is never re-sent."""
    return (
        e.observation == "unknown"
        and e.goal == "forward"
        and e.key == "live"
        and e.budget_left
        and not e.past_deadline
    )


def _may_resend(e: Evidence) -> bool:
    return _same_key_helps(e) and e.attempts_left and e.gate == "open"


# --- words of the answers -----------------------------------------------------------------------------------


def _say(action: Action, reason: str) -> Callable[[str], Answer]:
    def bind(rule: str) -> Answer:
        answer = NextAction(action, rule, reason)
        return lambda e: answer

    return bind


def _human(reason: str) -> Callable[[str], Answer]:
    return _say(Action.HUMAN, reason)


def _look(why: str) -> Callable[[str], Answer]:
    """Ask the remote system what happened, as soon as its ceiling, circuit and timer allow; else a person."""

    def bind(rule: str) -> Answer:
        person = NextAction(Action.HUMAN, rule, why)
        circuit = NextAction(Action.WAIT, rule, "circuit")
        probe = NextAction(Action.PROBE, rule, why)
        later = NextAction(Action.WAIT, rule, "look_due")

        def answer(e: Evidence) -> NextAction:
            if not _looks_left(e):
                return person
            if e.circuit == "shut":
                return circuit
            return probe if e.looks == "due" else later

        return answer

    return bind


def _fatal(rule: str) -> Answer:
    """The observation's own cause; the caller puts the provider's classified code for `permanent_reject`."""
    causes = {
        cause: NextAction(Action.FATAL, rule, reason)
        for cause, reason in (
            ("permanent_reject", "permanent_reject"),
            ("policy_denied", "policy_denied"),
            ("ok_invalid", "invalid_tool_result"),
        )
    }
    return lambda e: causes[e.observation]


def _resend(rule: str) -> Answer:
    """Same action id; an expired key is never sent again, so the next generation of it goes out."""
    same_key = NextAction(Action.RETRY, rule, "proven_no_effect")
    next_key = NextAction(Action.RETRY, rule, "proven_no_effect_next_key")
    return lambda e: next_key if e.key == "expired" else same_key


_OK = _say(Action.CLOSE_OK, "completed")
_CANCELLED = _say(Action.CLOSE_CANCELLED, "cancelled_by_user")
_CANCELLED_EFFECT_KEPT = _say(Action.CLOSE_CANCELLED, "cancelled_with_effects")
_NOTHING_TO_UNDO = _say(Action.CLOSE_NO_EFFECT, "nothing_to_undo")
_NOT_APPLIED = _say(Action.CLOSE_NO_EFFECT, "not_applied")
_UNDONE = _say(Action.CLOSE_NO_EFFECT, "compensated")
_CONTRADICTION = _human("conflicting_evidence")
_PAST_DEADLINE = _human("deadline_exceeded")
_NO_BUDGET = _human("budget_exhausted")
_NO_ATTEMPTS = _human("retry_exhausted")
_WAIT_CIRCUIT = _say(Action.WAIT, "circuit")
_ASK = _say(Action.ASK_APPROVAL, "approval_required")
_READ_AGAIN = _say(Action.RETRY, "read_again")
_SAME_KEY = _say(Action.RETRY, "same_key")
_COMPENSATE = _say(Action.COMPENSATE, "undo_effect")
_LOOK_UNKNOWN = _look("external_outcome_unknown")


def _rule(rule: str, when: Condition, then: Callable[[str], Answer]) -> Rule:
    return Rule(rule, when, then(rule))


# --- the table: first match wins (DECISIONS §3; docs/decisions.md explains each line) -----------------------

TABLE: tuple[Rule, ...] = (
    _rule("1", lambda e: e.verdict == "conflict", _CONTRADICTION),
    # A read changes nothing: it is over, or it is asked again.
    _rule("2a", lambda e: _read(e) and e.goal == "cancel", _CANCELLED),
    _rule("2b", lambda e: _read(e) and e.goal == "rollback", _NOTHING_TO_UNDO),
    _rule("2c", lambda e: _read(e) and e.observation == "ok_valid", _OK),
    _rule("2d", lambda e: _read(e) and e.observation in _PERMANENT | {"ok_invalid"}, _fatal),
    _rule("2e", lambda e: _read(e) and e.past_deadline, _PAST_DEADLINE),
    _rule("2f", lambda e: _read(e) and not e.budget_left, _NO_BUDGET),
    _rule("2g", lambda e: _read(e) and not e.attempts_left, _NO_ATTEMPTS),
    _rule("2h", lambda e: _read(e) and e.circuit == "shut", _WAIT_CIRCUIT),
    _rule("2i", _read, _READ_AGAIN),
    # From here on only writes. An undo that has begun speaks for the effect.
    _rule("3a", lambda e: e.undo == "done", _UNDONE),
    _rule("3b", lambda e: e.undo == "pending", _say(Action.WAIT, "undo")),
    _rule("3c", lambda e: e.undo == "held", _human("compensation_failed")),
    # Reply and look-up contradict each other.
    _rule("4a", lambda e: e.observation in _NOTHING_LANDED and e.verdict in _SOMETHING_THERE, _CONTRADICTION),
    _rule("4b", lambda e: e.observation == "ok_valid" and e.verdict == "absent_final", _CONTRADICTION),
    # Part of the effect is there.
    _rule("5a", lambda e: e.verdict == "partial", _look("partial_effect")),
    _rule("5b", lambda e: _partial_to_undo(e) and e.gate == "shut", _ASK),
    _rule("5c", lambda e: _partial_to_undo(e) and e.circuit != "closed", _WAIT_CIRCUIT),
    _rule("5d", _partial_to_undo, _COMPENSATE),
    _rule("5e", lambda e: e.verdict == "partial_final", _human("partial_effect")),
    # Rollback of an effect that is there, or is said to be.
    _rule("6a", lambda e: _effect_to_undo(e) and not e.compensable, _human("not_compensable")),
    _rule("6b", lambda e: _effect_to_undo(e) and _must_look_before_undo(e), _LOOK_UNKNOWN),
    _rule("6c", lambda e: _effect_to_undo(e) and e.gate == "shut", _ASK),
    _rule("6d", lambda e: _effect_to_undo(e) and e.circuit != "closed", _WAIT_CIRCUIT),
    _rule("6e", _effect_to_undo, _COMPENSATE),
    # Forward or cancel, and the effect is there, or is said to be.
    _rule("7a", lambda e: _proven(e) and e.goal == "forward", _OK),
    _rule("7b", _proven, _CANCELLED_EFFECT_KEPT),
    _rule("7c", _claimed, _look("postcondition_unproven")),
    # It is certain that nothing happened.
    _rule("8a", lambda e: _no_effect(e) and e.goal == "cancel", _CANCELLED),
    _rule("8b", lambda e: _no_effect(e) and e.goal == "rollback", _NOT_APPLIED),
    _rule("8c", lambda e: _no_effect(e) and e.observation in _PERMANENT, _fatal),
    _rule("8d", lambda e: _no_effect(e) and e.past_deadline, _PAST_DEADLINE),
    _rule("8e", lambda e: _no_effect(e) and not e.budget_left, _NO_BUDGET),
    _rule("8f", lambda e: _no_effect(e) and not e.attempts_left, _NO_ATTEMPTS),
    _rule("8g", lambda e: _no_effect(e) and e.gate == "shut", _ASK),
    _rule("8h", lambda e: _no_effect(e) and not _up_for_a_write(e), _WAIT_CIRCUIT),
    _rule("8i", _no_effect, _resend),
    # The write may or may not have happened.
    _rule("9a", lambda e: e.verdict in _NO_ANSWER and _looks_left(e), _LOOK_UNKNOWN),
    _rule("9b", lambda e: e.verdict == "processing", _LOOK_UNKNOWN),
    _rule("9c", lambda e: _may_resend(e) and not _up_for_a_write(e), _WAIT_CIRCUIT),
    _rule("9d", _may_resend, _SAME_KEY),
    _rule("9e", lambda e: e.verdict == "absent" and _looks_left(e), _LOOK_UNKNOWN),
    _rule("9f", lambda e: _same_key_helps(e) and e.attempts_left and e.gate == "shut", _ASK),
    _rule("9g", lambda e: _same_key_helps(e) and not e.attempts_left and e.gate == "open", _NO_ATTEMPTS),
    _rule("9h", lambda e: True, _human("external_outcome_unknown")),
)


def decide(evidence: Evidence) -> NextAction:
    """The one safe next action for this evidence (DECISIONS §3). Pure and total: asks and changes nothing."""
    return first_match(TABLE, evidence)


def first_match(table: Iterable[Rule], evidence: Evidence) -> NextAction:
    """The answer of the first rule of `table` whose condition holds; LookupError if none does."""
    for _, holds, answer in table:
        if holds(evidence):
            return answer(evidence)
    raise LookupError(f"no rule answers {evidence}")
