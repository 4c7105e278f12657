"""Verbs as buttons: what policy says, with the marks that the form will carry."""

from __future__ import annotations

import uuid
from dataclasses import replace

from django.urls import reverse

from console import forms, looks
from console.pages.common import Verb
from recovery.panel import Panel
from recovery.rules import policy

KEYS = {"claim": "C"}


def next_actions(panel: Panel) -> list[Verb]:
    """Recommended, allowed, blocked; empty for a task that is settled, for then nothing can be sent from it."""
    if not panel.situation.task_open:
        return []
    asked = sorted(panel.shown, key=lambda verb: (not verb.recommended, not verb.allowed))
    return [_ask(panel, verb) for verb in asked]


def claim_verbs(panel: Panel) -> list[Verb]:
    """Taking and giving back, each by one click; handing over, putting off; and asking again what is resolved."""
    if not panel.situation.task_open:
        return [_ask(panel, panel.verb("reopen"))]
    at = panel.situation
    names = ("release", "claim") if at.mine else () if at.offer_mine else ("claim",)
    found = [click(panel, panel.verb(name)) for name in names]
    found += [_ask(panel, panel.verb(name)) for name in ("assign", "snooze")]
    return [
        replace(verb, label="Extend") if verb.name == "claim" and panel.situation.mine else verb for verb in found
    ]


def offer_verbs(panel: Panel) -> list[Verb]:
    """The answers to an offer for its receiver, taking it back for its giver; none for anybody else."""
    if panel.situation.offer_mine:
        return [click(panel, panel.verb("accept")), _ask(panel, panel.verb("decline"))]
    return [click(panel, panel.verb("withdraw"))] if panel.situation.offer_given else []


def comment_verb(panel: Panel) -> Verb | None:
    """None for somebody who may only read."""
    verb = panel.verb("comment")
    return click(panel, verb) if verb.allowed else None


def click(panel: Panel, verb: policy.Verb) -> Verb:
    """A verb that is sent at once."""
    return _button(panel.task.pk, verb, method="post", panel=panel)


def _ask(panel: Panel, verb: policy.Verb) -> Verb:
    return _button(panel.task.pk, verb, method="get", panel=panel)


def _button(task_id: uuid.UUID, verb: policy.Verb, *, method: str, panel: Panel) -> Verb:
    return Verb(
        name=verb.name,
        label=verb.label,
        icon=looks.VERB_ICONS[verb.name],
        url=reverse(verb.name, args=[task_id]),
        sentence=verb.sentence,
        allowed=verb.allowed,
        recommended=verb.recommended,
        method=method,
        rule=verb.rule,
        note=_note(panel, verb),
        badge=None if verb.allowed else looks.BLOCKED,
        key_hint="E" if verb.recommended else KEYS.get(verb.name, ""),
        css="danger" if verb.name in looks.DANGEROUS else "",
        evidence_hash=panel.evidence_hash,
        version=str(panel.task.version),
        key=forms.new_key() if method == "post" else "",
    )


def _note(panel: Panel, verb: policy.Verb) -> str:
    if verb.name != "reconcile" or panel.case is None or panel.case.tool.reconcile is None:
        return ""
    return f"{panel.case.action.looks} of {panel.case.tool.reconcile.max_looks} checks used"
