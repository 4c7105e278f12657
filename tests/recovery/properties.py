"""What must hold for every answer of the table (DECISIONS §4), written without the table's own words.

A property gets the evidence, its answer and the function that gave it, and says whether it holds. `about` names
the actions that could break it, so that no time goes into asking about the others.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from recovery.rules.decide import Action, NextAction
from recovery.rules.evidence import Evidence

Decide = Callable[[Evidence], NextAction]
Property = Callable[[Evidence, NextAction, Decide], bool]

# How many lines each row of the table has, by their letters; row 1 has one line and no letter.
LINES = {
    "2": "abcdefghi",
    "3": "abc",
    "4": "ab",
    "5": "abcde",
    "6": "abcde",
    "7": "abc",
    "8": "abcdefghi",
    "9": "abcdefgh",
}
RULES = {"1"} | {row + letter for row, letters in LINES.items() for letter in letters}
HUMAN_REASONS = {
    "conflicting_evidence",
    "deadline_exceeded",
    "budget_exhausted",
    "retry_exhausted",
    "compensation_failed",
    "partial_effect",
    "not_compensable",
    "external_outcome_unknown",
    "postcondition_unproven",
}
WAIT_REASONS = {"circuit", "look_due", "undo"}
REMOTE_CALLS = {Action.RETRY, Action.PROBE, Action.COMPENSATE}
PERMANENT = {"permanent_reject", "policy_denied"}
NOT_APPLIED = {"not_sent", "transient_reject", *PERMANENT}
SEEN = {"present", "present_final", "partial", "partial_final", "processing"}

PROPERTIES: dict[str, tuple[frozenset[Action], Property]] = {}


def about(*actions: Action) -> Callable[[Property], Property]:
    def register(holds: Property) -> Property:
        PROPERTIES[holds.__name__] = (frozenset(actions), holds)
        return holds

    return register


def writes(e: Evidence) -> bool:
    return e.effect == "write"


def certainly_nothing_there(e: Evidence) -> bool:
    """The reply says that nothing was done and no look-up saw anything, or a final look-up found nothing."""
    if e.verdict == "absent_final":
        return e.observation != "ok_valid"
    return e.observation in NOT_APPLIED and e.verdict in ("none", "absent", "probe_failed")


def contradicts_itself(e: Evidence) -> bool:
    if e.verdict == "conflict":
        return True
    if not writes(e) or e.undo != "none":
        return False
    return (e.observation in NOT_APPLIED and e.verdict in SEEN) or (
        e.observation == "ok_valid" and e.verdict == "absent_final"
    )


def a_look_could_settle(e: Evidence) -> bool:
    """The question is open, a further look-up may be made, and its answer could change what is done."""
    open_question = (
        writes(e)
        and e.undo == "none"
        and e.observation in ("unknown", "ok_valid", "ok_invalid")
        and e.verdict in ("none", "absent", "present", "partial", "processing", "probe_failed")
    )
    claimed = e.observation == "ok_valid" or e.verdict == "present"
    nothing_can_be_undone = claimed and e.goal == "rollback" and not e.compensable and e.verdict != "partial"
    return open_question and not nothing_can_be_undone and e.reconcilable and e.looks != "spent"


@about(*Action)
def every_answer_is_one_of_the_words_of_the_table(e: Evidence, a: NextAction, decide: Decide) -> bool:
    if a.action is Action.HUMAN:
        return a.rule in RULES and a.reason in HUMAN_REASONS
    return a.rule in RULES and (a.action is not Action.WAIT or a.reason in WAIT_REASONS)


@about(*REMOTE_CALLS)
def no_remote_call_while_the_circuit_is_shut(e: Evidence, a: NextAction, decide: Decide) -> bool:
    return e.circuit != "shut"


@about(*REMOTE_CALLS)
def a_half_open_slot_takes_only_reads_looks_and_keyed_writes(e: Evidence, a: NextAction, decide: Decide) -> bool:
    if e.circuit != "half_slot" or a.action is Action.PROBE:
        return True
    return a.action is Action.RETRY and (not writes(e) or e.key == "live")


@about(Action.RETRY)
def nothing_is_sent_past_attempts_budget_or_deadline(e: Evidence, a: NextAction, decide: Decide) -> bool:
    return e.attempts_left and e.budget_left and not e.past_deadline


@about(Action.RETRY)
def an_unsettled_write_is_sent_again_only_under_a_live_key(e: Evidence, a: NextAction, decide: Decide) -> bool:
    return not writes(e) or certainly_nothing_there(e) or e.key == "live"


@about(Action.RETRY)
def a_broken_reply_to_a_write_is_never_sent_again_by_itself(e: Evidence, a: NextAction, decide: Decide) -> bool:
    return not writes(e) or e.observation != "ok_invalid" or e.verdict == "absent_final"


@about(Action.RETRY)
def nothing_is_sent_again_where_an_effect_was_seen(e: Evidence, a: NextAction, decide: Decide) -> bool:
    return e.verdict != "conflict" and not (writes(e) and (e.verdict in SEEN or e.observation == "ok_valid"))


@about(Action.RETRY)
def a_permanent_refusal_is_never_sent_again(e: Evidence, a: NextAction, decide: Decide) -> bool:
    return e.observation not in PERMANENT


@about(Action.RETRY)
def nothing_is_sent_with_an_expired_key(e: Evidence, a: NextAction, decide: Decide) -> bool:
    if not writes(e) or e.key != "expired":
        return True
    return certainly_nothing_there(e) and a.reason == "proven_no_effect_next_key"


@about(Action.RETRY, Action.COMPENSATE)
def the_gate_holds_for_writes(e: Evidence, a: NextAction, decide: Decide) -> bool:
    return not writes(e) or e.gate == "open"


@about(Action.RETRY)
def a_write_is_sent_again_only_to_go_forward(e: Evidence, a: NextAction, decide: Decide) -> bool:
    return e.goal == "forward"


@about(Action.CLOSE_OK)
def no_ok_without_the_proof_the_contract_demands(e: Evidence, a: NextAction, decide: Decide) -> bool:
    if not writes(e):
        return e.observation == "ok_valid"
    by_look = e.verdict == "present_final" or (
        e.verdict == "present" and (e.proof in ("reply", "look") or e.key == "live")
    )
    by_reply = (
        e.proof == "reply" and e.observation == "ok_valid" and e.verdict not in SEEN | {"absent", "absent_final"}
    )
    return e.goal == "forward" and e.observation not in NOT_APPLIED and (by_look or by_reply)


@about(Action.CLOSE_OK, Action.CLOSE_CANCELLED, Action.CLOSE_NO_EFFECT, Action.FATAL)
def no_unknown_write_is_closed(e: Evidence, a: NextAction, decide: Decide) -> bool:
    if not writes(e) or e.observation not in ("unknown", "ok_invalid"):
        return True
    return e.verdict in ("present", "present_final", "absent_final") or e.undo == "done"


@about(Action.CLOSE_CANCELLED, Action.CLOSE_NO_EFFECT, Action.FATAL)
def no_close_hides_an_effect(e: Evidence, a: NextAction, decide: Decide) -> bool:
    if not writes(e) or certainly_nothing_there(e):
        return True
    if a.action is Action.CLOSE_CANCELLED:
        return a.reason == "cancelled_with_effects"
    return a.action is Action.CLOSE_NO_EFFECT and e.undo == "done"


@about(Action.COMPENSATE)
def an_undo_is_asked_for_possible_and_proven(e: Evidence, a: NextAction, decide: Decide) -> bool:
    seen = e.verdict in ("present_final", "partial_final") or (e.verdict == "present" and e.key == "live")
    nobody_to_ask = not e.reconcilable and (
        e.verdict == "present" or (e.observation == "ok_valid" and e.verdict in ("none", "probe_failed"))
    )
    return writes(e) and e.goal == "rollback" and e.compensable and (seen or nobody_to_ask)


@about(Action.COMPENSATE)
def nothing_is_undone_twice(e: Evidence, a: NextAction, decide: Decide) -> bool:
    return e.undo == "none"


@about(*set(Action) - {Action.HUMAN})
def a_contradiction_is_always_a_persons(e: Evidence, a: NextAction, decide: Decide) -> bool:
    return not contradicts_itself(e)


@about(Action.HUMAN)
def no_person_is_asked_where_a_look_will_still_settle_it(e: Evidence, a: NextAction, decide: Decide) -> bool:
    return not a_look_could_settle(e)


@about(Action.PROBE)
def looks_stop_at_their_ceiling_and_keep_their_time(e: Evidence, a: NextAction, decide: Decide) -> bool:
    return e.reconcilable and e.looks == "due"


@about(Action.WAIT)
def every_wait_is_for_something_that_will_come(e: Evidence, a: NextAction, decide: Decide) -> bool:
    if a.reason == "circuit":
        return e.circuit != "closed"
    if a.reason == "look_due":
        return e.reconcilable and e.looks == "later"
    return e.undo == "pending"


@about(Action.ASK_APPROVAL)
def approval_is_asked_only_where_it_would_let_something_be_sent(e: Evidence, a: NextAction, decide: Decide) -> bool:
    approved = decide(e._replace(gate="open", circuit="closed")).action
    return e.gate == "shut" and approved in (Action.RETRY, Action.COMPENSATE)


@about(Action.RETRY, Action.COMPENSATE)
def taking_something_away_never_starts_a_remote_write(e: Evidence, a: NextAction, decide: Decide) -> bool:
    if not writes(e):
        return True
    richer = [e._replace(**given) for given in GIVEN if getattr(e, next(iter(given))) not in given.values()]
    return all(decide(other).action in (Action.RETRY, Action.COMPENSATE) for other in richer)


GIVEN: list[dict[str, object]] = [
    {"attempts_left": True},
    {"budget_left": True},
    {"past_deadline": False},
    {"gate": "open"},
    {"compensable": True},
]


@about(*Action)
def a_circuit_only_delays(e: Evidence, a: NextAction, decide: Decide) -> bool:
    if e.circuit == "closed":
        return True
    otherwise = decide(e._replace(circuit="closed"))
    if a == otherwise:
        return True
    waits = a.action is Action.WAIT and a.reason == "circuit" and a.rule[0] == otherwise.rule[0]
    return waits and (otherwise.action in REMOTE_CALLS or otherwise.reason == "look_due")


ENOUGH = 20  # counterexamples kept per property; a broken table can have millions


class Survey(NamedTuple):
    """How often each rule answered, and per property how often it was asked and what broke it first."""

    rules: Counter[str]
    asked: Counter[str]
    broken: dict[str, list[tuple[Evidence, NextAction | None]]]


def survey(decide: Decide, combinations: Iterable[Evidence]) -> Survey:
    """Ask every property about every combination; a table without an answer breaks completeness."""
    asked_of = {
        action: [(name, holds) for name, (actions, holds) in PROPERTIES.items() if action in actions]
        for action in Action
    }
    rules: Counter[str] = Counter()
    actions: Counter[Action] = Counter()
    broken: dict[str, list[tuple[Evidence, NextAction | None]]] = {name: [] for name in PROPERTIES}
    broken["every_combination_is_answered"] = []
    for e in combinations:
        try:
            a = decide(e)
            rules[a.rule] += 1
            actions[a.action] += 1
            for name, holds in asked_of[a.action]:
                if not holds(e, a, decide) and len(broken[name]) < ENOUGH:
                    broken[name].append((e, a))
        except LookupError:
            broken["every_combination_is_answered"].append((e, None))
    asked = Counter({name: sum(actions[action] for action in PROPERTIES[name][0]) for name in PROPERTIES})
    return Survey(rules, asked, broken)
