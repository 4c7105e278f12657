"""The form that starts a bulk operation: why, how many go first, how many a minute, when it stops by itself."""

from __future__ import annotations

from django.urls import reverse

from console import forms
from console.access import Visit
from console.builders.sent import Typed
from console.forms import OTHER, SLEEPS, BulkStartForm
from console.pages.bulk import StartForm
from console.pages.confirm import Choice, Select, TextField
from recovery import permissions
from recovery.models import BulkOperation
from recovery.rules import bulk as rules
from recovery.rules.policy import LABELS

CANARY, RATE, STOP_AFTER = 3, 60, 3


def form(visit: Visit, operation: BulkOperation, kinds: dict[str, int], typed: Typed) -> StartForm:
    """The form as it was left, or with what is sensible; blocked while the dry run is not through."""
    verb, ready = operation.verb, kinds["will_run"]
    return StartForm(
        url=reverse("bulk_start", args=[operation.pk]),
        version=str(operation.version),
        key=forms.new_key(),
        button=f"{LABELS[verb]}: start with {ready:,}",
        selects=_selects(operation, typed),
        fields=[
            _number(typed, "canary", "Canary: how many go first", min(CANARY, ready), "Stops at anything odd."),
            _number(typed, "rate", "At most so many a minute", RATE, f"1 to {rules.MOST_A_MINUTE:,}."),
            _number(typed, "stop_after", "Suspend after so many failures", STOP_AFTER, "Then a person decides."),
        ],
        reason=typed.values.get("reason", ""),
        reason_hint="The note itself." if verb == "comment" else "It stands with every decision and in the history.",
        reason_error=typed.errors.get("reason", ""),
        reason_required=verb == "comment",
        blocked=_blocked(visit, operation, kinds),
        note=_left_out(kinds),
    )  # fmt: skip


def _blocked(visit: Visit, operation: BulkOperation, kinds: dict[str, int]) -> str:
    if kinds[""]:
        return "The dry run is not through yet; a worker looks at the rest. Open this page again then."
    if not kinds["will_run"]:
        return "Nothing of this list would run now."
    abilities = visit.grants.get(operation.tenant_id, frozenset())
    return rules.refusal(abilities, operation.verb, sum(kinds.values()))


def _left_out(kinds: dict[str, int]) -> str:
    left = sum(kinds.values()) - kinds["will_run"] - kinds[""]
    if not left:
        return "Each one is checked again when it has its turn."
    skipped = "1 other is skipped with its cause" if left == 1 else f"{left:,} others are skipped with their cause"
    return f"{skipped}. Each one is checked again when it has its turn."


def _selects(operation: BulkOperation, typed: Typed) -> list[Select]:
    codes = BulkStartForm.codes[operation.verb]
    found = [_select(typed, "reason_code", "Reason", codes)] if list(codes) != [OTHER] else []
    if operation.verb == "snooze":
        found.append(_select(typed, "minutes", "For how long", SLEEPS))
    if operation.verb == "assign":
        people = permissions.people(operation.tenant_id, "claim")
        found.append(_select(typed, "to", "To whom", {"": "Back to the team", **{str(p.pk): p.name for p in people}}))
    return found


def _select(typed: Typed, name: str, label: str, choices: dict[str, str]) -> Select:
    chosen = typed.values.get(name, "")
    options = [Choice(value, text, value == chosen) for value, text in choices.items()]
    return Select(name, label, options, typed.errors.get(name, ""))


def _number(typed: Typed, name: str, label: str, value: int, hint: str) -> TextField:
    return TextField(name, label, typed.values.get(name, str(value)), hint, typed.errors.get(name, ""), required=True)
