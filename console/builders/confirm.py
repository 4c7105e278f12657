"""The sheet of a verb: what will be sent, on which facts, the worst case, who agrees, why, and under which key."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from console import forms, looks
from console.builders import evidence, scope, words
from console.builders.record import answer_of
from console.builders.task import Seen
from console.pages.common import Flash, Link
from console.pages.confirm import Choice, ConfirmPage, FactRow, Select, SentRow
from recovery.rules import policy
from recovery.rules.policy import Verb
from runs.models import Action

MOST_FACTS = 6
BUTTONS = {
    "reconcile": "Request check now",
    "retry": "Allow the same call again",
    "resume": "Let the run go on now",
    "cancel": "Cancel the run now",
}


@dataclass(frozen=True)
class Typed:
    """What a person had entered before the sheet came back, and what was wrong with it."""

    reason_code: str = ""
    reason: str = ""
    reason_error: str = ""
    code_error: str = ""


def page(seen: Seen, verb: Verb, *, typed: Typed, flash: Flash | None) -> ConfirmPage:
    """A fresh sheet: new key, the evidence and the version as they are now."""
    task = seen.task
    number = words.number(task.number)
    back = reverse("task", args=[task.pk])
    worst, css = _worst(seen, verb)
    return ConfirmPage(
        verb=verb.name,
        title=verb.label,
        subtitle=_subtitle(seen),
        url=reverse(verb.name, args=[task.pk]),
        back_url=back,
        crumbs=[Link("Queue", reverse("queue")), Link(number, back), Link(verb.label, "")],
        sent=_sent(seen, verb),
        sent_intro=_intro(seen, verb),
        facts=_facts(seen),
        worst=worst,
        worst_css=css,
        agree=_agree(verb),
        agree_rule=verb.rule if verb.allowed else "",
        chain=_chain(verb),
        selects=[_codes(verb, typed)],
        reason=typed.reason,
        reason_error=typed.reason_error,
        reason_hint="Words are needed for “other” only. They go to the audit trail, not to the customer.",
        reason_required=False,
        button=BUTTONS[verb.name],
        icon=looks.VERB_ICONS[verb.name],
        key=forms.new_key(),
        evidence_hash=seen.panel.evidence_hash,
        version=str(task.version),
        css="danger" if verb.name == "cancel" else "",
        blocked="" if verb.allowed else verb.sentence,
        flash=flash,
    )


def _subtitle(seen: Seen) -> str:
    action = seen.action
    call = f"`{action.tool}` {words.amount(action.value_minor, action.currency)}".strip() if action else "the run"
    return f"{words.number(seen.task.number)}, {call}, {words.title(seen.task.run.intent)}"


# --- what will be sent ----------------------------------------------------------------------------------------


def _sent(seen: Seen, verb: Verb) -> list[SentRow]:
    if verb.name == "reconcile" and seen.action is not None:
        return _question(seen, seen.action)
    if verb.name == "retry" and seen.action is not None:
        return _same_call(seen.action)
    return []


def _intro(seen: Seen, verb: Verb) -> str:
    if verb.name == "reconcile":
        return "One read of the provider, by action identity."
    if verb.name == "retry":
        return "The agent may send exactly this call again, under the same identity; nothing else changes."
    if verb.name == "resume":
        return "The agent goes on from the last proven state; its next calls are checked like any other."
    return "Steadyhand sends nothing. What was not dispatched is stopped."


def _question(seen: Seen, action: Action) -> list[SentRow]:
    rule = seen.panel.case.tool.reconcile if seen.panel.case else None
    if rule is None or rule.look is None:
        return []
    known = dict(scope.arguments(action))
    asked = [SentRow(name, _filled(value, action, known), locked=True) for name, value in rule.look.query.items()]
    compares = ", ".join(rule.look.match) or "identity only"
    return [
        SentRow("Call", f"GET {_filled(rule.look.path, action, known)}", note="read only"),
        *asked,
        SentRow("compares", f"Count, {compares}", mono=False),
    ]


def _same_call(action: Action) -> list[SentRow]:
    rows = [SentRow("Tool", action.tool, note=f"step {action.step}", locked=True)]
    rows += [SentRow(name, value, locked=True) for name, value in scope.arguments(action)]
    return [*rows, SentRow("identity", action.action_id, locked=True)]


def _filled(template: str, action: Action, known: dict[str, str]) -> str:
    """The declared template with the redacted values: the worker fills in the real ones."""
    text = template.replace("{action_id}", action.action_id).replace("{key}", action.idempotency_key)
    for name, value in known.items():
        text = text.replace(f"{{arguments.{name}}}", value)
    return text.replace("{run_id}", str(action.run_id))


# --- facts, worst case, who agrees ----------------------------------------------------------------------------


def _facts(seen: Seen) -> list[FactRow]:
    rows = [row for row in evidence.rows(seen.record, seen.action) if not row.claim]
    return [FactRow(row.fact, row.at) for row in rows[:MOST_FACTS]]


def _worst(seen: Seen, verb: Verb) -> tuple[str, str]:
    final_at, now = seen.panel.situation.final_from, seen.panel.situation.now
    if not seen.panel.situation.task_open:
        return "None. The task is resolved; nothing can be sent from here.", "idle"
    if verb.name == "reconcile":
        early = f" It cannot be final before {words.clock(final_at)}." if final_at and final_at > now else ""
        return f"The answer settles nothing and the task stays open.{early} Nothing in the world changes.", "idle"
    if verb.name == "retry":
        return f"The call is sent and fails again. {verb.sentence}", "warn"
    if verb.name == "resume":
        return "The agent stops again and a new task opens. Nothing that is proven is repeated.", "idle"
    unknown = [action for action in seen.record.unsettled if _may_have_happened(seen, action)]
    if unknown:
        named = ", ".join(
            f"`{action.tool}` {words.amount(action.value_minor, action.currency)}".strip() for action in unknown
        )
        return f"The run ends although {named} may have happened. Its task stays open until that is settled.", "warn"
    proven = words.plural(len(seen.record.effects), "proven effect")
    return (
        f"The run ends and cannot be taken up again. {proven} stay{'s' if len(seen.record.effects) == 1 else ''}.",
        "warn",
    )


def _may_have_happened(seen: Seen, action: Action) -> bool:
    case = seen.panel.case
    if case is not None and case.action.pk == action.pk and policy.surely_nothing(case.evidence):
        return False
    return answer_of(action) in ("unknown", "partly", "conflict")


def _agree(verb: Verb) -> str:
    return {
        "reconcile": "Nobody. A read needs no second person.",
        "retry": "Nobody. The amount is below the threshold of this workflow.",
        "resume": "Nobody. Every call is settled.",
        "cancel": "Nobody. Stopping is always allowed.",
    }[verb.name]


def _chain(verb: Verb) -> list[looks.Look]:
    first = looks.REQUESTED.saying("You request")
    if verb.name == "reconcile":
        return [first, looks.PENDING.saying("A worker asks"), looks.PENDING.saying("The answer is proven or not")]
    if verb.name in ("retry", "resume"):
        return [first, looks.PENDING.saying("The agent goes on")]
    return [first, looks.PENDING.saying("The run ends")]


def _codes(verb: Verb, typed: Typed) -> Select:
    choices = [Choice(value, label, value == typed.reason_code) for value, label in forms.REASONS[verb.name].items()]
    return Select("reason_code", "Code", choices, typed.code_error)
