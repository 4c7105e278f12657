"""Examples of the search page: results of two kinds, and nothing found."""

from console import looks
from console.builders.search import FORMS
from console.pages.common import Piece
from console.pages.search import FoundGroup, FoundRow, SearchPage
from tests.console.pages.shared import RUN_ID, at


def search_page() -> SearchPage:
    title = [Piece("Credit for "), Piece("<b>Anna</b>", True), Piece(" & more")]
    run = FoundRow(
        f"/runs/{RUN_ID}/", title, looks.RUN["escalated"], "Nordlicht Energie", "intent", at("10:31:00"),
        note="resolve_billing_case v3",
    )  # fmt: skip
    task = FoundRow(
        "/tasks/T-4127/", [Piece("Credit 120.00 EUR")], looks.TASK["open"], "Harbor Travel", "number",
        at("10:31:10"), [Piece("T-4127", True)], "external_outcome_unknown, apply_credit",
    )  # fmt: skip
    runs = FoundGroup("run", "Runs", "20+", [run], "The first 20, newest first.", unreadable=[RUN_ID])
    return SearchPage(
        "Search", "tasks 1, runs 20+", "/search/", "anna", [FoundGroup("task", "Tasks", "1", [task]), runs],
        kept=[("tenant", "nordlicht")],
    )  # fmt: skip


def empty_search_page() -> SearchPage:
    return SearchPage("Search", "nothing found", "/search/", "x", none="Nothing in your tenants.", forms=FORMS)
