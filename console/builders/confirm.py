"""The sheet of a verb: what will be sent, on which facts, the worst case, who agrees, why, and under which key."""

from __future__ import annotations

from django.urls import reverse

from console import forms, looks
from console.builders import consequence, desk, evidence, sent, words
from console.builders.sent import Typed
from console.builders.task import Seen
from console.pages.common import Flash, Link
from console.pages.confirm import ConfirmPage, FactRow
from recovery.rules.policy import Verb

MOST_FACTS = 6


def page(seen: Seen, verb: Verb, *, typed: Typed, flash: Flash | None) -> ConfirmPage:
    """A fresh sheet: new key, the evidence and the version as they are now."""
    task = seen.task
    number = words.number(task.number)
    back = reverse("task", args=[task.pk])
    worst, css = consequence.worst(seen, verb)
    return ConfirmPage(
        verb=verb.name,
        title=verb.label,
        subtitle=_subtitle(seen),
        url=reverse(verb.name, args=[task.pk]),
        back_url=back,
        crumbs=[Link("Queue", reverse("queue")), Link(number, back), Link(verb.label, "")],
        sent=sent.rows(seen, verb),
        sent_intro=sent.intro(seen, verb),
        facts=_facts(seen),
        worst=worst,
        worst_css=css,
        agree=consequence.agree(seen, verb),
        agree_rule=verb.rule if verb.allowed else "",
        chain=consequence.chain(seen, verb),
        selects=sent.selects(seen, verb, typed),
        fields=sent.fields(seen, verb, typed),
        reason=typed.value("reason"),
        reason_error=typed.error("reason"),
        reason_hint="Words are needed for “other” only. They go to the audit trail, not to the customer.",
        reason_required=False,
        button=consequence.button(seen, verb),
        icon=looks.VERB_ICONS[verb.name],
        key=forms.new_key(),
        evidence_hash=seen.panel.evidence_hash,
        version=str(task.version),
        css="danger" if verb.name in looks.DANGEROUS else "",
        blocked="" if verb.allowed else verb.sentence,
        flash=flash,
        here_url=reverse("here", args=[task.pk]),
        company=desk.at_sheet(seen.company, verb.name, seen.panel.situation.now),
    )


def _subtitle(seen: Seen) -> str:
    action = seen.action
    call = f"`{action.tool}` {words.amount(action.value_minor, action.currency)}".strip() if action else "the run"
    return f"{words.number(seen.task.number)}, {call}, {words.title(seen.task.run.intent)}"


def _facts(seen: Seen) -> list[FactRow]:
    rows = [row for row in evidence.rows(seen.record, seen.action) if not row.claim]
    return [FactRow(row.fact, row.at) for row in rows[:MOST_FACTS]]
