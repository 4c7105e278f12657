"""Examples of the Dead letters page: one with a task, one that has ended, and none."""

from console import looks
from console.pages.common import Empty, Link, Tab
from console.pages.letters import LetterRow, LettersPage
from tests.console.pages.shared import RUN_ID, at

TABS = [Tab("Open", "/letters/", "2", True), Tab("Ended", "/letters/?view=ended")]


def _row(state: str, **more: object) -> LetterRow:
    return LetterRow(
        looks.LETTER[state], "apply_credit", "apply_credit", "provider_unavailable", 2, 4, "Omar Haddad",
        "Replay it once, or discard it.", "Nordlicht Energie", "resolve_billing_case v3", at("10:20:00"),
        f"/runs/{RUN_ID}/", **more,
    )  # fmt: skip


def letters_page() -> LettersPage:
    rows = [_row("recorded", task=Link("T-4127", "/tasks/T-4127/")), _row("recovered", ended_at=at("10:40:00"))]
    return LettersPage("Dead letters", "2 letters, and more", TABS, rows, next_url="/letters/?before=l1")


def empty_letters_page() -> LettersPage:
    return LettersPage("Dead letters", "0 letters", TABS, [], empty=Empty("No dead letter is open.", "Checked."))
