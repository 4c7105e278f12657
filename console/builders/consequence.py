"""What pressing a verb comes to, in words: the worst case, who else must agree, and the steps that follow."""

from __future__ import annotations

from collections.abc import Callable

from console import looks
from console.builders import words
from console.builders.record import answer_of
from console.builders.task import Seen
from console.looks import Look
from recovery.rules import policy
from recovery.rules.authority import counts_alone, discarded_by_two, replayed_by_two, waived_by_two
from recovery.rules.policy import Situation, Verb
from runs.models import Action

BUTTONS = {
    "reconcile": "Request check now",
    "approve": "Approve this call now",
    "reject": "Reject it now",
    "replay": "Allow one more try now",
    "retry": "Allow the same call again",
    "discard": "Discard it now",
    "top_up": "Top up now",
    "resume": "Let the run go on now",
    "attest": "Attest now",
    "compensate": "Undo it now",
    "waive": "Accept what stays",
    "cancel": "Cancel the run now",
    "request_input": "Make the link",
    "provide_input": "Answer for the requester",
    "assign": "Hand over now",
    "decline": "Decline the handover",
    "snooze": "Snooze now",
    "reopen": "Reopen now",
    "confirm": "Confirm the statement",
    "doubt": "Reject the statement",
}
_WORST = {
    "approve": ("The call is sent and its outcome stays unknown, until a look-up settles it.", "warn"),
    "reject": ("The run cannot do what was asked, and ends refused. Nothing changes in the world.", "idle"),
    "discard": ("What the call was meant to do is not done, and nobody is asked about it again.", "warn"),
    "top_up": ("The run uses up what you add and stops again. It cannot be topped up a second time.", "warn"),
    "resume": ("The agent stops again and a new task opens. Nothing that is proven is repeated.", "idle"),
    "request_input": ("Nobody answers in time: the question becomes a colleague's. Nothing is sent.", "idle"),
    "provide_input": ("The answer is wrong: the new call is refused or does the wrong thing, as checked.", "warn"),
    "assign": ("The receiver does not answer, and it stays where it is. The SLA clock runs on.", "idle"),
    "decline": ("It stays with whoever has it. The SLA clock runs on.", "idle"),
    "snooze": ("Nobody looks at it before then. What is asked stays open.", "warn"),
    "reopen": ("A colleague looks once more at what was right.", "idle"),
    "attest": ("The statement is wrong and counts. A later look-up that contradicts it opens a task.", "warn"),
    "compensate": ("An undo fails or is unknown: the run stops there, and names what is left.", "warn"),
    "waive": ("It could have been taken back after all: from here on nothing tries to.", "warn"),
}
_AGREE = {
    "reconcile": "Nobody. A read needs no second person.",
    "approve": "Nobody. You are the second person; the requester may not approve.",
    "reject": "Nobody. Refusing is always allowed to whoever may approve.",
    "replay": "Nobody. The amount is below the threshold of this workflow.",
    "retry": "Nobody. The amount is below the threshold of this workflow.",
    "discard": "Nobody. It is certain that nothing happened.",
    "top_up": "Nobody. It is bounded, and is done once.",
    "resume": "Nobody. Every call is settled.",
    "attest": "A second person, who confirms it.",
    "attest_alone": "Nobody. The amount is below the threshold of this workflow.",
    "compensate": "Nobody. No undo of this plan, nor their sum, is above the threshold of this workflow.",
    "compensate_by_two": "A second person, for exactly this plan. A plan that changes is asked for anew.",
    "waive": "Nobody. What stays is below the threshold of this workflow.",
    "by_two": "A second person. Nothing is done before that.",
    "cancel": "Nobody. Stopping is always allowed.",
    "request_input": "The requester, by answering.",
    "provide_input": "Nobody for the answer. The new call meets every check, and an approval where one is needed.",
    "assign": "The receiver, by accepting it. Back to the team needs nobody's word.",
    "decline": "Nobody.",
    "snooze": "Nobody.",
    "reopen": "Nobody. One doubt is enough.",
    "confirm": "Nobody. You are the second person; whoever attested it may not confirm it.",
    "doubt": "Nobody. One doubt is enough.",
}
_CHAIN = {
    "reconcile": ("A worker asks", "The answer is proven or not"),
    "approve": ("The call may be sent", "Its outcome is proven or not"),
    "reject": ("The agent is told",),
    "replay": ("The same call may be sent", "Its outcome is proven or not"),
    "retry": ("The agent goes on",),
    "discard": ("The call is given up",),
    "top_up": ("The run goes on",),
    "resume": ("The agent goes on",),
    "attest": ("A second person confirms", "It counts as evidence"),
    "attest_alone": ("It counts as evidence",),
    "compensate": ("Each effect is undone", "Each undo is proven or not"),
    "compensate_by_two": ("A second person approves the plan", "Each effect is undone", "Each undo is proven or not"),
    "waive": ("What stays is in the record",),
    "by_two": ("A second person agrees", "It is carried out"),
    "cancel": ("The run ends",),
    "request_input": ("The requester answers", "The agent proposes a new call"),
    "provide_input": ("The agent proposes a new call",),
    "assign": ("The receiver accepts", "The task is another's"),
    "decline": ("Who offers it is told",),
    "snooze": ("The task wakes by itself",),
    "reopen": ("A colleague decides",),
    "confirm": ("It counts as evidence",),
    "doubt": ("The task goes back to the queue",),
}


