"""Examples of the Stops page: switches that stand, that have ended, and the form with every error."""

from console import looks
from console.pages.common import Empty
from console.pages.confirm import Choice, Select
from console.pages.stops import SetForm, StopRow, StopsPage
from tests.console.pages.shared import RUN_ID, at


def _row(stop_id: str, state: str, **more: object) -> StopRow:
    return StopRow(
        stop_id, looks.STOP[state], "One tool `apply_credit`", "Halt", "Double postings at the provider.",
        "Omar Haddad", "Nordlicht Energie", at("10:20:00"), **more,
    )  # fmt: skip


def stops_page() -> StopsPage:
    return StopsPage(
        title="Stops",
        summary="2 switches standing",
        standing=[
            _row("a1", "standing", lift_url="/stops/a1/lift/", lift_error="Say why.", until=at("12:00:00")),
            _row("a2", "standing", url=f"/runs/{RUN_ID}/"),
        ],
        past=[
            _row("a3", "lifted", ended_at=at("10:30:00"), ended_by="Alice Moreau", ended_words="It is over."),
            _row("a4", "ended", ended_at=at("10:25:00")),
        ],
        form=SetForm(
            "/stops/set/",
            [Select("scope", "What is stopped", [Choice("tool", "One tool", True)], "Choose what is stopped.")],
            name="apply_credt",
            names=["apply_credit"],
            errors={
                "name": "No workflow declares such a tool.", "until": "The end has passed.", "reason": "Say why."
            },
        ),
    )  # fmt: skip


def empty_stops_page() -> StopsPage:
    nothing = Empty("Nothing is stopped.", "Checked 10:40:52 UTC.")
    return StopsPage("Stops", "0 switches standing", [], [], nothing, form_words="Your role does not include this.")
