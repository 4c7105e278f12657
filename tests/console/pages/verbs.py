"""The verbs of the example task."""

from console import looks
from console.pages.common import Verb

RECONCILE = Verb(
    "reconcile",
    "Check what happened",
    looks.VERB_ICONS["reconcile"],
    "/tasks/T-4127/reconcile/",
    "Asks LedgerPay for credits with our reference. Reads only. After 10:42:10 the answer is final.",
    recommended=True,
    rule="9e",
    note="1 of 5 checks used",
    key_hint="E",
)


def ask(name: str, label: str, sentence: str, **more: object) -> Verb:
    return Verb(name, label, looks.VERB_ICONS[name], f"/tasks/T-4127/{name}/", sentence, **more)


def post(name: str, label: str, sentence: str = "", **more: object) -> Verb:
    return ask(
        name, label, sentence, method="post", evidence_hash="e3b0c4429855", version="9", key=f"{name}_01", **more
    )


VERBS = [
    RECONCILE,
    ask(
        "attest",
        "Settle by hand",
        "You attest the outcome with a LedgerPay reference.",
        rule="9e",
        badge=looks.SECOND_PERSON,
    ),
    ask("cancel", "Cancel the run", "Ends the run; `apply_credit` stays unknown and keeps a task of its own."),
    ask(
        "retry",
        "Retry apply_credit",
        "Blocked: the write may still be in flight; a look-up counts as final from 10:42:10.",
        allowed=False,
        rule="9e",
        badge=looks.BLOCKED,
    ),
    ask(
        "compensate",
        "Compensate",
        "Blocked: nothing is proven yet, so there is nothing to undo.",
        allowed=False,
        rule="6b",
        badge=looks.BLOCKED,
    ),
    ask(
        "resume",
        "Resume the run",
        "Blocked: one write is unknown; the run may go on once it is settled.",
        allowed=False,
        rule="9e",
        badge=looks.BLOCKED,
    ),
]

UNKNOWN, NOT_YET = looks.ANYTHING_CHANGED["unknown"], looks.RETRY_SAFE["not_yet"]
NO = looks.ANYTHING_CHANGED["no"]
