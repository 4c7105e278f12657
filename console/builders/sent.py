"""What a verb sends or changes, field by field, as its sheet shows it; and what the sheet asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from console import forms
from console.builders import plan, scope, words
from console.builders.task import Seen
from console.pages.confirm import Choice, Select, SentRow, TextField
from recovery import permissions, planning, questions
from recovery.planning import Place
from recovery.rules.policy import Verb
from runs.models import Action

_INTRO = {
    "reconcile": "One read of the provider, by action identity.",
    "approve": "Exactly this call may be sent, and only this: another argument is another call.",
    "reject": "Nothing is sent. The agent is told that this call is not permitted.",
    "replay": "One more try of exactly this call, under the same identity; its tries go on counting.",
    "retry": "The agent may send exactly this call again, under the same identity; nothing else changes.",
    "discard": "Steadyhand sends nothing, now or later, for this call.",
    "top_up": "Steadyhand sends nothing. The run gets a higher ceiling, once.",
    "resume": "The agent goes on from the last proven state; its next calls are checked like any other.",
    "attest": "Steadyhand sends nothing. What you state becomes evidence of this call.",
    "compensate": "The plan: each undo in its order, one after the other; what cannot be undone says why.",
    "request_input": "Steadyhand sends no call. A link is made that asks for one field and works once.",
    "provide_input": "Steadyhand sends nothing. The agent gets the answer and proposes a new call, checked anew.",
    "assign": "Steadyhand sends nothing. A colleague is offered the task, with your words and the facts below.",
    "decline": "Steadyhand sends nothing. Whoever offers the task reads your words.",
    "snooze": "Steadyhand sends nothing. What goes on by itself goes on; the task sleeps, and your claim ends.",
    "reopen": "Steadyhand sends nothing. The task stands in the queue again, with a new clock.",
    "waive": "Steadyhand sends nothing. What stays is recorded, with your name and reason.",
    "cancel": "Steadyhand sends nothing. What was not dispatched is stopped.",
}


@dataclass(frozen=True)
class Typed:
    """What a person had entered before the sheet came back, and what was wrong with it, by field."""

    values: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def value(self, name: str) -> str:
        return self.values.get(name, "")

    def error(self, name: str) -> str:
        return self.errors.get(name, "")


def intro(seen: Seen, verb: Verb) -> str:
    if seen.panel.statement is not None and verb.name in ("approve", "reject"):
        return f"{seen.panel.statement}. Steadyhand sends nothing."
    if seen.panel.situation.outside and verb.name == "cancel":
        return "Steadyhand sends nothing. The question is closed."
    stops = seen.panel.plan.stop_in_words if verb.name == "compensate" else ""
    return f"{_INTRO[verb.name]} {stops}".rstrip()


def rows(seen: Seen, verb: Verb) -> list[SentRow]:
    if verb.name == "compensate":
        return [_undo(place, seen.panel.situation.now) for place in planning.progress(seen.task.run)]
    if seen.action is None:
        return []
    if verb.name == "reconcile":
        return _question(seen, seen.action)
    if verb.name in ("retry", "replay") or (verb.name == "approve" and seen.panel.statement is None):
        return same_call(seen.action)
    return []


def selects(seen: Seen, verb: Verb, typed: Typed) -> list[Select]:
    """The reason code, and whatever else has to be chosen."""
    made = [_select("reason_code", "Code", forms.REASONS[verb.name], typed)]
    if verb.name == "attest":
        made.insert(0, _select("outcome", "What happened", forms.OUTCOMES, typed))
    if verb.name == "assign":
        made.insert(0, _select("to", "To", _receivers(seen), typed))
    if verb.name == "snooze":
        made.insert(0, _select("minutes", "For", forms.SLEEPS, typed))
    review = seen.panel.case.tool.review if seen.panel.case else None
    if verb.name == "reject" and review is not None and review.reject_codes:
        codes = {"": "None"} | {code: code.replace("_", " ") for code in review.reject_codes}
        made.append(_select("code", "Told to the agent", codes, typed))
    return made


def _receivers(seen: Seen) -> dict[str, str]:
    """The team, and everybody who may work on tasks here."""
    colleagues = permissions.people(seen.task.tenant_id, "claim")
    return {"": f"The team ({seen.task.owner_team})"} | {str(one.pk): one.name for one in colleagues}


def fields(seen: Seen, verb: Verb, typed: Typed) -> list[TextField]:
    """Further lines to fill in."""
    if verb.name == "attest":
        hint = "As the provider's own records have it."
        return [TextField("reference", "Reference", typed.value("reference"), hint, typed.error("reference"), True)]
    if verb.name == "provide_input" and seen.action is not None:
        asked = questions.field_of(seen.task.run, seen.action)
        hint = " ".join(filter(None, [asked.hint, asked.rule])) if asked else ""
        label = asked.label if asked else "Answer"
        return [TextField("value", label, typed.value("value"), hint, typed.error("value"), True)]
    fired = seen.panel.situation.fired
    if verb.name == "top_up" and fired is not None:
        value = typed.value("amount") or str(fired.most)
        hint = f"1 to {fired.most:,} {fired.label}."
        return [TextField("amount", "Add", value, hint, typed.error("amount"), True)]
    return []


def same_call(action: Action) -> list[SentRow]:
    """The call as it was recorded: redacted, and bound to its identity."""
    told = [SentRow("Tool", action.tool, note=f"step {action.step}", locked=True)]
    told += [SentRow(name, value, locked=True) for name, value in scope.arguments(action)]
    return [*told, SentRow("identity", action.action_id, locked=True)]


def _select(name: str, label: str, options: dict[str, str], typed: Typed) -> Select:
    chosen = typed.value(name)
    return Select(name, label, [Choice(v, text, v == chosen) for v, text in options.items()], typed.error(name))


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


def _filled(template: str, action: Action, known: dict[str, str]) -> str:
    """The declared template with the redacted values: the worker fills in the real ones."""
    text = template.replace("{action_id}", action.action_id).replace("{key}", action.idempotency_key)
    for name, value in known.items():
        text = text.replace(f"{{arguments.{name}}}", value)
    return text.replace("{run_id}", str(action.run_id))


def _undo(place: Place, now: datetime) -> SentRow:
    """A line of the plan before it is ordered: the same words as on its own section afterwards."""
    line, effect = place.line, place.effect
    told = [
        effect.external_id if effect else "",
        words.amount(line.value_minor, line.currency),
        f"costs {words.amount(line.cost_minor, line.currency)}" if line.cost_minor else "",
        f"until {words.moment(line.until, now)}" if line.until else "",
        plan.in_words(place),
    ]
    return SentRow(line.step, line.undo or "no undo", note=", ".join(filter(None, told)), locked=not line.obstacle)
