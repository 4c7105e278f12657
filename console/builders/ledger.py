"""The effects ledger: what was planned, sent, proven or is unknown, with its proof and its money."""

from __future__ import annotations

from datetime import datetime

from steadyhand.manifest import Tool

from console import looks
from console.builders import words
from console.builders.record import Record, answer_of
from console.looks import Look
from console.pages.common import Customer, EffectRow, Total
from recovery import gaps
from runs.models import Action, Run

PROOF = {
    "response": "The provider's reply, as its contract demands",
    "probe": "A look-up by action identity",
    "callback": "The provider's signed callback",
    "late_report": "A valid reply that came late",
    "person": "A person's attestation",
}
_BY_STATE = {
    "proposed": "pending",
    "succeeded": "proven",
    "awaiting_approval": "pending",
    "approved": "pending",
    "permitted": "dispatched",
    "rejected": "refused",
    "refused_permanent": "refused",
    "refused_transient": "pending",
    "void": "absent",
    "compensating": "compensating",
    "compensated": "compensated",
    "compensation_held": "undo_stopped",
}
_BY_ANSWER = {"yes": "proven", "no": "absent", "unknown": "unknown", "partly": "partial", "conflict": "conflict",
              "undone": "compensated", "partly_undone": "partly_compensated"}  # fmt: skip


_ONLY_IF_ANY = ("Contested", "Partly compensated")


def rows(record: Record) -> list[EffectRow]:
    """Each call in its order, then what the workflow still demands."""
    first = record.unsettled[0].step if record.unsettled else ""
    return [_row(record, action) for action in record.actions] + [_planned(tool, first) for tool in record.planned]


def totals(record: Record) -> list[Total]:
    """The money of the writes by what is known about it."""
    writes = [action for action in record.actions if action.effect == "write"]
    proven = [action for action in writes if answer_of(action) == "yes"]
    irreversible = [action for action in proven if (tool := record.tool(action)) and tool.irreversible]
    named = {
        "Proven": proven,
        "Contested": [action for action in writes if answer_of(action) == "conflict"],
        "Unknown": [action for action in writes if answer_of(action) == "unknown"],
        "Compensated": [action for action in writes if answer_of(action) == "undone"],
        "Partly compensated": [action for action in writes if answer_of(action) == "partly_undone"],
        "Irreversible": irreversible,
    }
    shown = {label: found for label, found in named.items() if found or label not in _ONLY_IF_ANY}
    return [_total(record, label, found) for label, found in shown.items()] if writes else []


def undeclared(record: Record, action: Action) -> bool:
    """Whether nobody said how much this write moves: its tool declares no amount, or the call named no currency for
    it; neither is the same as none."""
    tool = record.tool(action)
    bare = action.value_minor is not None and not action.currency
    return action.effect == "write" and tool is not None and (tool.value_field is None or bare)


def _total(record: Record, label: str, actions: list[Action]) -> Total:
    sums = words.sums((action.value_minor, action.currency) for action in actions)
    silent = sum(undeclared(record, action) for action in actions)
    return Total(label, sums, "unk" if label == "Unknown" and actions else "", silent)


def look_of(action: Action) -> Look:
    """The badge of one call in the ledger."""
    if action.state == "held" and answer_of(action) == "no":
        return looks.ACTION["held"]
    if answer_of(action) == "conflict":
        return looks.EFFECT["conflict"]
    if answer_of(action) == "partly_undone":
        return looks.EFFECT["partly_compensated"]
    return looks.EFFECT[_BY_STATE.get(action.state) or _BY_ANSWER[answer_of(action)]]


def customer(run: Run, record: Record) -> Customer:
    """What the customer was told, and whether what is proven bears it out; a run of origin "outside" has none."""
    if not run.customer_message or run.origin == gaps.ORIGIN:
        return Customer("", looks.NOT_TOLD)
    done = run.outcome == "ok"
    answers = {answer_of(action) for action in record.actions}
    if done and "conflict" in answers:
        return Customer(run.customer_message, looks.CONTESTED)
    agrees = not (done and (answers & {"unknown", "partly"} or record.planned))
    return Customer(run.customer_message, looks.AGREES if agrees else looks.DISAGREES)


def effect_words(tool: Tool | None, action_effect: str) -> str:
    """What a call does, and whether it can be taken back."""
    if tool is None:
        return "A tool that this workflow does not have"
    title = tool.title or f"`{tool.name}`"
    if action_effect == "read":
        return f"{title}: read only, changes nothing"
    if tool.irreversible:
        return f"{title}, irreversible once sent"
    if tool.compensate is None:
        return f"{title}, no undo is declared"
    window = tool.compensate.window_seconds
    return f"{title}, can be undone for {words.lasting(window)}" if window else f"{title}, can be undone"


def _row(record: Record, action: Action) -> EffectRow:
    effect = record.effects.get(action.pk)
    proof, note, at = _proof(record, action)
    return EffectRow(
        step=action.step,
        look=looks.EFFECT["given_up"] if effect is not None and effect.residual == "whole" else look_of(action),
        words=effect_words(record.tool(action), action.effect),
        external_id=(effect.external_id if effect else "") or action.external_id,
        external_note="none seen" if answer_of(action) == "unknown" else "none",
        amount=words.money(action.value_minor, action.currency),
        amount_note="not declared" if undeclared(record, action) else "",
        proof=proof,
        proof_note=note,
        proof_at=at,
    )


def _proof(record: Record, action: Action) -> tuple[str, str, datetime | None]:
    """(what proves it, a note, its time)."""
    effect = record.effects.get(action.pk)
    if effect is not None:
        note = "contradicted since" if answer_of(action) == "conflict" else ""
        return PROOF[effect.proven_by], note, effect.proven_at
    if action.state == "succeeded":
        return PROOF["response"], "", action.settled_at
    if action.settled_at is not None:
        return "Nothing was changed", (action.reason_code or "").replace("_", " "), action.settled_at
    if action.first_dispatched_at is None:
        return "Not sent", "", None
    if action.state == "held" and answer_of(action) == "no":
        return "Nothing was changed", (action.reason_code or "").replace("_", " "), action.first_dispatched_at
    return "None yet,", "dispatched", action.first_dispatched_at


def _planned(tool: Tool, waits_for: str) -> EffectRow:
    return EffectRow(
        step=tool.name,
        look=looks.PLANNED,
        words=effect_words(tool, tool.effect),
        amount_note="not known yet" if tool.value_field else "not declared" if tool.effect == "write" else "",
        proof=f"Waits for `{waits_for}`" if waits_for else "Not called yet",
    )