def said(seen: Seen, verb: Verb) -> str:
    """The verb by what it comes to: a word that counts at once, and a second word on a statement, send no call."""
    if seen.panel.statement is not None and verb.name in ("approve", "reject"):
        return {"approve": "confirm", "reject": "doubt"}[verb.name]
    at = seen.panel.situation
    if verb.name == "attest":
        return "attest_alone" if counts_alone(at) else "attest"
    if verb.name == "compensate":
        return "compensate_by_two" if seen.panel.plan.needs_approval else "compensate"
    by_two = _BY_TWO.get(verb.name)
    return "by_two" if by_two is not None and by_two(at) else verb.name


_BY_TWO: dict[str, Callable[[Situation], bool]] = {
    "waive": waived_by_two,
    "replay": replayed_by_two,
    "discard": discarded_by_two,
}


def worst(seen: Seen, verb: Verb) -> tuple[str, str]:
    """The sentence, and "idle" where nothing can change or "warn" where something is lost."""
    if not seen.panel.situation.task_open and verb.name != "reopen":
        return "None. The task is resolved; nothing can be sent from here.", "idle"
    if seen.panel.statement is not None and verb.name in ("approve", "reject"):
        return _WORST["attest"] if verb.name == "approve" else ("The truth goes unused a while longer.", "idle")
    if verb.name == "reconcile":
        return _early(seen), "idle"
    if verb.name in ("retry", "replay"):
        return f"The call is sent and fails again. {verb.sentence}", "warn"
    return _WORST.get(verb.name) or (_ends(seen), "warn")


def button(seen: Seen, verb: Verb) -> str:
    return BUTTONS.get(said(seen, verb)) or BUTTONS[verb.name]


def agree(seen: Seen, verb: Verb) -> str:
    named = said(seen, verb)
    without = named in _BY_THRESHOLD and not _threshold(seen)
    return _NO_THRESHOLD if without else _AGREE[named]


_BY_THRESHOLD = ("replay", "retry", "attest_alone", "compensate", "waive")
_NO_THRESHOLD = "Nobody. This workflow declares no threshold above which a second person is needed."


def _threshold(seen: Seen) -> bool:
    return seen.record.definition.manifest.value_threshold_minor is not None


def chain(seen: Seen, verb: Verb) -> list[Look]:
    steps = [looks.PENDING.saying(step) for step in _CHAIN[said(seen, verb)]]
    return [looks.REQUESTED.saying("You request"), *steps]


def _early(seen: Seen) -> str:
    final_at, now = seen.panel.situation.final_from, seen.panel.situation.now
    early = f" It cannot be final before {words.moment(final_at, now)}." if final_at and final_at > now else ""
    return f"The answer settles nothing and the task stays open.{early} Nothing in the world changes."


def _ends(seen: Seen) -> str:
    if seen.panel.situation.outside:
        return "The question is closed with your reason. Nothing changes in the other system."
    unknown = [action for action in seen.record.unsettled if _may_have_happened(seen, action)]
    if unknown:
        named = ", ".join(
            f"`{action.tool}` {words.amount(action.value_minor, action.currency)}".strip() for action in unknown
        )
        return f"The run ends although {named} may have happened. Its task stays open until that is settled."
    proven = words.plural(len(seen.record.standing), "proven effect")
    stays = "stays" if len(seen.record.standing) == 1 else "stay"
    return f"The run ends and cannot be taken up again. {proven} {stays}."


def _may_have_happened(seen: Seen, action: Action) -> bool:
    case = seen.panel.case
    if case is not None and case.action.pk == action.pk and policy.surely_nothing(case.evidence):
        return False
    return answer_of(action) in ("unknown", "partly", "conflict")
