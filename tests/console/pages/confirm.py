"""An example of the confirmation, after the evidence moved."""

from console import looks
from console.pages.common import Flash, Link
from console.pages.confirm import Alternative, Choice, ConfirmPage, FactRow, Select, SentRow, TextField
from tests.console.pages.shared import at


def confirm_page() -> ConfirmPage:
    return ConfirmPage(
        verb="reconcile",
        title="Check what happened",
        subtitle="T-4127, `apply_credit` 120.00 EUR, Nordlicht Energie",
        url="/tasks/T-4127/reconcile/",
        back_url="/tasks/T-4127/",
        crumbs=[Link("Queue", "/"), Link("T-4127", "/tasks/T-4127/"), Link("Check what happened", "")],
        sent=[
            SentRow("Call", "GET /v2/credits", note="read only"),
            SentRow("account", "acct_8841", locked=True),
            SentRow("since", "10:30:40", old="10:31:00", note="20 s earlier than last check", changed=True),
            SentRow("compares", "Count, amount, currency, account", mono=False),
        ],
        facts=[
            FactRow("Look-up counted 0, not final", at("10:33:02")),
            FactRow("LedgerPay circuit closed again", at("10:40:40"), looks.NEW_MARK),
        ],
        worst="The answer is again “not found, not final” before 10:42:10. Nothing in the world changes.",
        agree="Nobody. A read needs no second person.",
        agree_rule="9e",
        chain=[looks.REQUESTED.saying("You request"), looks.PENDING.saying("Worker runs")],
        selects=[
            Select(
                "reason_code",
                "Code",
                [Choice("confirm_state", "Confirm provider state", True), Choice("other", "Other")],
            ),
            Select(
                "when",
                "When",
                [Choice("final", "As soon as it is final, 10:42:10"), Choice("now", "Now")],
                "Choose a time.",
            ),
        ],
        fields=[TextField("reference", "Reference", "", "Of the provider's record", "A reference is needed.", True)],
        reason="Incident 5521 delayed postings.",
        reason_error="At least 10 characters.",
        button="Request check at 10:42:10",
        icon=looks.VERB_ICONS["reconcile"],
        key="chk_01JP4X0000000000M8",
        evidence_hash="e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        version="9",
        alternatives=[Alternative("Check now", "when", "now")],
        here_url="/tasks/T-4127/here/",
        company=["Omar Haddad has this sheet open since 10:40:02 UTC."],
        flash=Flash(
            looks.NOTICE["moved"],
            "The evidence moved at 10:40:21. Nothing was sent.",
            "Your text is kept; read the marked lines and send again.",
            alert=True,
            focus=True,
        ),
    )
