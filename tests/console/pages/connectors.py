"""Examples of the connectors page: everything known, and nothing declared."""

from console import looks
from console.pages.common import Empty, Link, Tab
from console.pages.connectors import CheckResult, ConnectorRow, ConnectorsPage, DemotionRow
from tests.console.pages.shared import at, live

TABS = [Tab("Connectors", "/settings/connectors/", current=True)]


def connectors_page() -> ConnectorsPage:
    workflow = Link("billing-case, version 2", "/settings/workflows/billing-case/")
    late = CheckResult(looks.CHECK["late"], "No answer came in 10 s.", "Omar Haddad", at("10:40:00"), 10_000)
    full = ConnectorRow(
        "payments", "http", "pay.example", "Nordlicht Energie", workflow, ["looks up `apply_credit`"], late, "k",
        "/settings/connectors/w/payments/test/", "", looks.CIRCUIT["open"], "/circuits/", "listed up to 10:20",
        "The listing did not come in time.",
        [DemotionRow("d1", "An effect turned up late.", at("10:00:00"), "/runs/r/", "/settings/demotions/d1/lift/",
                     "Say why, in a few words.", "typed")],
    )  # fmt: skip
    never = CheckResult(looks.CHECK["never"], "Nobody has tested it yet.")
    bare = ConnectorRow("till", "manual", "", "Nordlicht Energie", workflow, [], never, fixed="a person looks.")
    return ConnectorsPage(
        "Settings", "2 connectors", TABS, [full, bare], live("/x/"), "/settings/connectors/?after=50"
    )


def empty_connectors_page() -> ConnectorsPage:
    nothing = Empty("No connector is declared.", "A workflow brings it along.")
    return ConnectorsPage("Settings", "0 connectors", TABS, [], live("/x/"), empty=nothing)
