"""What every example shares: the clock, people, the frame, the ledger."""

from datetime import UTC, datetime, timedelta

from console import looks
from console.pages.common import (
    Account,
    Customer,
    EffectRow,
    Frame,
    Live,
    Money,
    Person,
    RailItem,
    Sla,
    TenantChoice,
    Total,
)

NOW = datetime(2026, 3, 2, 10, 40, 52, tzinfo=UTC)
RUN_ID = "0195e2c4-77aa-7c31-9b2e-5d10c0aeb41f"
ALICE, OMAR = Person("Alice Moreau", you=True), Person("Omar Haddad", deciding=True)


def at(clock: str) -> datetime:
    """Today at a wall clock time with seconds, optionally with milliseconds."""
    return datetime.fromisoformat(f"2026-03-02T{clock}+00:00")


def eur(cents: int) -> Money:
    return Money(cents, "EUR")


def sla(left_minutes: float, whole_minutes: float = 60) -> Sla:
    due = NOW + timedelta(minutes=left_minutes)
    return Sla(
        opened_at=due - timedelta(minutes=whole_minutes), due_at=due, note="On-call is paged then.", tier="Tier 1"
    )


def frame(current: str = "Queue") -> Frame:
    items = [
        ("Queue", "inbox", "/", "37", ""),
        ("Unknown writes", "circle-question-mark", "/?view=unknown", "22", "unk"),
    ]
    items += [("Runs", "activity", "/runs/", "", ""), ("Stops", "octagon-pause", "/stops/", "", "")]
    return Frame(
        rail=[
            RailItem(label, icon, url, n, kind, label == current, label[0].lower())
            for label, icon, url, n, kind in items
        ],
        tenants=[
            TenantChoice("All my tenants", "/?tenant=", "", current == "Queue"),
            TenantChoice("Nordlicht Energie", "/?tenant=nordlicht", "Nordlicht Energie", current != "Queue"),
            TenantChoice("Harbor Travel", "/?tenant=harbor", "Harbor Travel"),
        ],
        account=Account("Alice Moreau", "support", "/account/logout/", "/account/2fa/"),
        search_url="/search/",
    )


def live(url: str) -> Live:
    return Live(url=url, etag='"41"', checked_at=NOW)


def effects() -> list[EffectRow]:
    return [
        EffectRow(
            "load_invoice",
            looks.EFFECT["proven"],
            "Read only, changes nothing",
            "Response, schema valid",
            external_id="INV-20931",
            proof_at=at("10:30:58"),
        ),
        EffectRow(
            "apply_credit",
            looks.EFFECT["unknown"],
            "Account credit, can be voided for 30 days",
            "None yet",
            external_note="none seen",
            amount=eur(12000),
            proof_note="dispatched",
            proof_at=at("10:31:10"),
        ),
        EffectRow(
            "draft_reply",
            looks.EFFECT["planned"],
            "Mail to the customer, irreversible once sent",
            "Waits for `apply_credit`",
        ),
    ]


TOTALS = [
    Total("Proven", [eur(0)]),
    Total("Unknown", [eur(12000)], "unk"),
    Total("Compensated", [eur(0)]),
    Total("Irreversible", [eur(0)]),
]
CUSTOMER = Customer("We are reviewing your refund and will confirm by e-mail.", looks.AGREES)
